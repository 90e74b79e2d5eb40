"""evidence/index.html: one page that needs no server and asks for nothing."""

import re
from io import StringIO
from urllib.parse import unquote

import pandas as pd
from markupsafe import Markup, escape

from headwise.lab.study import Claim, Verdict
from headwise.report.evidence.gather import PaperEvidence, StudyEvidence, digest, said_number
from headwise.report.evidence.words import LEAD, RULE
from headwise.report.pages.content import Page, PageFigure
from headwise.report.pages.markup import Html, anchor, command, linked, raised
from headwise.report.pages.study import MOODS, comparisons
from headwise.report.pages.template import FigureSheet, folded_table, render_page

_SVG = re.compile(r"<svg.*?</svg>", re.S)
_CSV = re.compile(r'(?<=data:text/csv;charset=utf-8,)[^"]*')


def evidence_page(papers: list[PaperEvidence], drawn: bool = True) -> str:
    """The page; `drawn` is False where only its words and numbers are compared."""
    sheet = FigureSheet(still=True, drawn=drawn)
    sections = Markup("").join(_paper(paper, sheet) for paper in papers)
    page = Page(
        title="Evidence: what was claimed, and what came out",
        kicker="headwise evidence page",
        answer=LEAD,
        sentences=[RULE, *(f"{paper.title}: {paper.tally}" for paper in papers)],
        special=sections,
    )
    return render_page(page, sheet)


def without_drawings(page: str) -> str:
    """A page's text and numbers: drawings depend on the fonts of a machine.

    What its figures draw is compared to six digits, as a processor may round the last one.
    """
    return _CSV.sub(lambda found: digest(_table(found[0])), _SVG.sub("", page))


def _table(address: str) -> pd.DataFrame:
    """The table that a link saves; what is none is left as it is."""
    try:
        return pd.read_csv(StringIO(unquote(address)))
    except ValueError:
        return pd.DataFrame({"no table": [address]})


def _paper(paper: PaperEvidence, sheet: FigureSheet) -> Html:
    name = anchor(paper.title)
    studies = Markup("").join(_study(each, sheet) for each in paper.studies)
    return Markup(
        f'<section><h2 id="{name}">{linked(paper.title)} <a class="anchor" href="#{name}" '
        f'aria-label="Link to {escape(paper.title)}">#</a></h2>'
        f"<p><strong>{escape(paper.tally)}</strong></p>{studies}</section>"
    )


def _study(each: StudyEvidence, sheet: FigureSheet) -> Html:
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
    answer = Markup(f"<p>{linked(each.answer)}</p>")
    claims = Markup("").join(_claim(*pair) for pair in each.verdicts)
    return Markup("").join(
        [
            head,
            answer,
            Markup(f'<ul class="claims">{claims}</ul>'),
            _figures(each, sheet),
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
        Markup(f'<br><span class="numbers">{raised(line)}</span>') for line in said if line
    )
    return Markup(
        f'<li><span class="chip {MOODS[verdict.status]}">{escape(verdict.status)}</span> '
        f"<strong>{escape(claim.statement)}</strong> "
        f'<span class="small">{linked(claim.source)}</span>{lines}</li>'
    )


def _figures(each: StudyEvidence, sheet: FigureSheet) -> Html:
    figures = {figure.name: figure for figure in each.study.figures}
    made = (
        PageFigure(
            f"{each.study.name}-{name}",
            figures[name].title,
            drawn,
            drawn.caption or figures[name].caption,
        )
        for name, drawn in each.figures.items()
    )
    return Markup("").join(map(sheet.markup, made))


def _differences(each: StudyEvidence) -> Html:
    if not each.differences:
        return Markup("")
    notes = Markup("").join(Markup(f"<li>{linked(note)}</li>") for note in each.differences)
    return Markup(
        f"<details><summary>What differs from the paper</summary><ul>{notes}</ul></details>"
    )
