"""Pages of what proofs give: built networks, witnesses, the phase map, frontiers, trials."""

from typing import Any

from headwise.build import Built, Frontier, TrialResults, Witness, WitnessComparison
from headwise.report import witnesses
from headwise.report.constructions import feature_colours, frontier_panels, trials_panel
from headwise.report.pages.content import Chip, Page, PageFigure, PageTable
from headwise.report.pages.pieces import (
    number_table,
    panel_figure,
    sentence,
    subtitle,
    whole_figure,
)
from headwise.theory.bound import rounded_up
from headwise.theory.head_count import PhaseMap


def built_page(result: Built) -> Page:
    """The certified error, what it is the sum of, and where the heads look."""
    lines, certificate, attention = str(result).splitlines(), result.certificate, result.attention()
    terms = [[rounded_up(term.value), term.name, term.why] for term in certificate.terms]
    picks = whole_figure("attention", "Which token each head picks", result.figure(), attention)
    return Page(
        title="A network built from a proof",
        kicker="headwise build",
        question="How large is its error on any input, at most?",
        answer=sentence(lines[0]),
        chips=[Chip("vacuous", "bad")] if certificate.vacuous else [],
        sentences=[
            sentence(lines[-1]),
            *(
                sentence(f"assumes: {each[0].lower()}{each[1:]}")
                for each in certificate.assumptions
            ),
        ],
        figures=[picks],
        tables=[PageTable("What the error is the sum of", ("error", "source", "why"), terms)],
        folded=[("Certificate", str(certificate))],
        csv=attention.to_csv(index=False),
        file_name="attention",
    )


def witness_page(result: Witness) -> Page:
    """The two inputs, what attention makes of them, and what they should give."""
    rows = witnesses.witness_rows(result)
    panels = witnesses.witness_panels(result, for_page=True)
    says, colours = " ".join(witnesses.witness_caption(result)), witnesses.INPUT_COLOURS
    legend = ("input", colours)
    return Page(
        title=witnesses.witness_title(result),
        kicker="headwise build witness",
        question="What do too few heads confuse?",
        answer=str(result),
        figures=[panel_figure("witness", "The pair", panels, rows, result.figure(), says, legend)],
        tables=[
            number_table(f"{title} of both", witnesses.side_by_side(rows, of))
            for title, of in (("Tokens", "token"), ("Attention outputs", "after attention"))
        ],
        csv=rows.to_csv(index=False),
        file_name="witness",
    )


def tabled_page(result: WitnessComparison | Frontier | PhaseMap | TrialResults) -> Page:
    """What a table with a figure says, and all of its numbers."""
    titles: dict[type, tuple[str, str, str]] = {
        WitnessComparison: ("What do too few heads confuse?", "build witness", "Forced errors"),
        Frontier: ("What does an error cost, by heads?", "build frontier", "Parameters by error"),
        PhaseMap: ("What do too few heads cost?", "bound phase-map", "Exponent k by heads and T"),
        TrialResults: ("Do the certificates hold?", "build trials", "Attacks on them"),
    }
    title, command, drawn = titles[type(result)]
    table = result.to_pandas()
    name = title.lower().replace(" ", "-").strip("?")
    answer, *more = _answer(result).splitlines()
    return Page(
        title=title,
        kicker=f"headwise {command}",
        answer=sentence(answer),
        chips=_chips(result),
        sentences=[sentence(each) for each in more],
        figures=[_figure(result, name, drawn)],
        tables=[number_table("All numbers", table)],
        csv=table.to_csv(index=False),
        file_name=name,
    )


def _chips(result: WitnessComparison | Frontier | PhaseMap | TrialResults) -> list[Chip]:
    """How many certificates hold, of trials."""
    if not isinstance(result, TrialResults):
        return []
    broken = len(result.broken)
    chips = [Chip(f"{len(result.rows) - broken} hold", "good"), Chip(f"{broken} broken", "bad")]
    return chips if broken else chips[:1]


def _figure(
    result: WitnessComparison | Frontier | PhaseMap | TrialResults, name: str, title: str
) -> PageFigure:
    """The figure in panels of the page's width, with the page's legend, where it has those."""
    chart: Any = result.figure()
    table, says = result.to_pandas(), subtitle(chart)
    if isinstance(result, Frontier):
        return panel_figure(name, title, frontier_panels(result), table, chart, says)
    if isinstance(result, WitnessComparison):
        panels = witnesses.comparison_panels(result, for_page=True)
        legend = ("error", witnesses.error_colours(result))
        return panel_figure(name, title, panels, table, chart, says, legend)
    if isinstance(result, TrialResults):
        panels = {"": trials_panel(result, for_page=True)}
        legend = ("features", feature_colours(result))
        return panel_figure(name, title, panels, table, chart, says, legend)
    return whole_figure(name, title, chart, table)


def _answer(result: WitnessComparison | Frontier | PhaseMap | TrialResults) -> str:
    if isinstance(result, Frontier):
        return result.conclusion
    if isinstance(result, PhaseMap):
        too_few = result.to_pandas().query("verdict != 'not applicable'")
        silent = int(too_few["exponent"].isna().sum())
        if silent == len(too_few):
            return "The bound forbids none of these cells anything."
        said = (
            f"With fewer than {result.intrinsic_dim} heads, parameters grow at least like 1/error^k"
        )
        beside = f"; in {silent} of these {len(too_few)} cells the bound says nothing"
        return f"{said}{beside if silent else ''}."
    if isinstance(result, WitnessComparison):
        rows = result.to_pandas()
        forced = rows[(rows["kind"] == rows["kind"].iloc[0]) & (rows["error"] > 1e-9)]
        heads = ", ".join(str(each) for each in sorted(set(forced["heads"])))
        return (
            f"An error is forced with {heads or 'no number of'} head{'s' if heads != '1' else ''}."
        )
    return str(result).splitlines()[0]
