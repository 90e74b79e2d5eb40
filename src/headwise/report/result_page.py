"""The page of any result that is not a study: what it says, its figures, all of its numbers."""

from collections.abc import Sequence
from functools import singledispatch
from pathlib import Path
from typing import Any

import pandas as pd

from headwise.advise.probe.finding import Finding
from headwise.allocation.plan_file import AllocationPlan
from headwise.build import Built, Frontier, TrialResults, Witness, WitnessComparison
from headwise.core.files import write_file
from headwise.pretrained.compressed import Compressed
from headwise.pretrained.inspection import Inspection
from headwise.report import compression, inspection, plan, probe
from headwise.report.pages.content import Chip, Page, PageFigure
from headwise.report.pages.head_map import head_map
from headwise.report.pages.pieces import number_table, panel_figure, sentence, whole_figure
from headwise.report.pages.proofs import built_page, tabled_page, witness_page
from headwise.report.pages.size_slider import closer_look
from headwise.report.pages.template import render_page
from headwise.report.theme import finished
from headwise.theory.head_count import PhaseMap


def write_page(result: Any, path: str | Path) -> None:
    """Write the page, whole or not at all."""
    write_file(path, page(result))


def page(result: Any) -> str:
    """The page as text."""
    return render_page(page_of(result))


@singledispatch
def page_of(result: Any) -> Page:
    """What the page of a result holds; results differ, their pages look alike."""
    raise TypeError(f"there is no page for {type(result).__name__}")


@page_of.register
def _inspection(result: Inspection) -> Page:
    first, rest = _that_differ(result.findings)
    return Page(
        title=result.title,
        kicker=f"headwise inspect · measured on {result.calibration}",
        question="Which heads does the model need, and how wide?",
        answer=sentence(first[0]),
        sentences=[sentence(each) for each in (*first[1:], *_warned(result.warnings))],
        special=head_map(result),
        scripts=("head_map.js",),
        figures=_lines_of_heads(result),
        notes=[
            *map(sentence, rest),
            "Sizes are the query–key dimensions at which a head's output changes by so much.",
        ],
        tables=[number_table("All numbers, one row a head", result.heads)],
        csv=result.heads.to_csv(index=False),
        file_name="heads",
    )


def _lines_of_heads(result: Inspection) -> list[PageFigure]:
    on_page, in_print = (inspection.line_charts(result, for_page) for for_page in (True, False))
    return [
        panel_figure(
            f"heads-{name}",
            each.title,
            {"": each.chart},
            result.errors,
            finished(in_print[name].chart, each.title),
            each.caption,
            ("layer", each.colours),
        )
        for name, each in on_page.items()
    ]


def _warned(warnings: Sequence[str]) -> list[str]:
    """What the numbers on the page should be read with."""
    return [f"warning: {each}" for each in warnings]


def _that_differ(findings: Sequence[str]) -> tuple[list[str], list[str]]:
    """Three findings of different kinds first: importance, depth or size, and what is redundant."""
    kinds = ("importance", "saturate", "same output", "could use")
    first = [next((f for f in findings if kind in f), None) for kind in kinds]
    chosen = [each for each in dict.fromkeys(first) if each is not None][:3] or list(findings[:3])
    return chosen, [each for each in findings if each not in chosen]


