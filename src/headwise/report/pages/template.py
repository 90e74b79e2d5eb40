"""Self-contained HTML from the one template beside this file: a page loads nothing.

Every figure stands in the page as SVG, which needs no JavaScript; where there is some, the panels
are drawn again so that they answer to the pointer and to the width of the page. The page's policy
(`Content-Security-Policy`) forbids every request, whatever is on it.
"""

import json
from functools import cache
from itertools import count
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from headwise.core.memory import check_can_draw
from headwise.report.figures import panel_spec
from headwise.report.files import svg_of
from headwise.report.pages.content import Page, PageFigure, PageTable
from headwise.report.pages.markup import (
    Html,
    anchor,
    command,
    data_address,
    inline_json,
    linked,
    raised,
)
from headwise.report.pages.squeeze import squeezed
from headwise.report.theme import EMBED_OPTIONS, GROUNDS

_EXPOSE = "window.vegaEmbed = vegaEmbed;"


class FigureSheet:
    """Figures made into markup one after the other, and what draws them again on the page.

    A page of very many figures keeps them `still`: the pictures alone, which tell their numbers and
    hide lines, too, but are not drawn again. With `drawn` False there are only words and data.
    """

    def __init__(self, still: bool = False, drawn: bool = True) -> None:
        self._still, self._drawn = still, drawn
        self._numbers = count()
        self.specs: dict[str, Any] = {}

    def markup(self, figure: PageFigure, main: bool = False) -> Html:
        """The figure with its legend, its caption and the links that save it."""
        drawn, panels = figure.drawn, []
        for title in drawn.titles:
            name = f"panel-{next(self._numbers)}"
            if not self._still:
                self.specs[name] = panel_spec(drawn.panels[title])
            picture = static_svg(drawn.panels[title], name) if self._drawn else ""
            panels.append({"title": title, "id": name, "svg": picture})
        files = {"csv": data_address(drawn.data.to_csv(index=False), "text/csv")}
        if not self._still:
            files = {"svg": data_address(figure.printed.svg, "image/svg+xml"), **files}
        macro: Any = _environment().get_template("figure.html.j2").module
        made: Html = macro.figure(figure, panels, files, main, self._still)
        return made


def render_page(page: Page, sheet: FigureSheet | None = None) -> str:
    """The page as text; `sheet` has the figures that stand in its special part, if any do."""
    sheet = sheet or FigureSheet()
    figures = [sheet.markup(figure, main=not place) for place, figure in enumerate(page.figures)]
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            figures=figures,
            summary=summary_of(page),
            csv=inline_json(page.csv),
            charts=inline_json(sheet.specs),
            embed_options=inline_json(EMBED_OPTIONS),
            library=_library() if sheet.specs else "",
            grounds=GROUNDS,
            failed=[point for point in page.points if point.chip.mood == "bad"],
            other=[point for point in page.points if point.chip.mood not in ("bad", "untested")],
            untested=[point for point in page.points if point.chip.mood == "untested"],
        )
    )


def summary_of(page: Page) -> str:
    """What an index says of the page, as JSON in its head."""
    chips = [[chip.text, chip.mood] for chip in page.chips]
    told = {"title": page.title, "answer": page.answer, "kicker": page.kicker, "chips": chips}
    return json.dumps(told)


def folded_table(table: PageTable) -> Html:
    """A table, folded, as every page has it."""
    macro: Any = _environment().get_template("table.html.j2").module
    made: Html = macro.folded_table(table, "")
    return made


def static_svg(chart: Any, prefix: str) -> Html:
    """A chart as SVG to stand in a page; the names inside it are those of this figure alone."""
    data = chart.to_dict()
    data.setdefault("config", {})["background"] = "transparent"
    drawn = svg_of(data)
    return Markup(drawn.replace('id="', f'id="{prefix}-').replace("url(#", f"url(#{prefix}-"))


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("headwise.report", "pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "linked": linked,
        "anchor": anchor,
        "command": command,
        "raised": raised,
    }
    environment.globals["included"] = _included
    return environment


def _included(name: str) -> Html:
    """A file of this folder, squeezed: the style and the scripts."""
    loader = _environment().loader
    assert loader is not None
    return Markup(squeezed(name, loader.get_source(_environment(), name)[0]))


@cache
def _library() -> Html:
    """Vega, Vega-Lite and the code that embeds their figures."""
    check_can_draw()
    bundle: str = vl_convert.javascript_bundle(_EXPOSE)
    return Markup(bundle.replace("</script", "<\\/script"))
