"""evidence/index.html: one page that needs no server and asks for nothing."""

import re
from collections.abc import Callable

from markupsafe import Markup, escape

from headwise.lab.study import Claim, Verdict
from headwise.report.evidence.gather import PaperEvidence, StudyEvidence, digest, said_number
from headwise.report.evidence.words import LEAD, RULE
from headwise.report.pages.content import Page
from headwise.report.pages.markup import Html, anchor, command, linked
from headwise.report.pages.study import MOODS, comparisons
from headwise.report.pages.template import folded_table, render_page, static_svg

Draw = Callable[[object, str], Html]
_SVG = re.compile(r"<svg.*?</svg>", re.S)


def evidence_page(papers: list[PaperEvidence], draw: Draw = static_svg) -> str:
    """The page; `draw` makes a chart into markup."""
    sections = Markup("").join(_paper(paper, draw) for paper in papers)
    page = Page(
        title="Evidence: what was claimed, and what came out",
        kicker="headwise evidence page",
        answer=LEAD,
        sentences=[RULE, *(f"{paper.title}: {paper.tally}" for paper in papers)],
        special=sections,
    )
    return render_page(page)


def without_drawings(page: str) -> str:
    """A page's text and numbers: drawings depend on the fonts of a machine."""
    return _SVG.sub("", page)


def undrawn(chart: object, prefix: str) -> Html:
    """Instead of a drawing, where only words and numbers are compared."""
    return Markup("")


def _paper(paper: PaperEvidence, draw: Draw) -> Html:
    name = anchor(paper.title)
    studies = Markup("").join(_study(each, draw) for each in paper.studies)
    return Markup(
        f'<section><h2 id="{name}">{linked(paper.title)} <a class="anchor" href="#{name}" '
        f'aria-label="Link to {escape(paper.title)}">#</a></h2>'
        f"<p><strong>{escape(paper.tally)}</strong></p>{studies}</section>"
    )


def _study(each: StudyEvidence, draw: Draw) -> Html:
    study, name = each.study, anchor(each.study.name)
    head = Markup(
        f'<article class="figure"><h3 id="{name}">{escape(study.title)} '
        f'<span class="small">{escape(study.name)}</span> <a class="anchor" href="#{name}" '
        f'aria-label="Link to {escape(study.title)}">#</a></h3>'
    )
    rerun = Markup(
        f'<p class="small">To run it: <code>{command(each.command)}</code>, '
        f"{escape(each.price)}. {escape(each.made_with)}</p>"
    )
    if each.found is None:
        claims = Markup("").join(
            Markup(
                f'<li><span class="chip untested">not run yet</span> {escape(it.statement)}</li>'
            )
            for it in study.claims
        )
        return head + rerun + Markup(f'<ul class="claims">{claims}</ul></article>')
    answer = Markup(f"<p>{linked(each.found.result.conclusion.sentence)}</p>")
    claims = Markup("").join(_claim(*pair) for pair in each.verdicts)
    return Markup("").join(
        [
            head,
            answer,
            Markup(f'<ul class="claims">{claims}</ul>'),
            _figures(each, draw),
            *map(folded_table, comparisons(each.found.result)),
            _differences(each),
            rerun,
            Markup("</article>"),
        ]
    )


def _claim(claim: Claim, verdict: Verdict) -> Html:
    said = [verdict.confidence, said_number(verdict)]
    said += [verdict.numbers] if verdict.status != "not tested" else []
    lines = Markup("").join(
        Markup(f'<br><span class="numbers">{escape(line)}</span>') for line in said if line
    )
    return Markup(
        f'<li><span class="chip {MOODS[verdict.status]}">{escape(verdict.status)}</span> '
        f"<strong>{escape(claim.statement)}</strong> "
        f'<span class="small">{linked(claim.source)}</span>{lines}</li>'
    )


def _figures(each: StudyEvidence, draw: Draw) -> Html:
    made = []
    titles = {figure.name: figure.title for figure in each.study.figures}
    for name, drawn in each.figures.items():
        panels = drawn.panels or {"": drawn.chart}
        charts = Markup("").join(
            Markup(
                f'<div class="panel">{_panel_title(title)}<div class="chart still" role="img" '
                f'tabindex="0" aria-label="{escape(titles[name])}">'
                f"{draw(chart, f'{anchor(each.study.name)}-{name}-{number}')}</div></div>"
            )
            for number, (title, chart) in enumerate(panels.items())
        )
        lines = Markup(" ").join(
            Markup(
                f'<span class="reference"><span class="swatch" style="background:{swatch.colour}">'
                f"</span>{escape(swatch.label)}</span>"
            )
            for swatch in drawn.legend
            if swatch.colour
        )
        made.append(
            Markup(
                f'<figure class="figure{" single" if len(panels) == 1 else ""}" '
                f'data-digest="{digest(drawn.data)}">'
                f'<h4>{escape(titles[name])}</h4><div class="legend">'
                f'<span class="legend-title">{escape(drawn.legend_title)}</span> {lines}</div>'
                f'<div class="panels" data-count="{len(panels)}">{charts}</div>'
                f"<figcaption>{linked(drawn.caption)}</figcaption></figure>"
            )
        )
    return Markup("").join(made)


def _panel_title(title: str) -> Html:
    return Markup(f"<h4>{escape(title)}</h4>") if title else Markup("")


def _differences(each: StudyEvidence) -> Html:
    notes = Markup("").join(Markup(f"<li>{linked(note)}</li>") for note in each.differences)
    return Markup(
        f"<details><summary>What differs from the paper</summary><ul>{notes}</ul></details>"
    )