@page_of.register
def _compressed(result: Compressed) -> Page:
    judged = result.evaluation
    share = judged.attention_parameters
    chips = [Chip(f"{100 * share.ratio:.0f} % of the attention parameters")]
    if judged.cache_bytes_per_token is not None:
        chips.append(Chip(f"{100 * judged.cache_bytes_per_token.ratio:.0f} % of the cache"))
    if result.gate is not None:
        said = {"within": "loss within", "above": "loss above", "not told": "not told if within"}
        gate = f"{said[result.gate]} {result.max_loss:g}"
        chips.append(Chip(gate, "good" if result.passed else "bad"))
    heads = result.heads()
    sentences = result.sentences()
    answer = (
        f"With {100 * share.ratio:.0f} % of its attention parameters the damage is "
        f"{judged.verdicts[0]} {judged.unit} on {judged.held_out_tokens:,} held-out "
        f"{judged.verdicts[0].counted} ({judged.objective})."
    )
    loss = []
    if result.sizes:
        rows = pd.DataFrame([vars(point) for point in result.sizes])
        rows = rows.drop(columns=["layers", "shares"])
        title, colours = "Loss and size", compression.method_colours(result)
        drawn, printed = (compression.loss_by_size(result, each) for each in (True, False))
        named = {"chart": finished(printed, title), "legend": ("", colours)}
        says = _LOSS_BY_SIZE
        loss = [panel_figure("compression-loss", title, {"": drawn}, rows, caption=says, **named)]
    left, maps = compression.bars(result), compression.charts(result)
    says = "Grey: what it had. Maps of queries and keys can also share factors of lower rank."
    kept = panel_figure("compression-layers", "What every layer keeps", left, heads, caption=says)
    says = "×: a head that was removed."
    by_head = [("compression-heads", "Head by head", maps, heads)] if maps else []
    return Page(
        title=result.title,
        kicker=f"headwise compress · {result.plan.method} · {result.calibration}",
        question="What does a smaller attention cost, and what does it save?",
        answer=answer,
        chips=chips,
        sentences=[*map(sentence, sentences[1:])],
        figures=[*loss, kept, *(panel_figure(*each, caption=says) for each in by_head)],
        after=closer_look(result),
        scripts=("size_slider.js",),
        tables=[
            number_table("Original and compressed", result.cells()),
            number_table("What is left, one row a head", heads),
        ],
        csv=heads.to_csv(index=False),
        file_name="heads-left",
    )


_LOSS_BY_SIZE = (
    "Solid: measured on held-out data, with 95 % intervals over documents where there are several; "
    "dashed: predicted. Orange: the model that was made, judged on all held-out data. "
    "Grey, dashed: the original. A baseline's interval may go on beyond the figure."
)


@page_of.register
def _finding(result: Finding) -> Page:
    chips = [
        Chip(f"{100 * result.confidence:.0f} % probable", "good" if result.confident else "open")
    ]
    if result.interval:
        chips.append(Chip(f"95 %: {result.interval[0]} to {result.interval[1]} heads"))
    return Page(
        title="How many heads does the task need?",
        kicker="headwise probe",
        answer=result.sentence,
        conclusive=result.conclusive,
        settled_by=result.settled_by,
        chips=chips if result.conclusive else [Chip("no answer", "open")],
        sentences=result.notes,
        figures=[
            panel_figure(
                "probe",
                "The evidence",
                {"": probe.panel(result, for_page=True)},
                result.evidence,
                probe.draw(result),
                probe.caption(result),
                ("dimensions a head", probe.width_colours(result)),
            )
        ]
        if probe.has_marks(result)
        else [],
        tables=[number_table("Everything that was measured", result.evidence)],
        csv=result.evidence.to_csv(index=False),
        file_name="evidence",
    )


@page_of.register
def _plan(result: AllocationPlan) -> Page:
    spent = f"{result.parameters:,} of {result.budget:,} attention parameters"
    versus = result.against_uniform
    table, candidates = result.table(), result.candidate_table()
    answer = sentence(f"{plan.in_words(result)} ({result.schedule}; {spent})")
    if versus is not None:
        answer += f" Expected loss {versus}."
    drawn = {"": plan.by_layer(result)}
    figures = [
        panel_figure("plan", "Heads by layer", drawn, table, plan.draw(result), plan.READ_AS)
    ]
    if len(candidates.dropna(subset="against_uniform")):
        drawn = plan.candidate_intervals(result)
        figures.append(whole_figure("plan-candidates", "What was tried", drawn, candidates))
    return Page(
        title=f"Which heads in which of {len(result.layers)} layers?",
        kicker=f"headwise plan · width {result.width}, length {result.length}",
        answer=answer,
        chips=[Chip("compared on data", "good") if result.checked else Chip("not checked", "open")],
        sentences=result.reasons,
        figures=figures,
        tables=[
            number_table("The plan", table),
            *([number_table("What was tried", candidates)] if len(candidates) else []),
        ],
        notes=[f"Checked: {result.checked or 'not at all'}."],
        csv=table.to_csv(index=False),
        file_name="plan",
    )


page_of.register(Built)(built_page)
page_of.register(Witness)(witness_page)
for kind in (WitnessComparison, Frontier, PhaseMap, TrialResults):
    page_of.register(kind)(tabled_page)
