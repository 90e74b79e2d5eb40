"""One self-contained HTML page of an inspection: no request leaves the reader's machine."""

import html
import json
import os
import tempfile
from pathlib import Path

import altair as alt
import vl_convert

from headwise.pretrained.inspect import Inspection
from headwise.report.inspection import heat_maps, saturation_by_length, saturation_by_size

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto;
  padding: 0 1rem; }}
.figures {{ display: flex; flex-wrap: wrap; gap: 1.5rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
td, th {{ padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #ddd; }}
</style><script>{script}</script></head><body>
<h1>{title}</h1>
<ul>{findings}</ul>
<div class="figures">{places}</div>
<h2>All heads</h2>{table}
<script>
const specs = {specs};
specs.forEach((spec, i) => vegaEmbed("#figure-" + i, spec, {{actions: true}}));
</script></body></html>
"""


def write_page(inspection: Inspection, path: Path, title: str) -> None:
    """Write the page, whole or not at all."""
    charts: list[alt.Chart] = [
        *heat_maps(inspection).values(),
        saturation_by_size(inspection),
        saturation_by_length(inspection),
    ]
    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    specs = json.dumps([chart.to_dict() for chart in charts]).replace("</", "<\\/")
    page = _PAGE.format(
        title=html.escape(title),
        script=script.replace("</script", "<\\/script"),
        findings="".join(f"<li>{html.escape(words)}</li>" for words in inspection.findings),
        places="".join(f'<div id="figure-{index}"></div>' for index in range(len(charts))),
        table=inspection.heads.to_html(index=False, float_format="{:.4g}".format, border=0),
        specs=specs,
    )
    handle, temporary = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(page)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)
