"""The lower bound on too few heads as a page with sliders, computed in the reader's browser.

`calculator.js` repeats `theory.head_count.lower_bound_exponent` for the paper's |S_i| = T/4;
a test compares the two on a thousand points.
"""

from pathlib import Path

from markupsafe import Markup

from headwise.core.files import write_file
from headwise.report.pages.content import Page
from headwise.report.pages.markup import Html
from headwise.report.pages.template import render_page

_SLIDERS = (
    ("dim", "features that the target extracts, D", 1, 8, 4, False),
    ("length", "tokens in a sequence, T", 3, 11, 7, True),
    ("heads", "heads, h", 1, 8, 3, False),
    ("width", "dimensions of a head, n", 1, 16, 2, False),
    ("digits", "further digits of accuracy", 1, 6, 1, False),
)


def write_calculator(out: str | Path = "calculator.html") -> Path:
    """Write the page; gives its path."""
    write_file(out, render_page(calculator_page()))
    return Path(out)


def calculator_page() -> Page:
    """Sliders, the answer for them, and the map over heads and lengths behind it."""
    return Page(
        title="What do too few heads cost?",
        kicker="Theorem 2(2) of arXiv 2510.06662, computed on this page",
        answer="Move a slider (this page needs JavaScript).",
        special=_controls(),
        scripts=("calculator.js",),
        notes=(
            "The bound is a rate: its constant is unknown, so it gives no number of parameters. It "
            "is for one layer read at a class token, and targets whose features each look at a "
            "quarter of the positions or more. `headwise bound head-count` states all assumptions.",
            "“–”: the bound is vacuous. “enough”: as many heads as features.",
        ),
    )


def _controls() -> Html:
    sliders = "".join(
        f'<label>{title} <input type="range" id="slider-{name}" min="{low}" max="{high}" '
        f'value="{start}"{" data-powers=2" if powers else ""}> <output></output></label>'
        for name, title, low, high, start, powers in _SLIDERS
    )
    lengths = "".join(f'<th scope="col">T = {2**power}</th>' for power in range(3, 12))
    return Markup(
        f'<section id="calculator" class="sliders">{sliders}</section>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Exponent by heads and length">'
        f'<table class="grid phase"><thead><tr><td></td>{lengths}</tr></thead>'
        '<tbody id="phase"></tbody></table></div>'
    )
