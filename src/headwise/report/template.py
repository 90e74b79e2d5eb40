"""Self-contained HTML pages from the templates beside this file: they load nothing.

`page.html.j2` is the base: style, the charts' library and the code that draws them; a page of some
kind extends it. Figures are drawn into elements named `figure-NAME`.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import altair as alt
import jinja2
import vl_convert
from markupsafe import Markup

from headwise.report.theme import EMBED_OPTIONS

_EXPOSE = "window.vegaEmbed = vegaEmbed;"


def render_page(template: str, charts: Mapping[str, alt.TopLevelMixin], **values: Any) -> str:
    """The page as text: a template of this folder, filled."""
    return (
        _environment()
        .get_template(template)
        .render(
            charts=inline_json({name: chart.to_dict() for name, chart in charts.items()}),
            embed_options=inline_json(EMBED_OPTIONS),
            library=_library(),
            **values,
        )
    )


def inline_text(text: str) -> Markup:
    """Text for a script element: nothing in it may close the element."""
    return Markup(text.replace("</", "<\\/"))


def inline_json(data: Any) -> Markup:
    """Data for a script element: nothing in it may open or close an element."""
    return Markup(json.dumps(data).replace("<", "\\u003c"))


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("headwise", "report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )


@cache
def _library() -> Markup:
    """Vega, Vega-Lite and the code that embeds their figures."""
    return Markup(vl_convert.javascript_bundle(_EXPOSE).replace("</script", "<\\/script"))
