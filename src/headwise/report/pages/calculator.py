"""The closed-form bounds as a page with sliders, computed in the reader's browser.

`calculator.js` repeats `theory.head_count.lower_bound_exponent` for the paper's |S_i| = T/4 and
`theory.rank.error_lower_bound` for arbitrary values; a test compares each on a thousand points.
"""

from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from headwise.core.files import write_file
from headwise.report.pages.content import Page
from headwise.report.pages.markup import Html
from headwise.report.pages.template import render_page


class Slider(NamedTuple):
    """A number to choose; `powers` is the base where the slider holds an exponent."""

    name: str
    title: str
    low: float
    high: float
    start: float
    powers: int | None = None
    step: float = 1


_HEADS = (
    Slider("dim", "features that the target extracts, D", 1, 8, 4),
    Slider("length", "tokens in a sequence, T", 3, 11, 7, 2),
    Slider("heads", "heads, h", 1, 8, 3),
    Slider("width", "dimensions of a head, n", 1, 16, 2),
    Slider("digits", "error", -6, -1, -2, 10),
)
_RANK = (
    Slider("points", "dimension of the points", 2, 128, 32),
    Slider("rank", "rank of a head", 1, 128, 4),
    Slider("many", "heads", 0, 16, 3, 2),
    Slider("error", "mean-square error to reach", 0.01, 0.5, 0.2, step=0.01),
)


def write_calculator(out: str | Path = "calculator.html") -> Path:
    """Write the page; gives its path."""
    write_file(out, render_page(calculator_page()))
    return Path(out)


def calculator_page() -> Page:
    """Sliders, the answer for them, and the map over heads and lengths behind it; the same of rank.

    Without JavaScript the page says that it needs some.
    """
    return Page(
        title="What do too few heads cost?",
        kicker="Theorem 2(2) of arXiv 2510.06662, computed on this page",
        answer="Move a slider (this page needs JavaScript).",
        special=_head_count() + _rank(),
        scripts=("calculator.js",),
        notes=(
            "The bound on too few heads is a rate: its constant is unknown, so it gives no number "
            "of parameters. It is for one layer read at a class token, and targets whose features "
            "each look at a quarter of the positions or more. `headwise bound head-count` states "
            "all assumptions.",
            "The bound on low rank is derived in headwise.theory.rank.lower_bound, for the setting "
            "of arXiv 2407.16153: two orthogonal points and a query on the sphere, one layer; "
            "answering zero scores 1. `headwise bound rank` states all assumptions.",
        ),
    )


def _head_count() -> Html:
    lengths = "".join(f'<th scope="col">{2**power}</th>' for power in range(3, 12))
    return Markup(
        f'<section id="calculator" class="sliders">{_sliders(_HEADS)}</section>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Exponent by heads and length">'
        '<table class="grid phase">'
        f'<thead><tr><th scope="col">h \\ T</th>{lengths}</tr></thead>'
        '<tbody id="phase"></tbody></table></div>'
        '<p class="small">The exponent k by heads (down) and sequence length (across). '
        "✓: as many heads as features. –: the bound is vacuous.</p>"
    )


def _rank() -> Html:
    return Markup(
        '<section><h2 id="rank">And heads of low rank? <a class="anchor" href="#rank" '
        'aria-label="Link to And heads of low rank?">#</a></h2>'
        '<p class="question">The task: find the nearer of two points.</p>'
        '<p class="answer" id="rank-answer">Move a slider (this page needs JavaScript).</p>'
        f'<div id="rank-calculator" class="sliders">{_sliders(_RANK)}</div>'
        '<div id="rank-curve" class="small-figure wide"></div></section>'
    )


def _sliders(sliders: tuple[Slider, ...]) -> str:
    return "".join(
        f"<label><span>{each.title} <output></output></span>"
        f'<input type="range" id="slider-{each.name}" min="{each.low}" max="{each.high}" '
        f'step="{each.step}" value="{each.start}"'
        f"{f' data-powers={each.powers}' if each.powers else ''}></label>"
        for each in sliders
    )
