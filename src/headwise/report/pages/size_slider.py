"""Sizes of a compressed model to choose from: a slider, and what each layer would keep.

The script beside this file draws the bars; without it the page's figures show the size that was
chosen. Texts that both models continue stand below, the part where they agree set apart.
"""

from typing import Any

from markupsafe import Markup, escape

from headwise.pretrained.closeup.sizes import SizePoint
from headwise.pretrained.closeup.texts import Continuation
from headwise.pretrained.compressed import Compressed
from headwise.pretrained.plan.shapes import LayerShape
from headwise.report.pages.markup import Html, inline_json


def closer_look(result: Compressed) -> Html:
    """What is saved; then the slider and the texts, where there are some."""
    parts = [_savings(result), _slider(result), _texts(result.texts)]
    return Markup("").join(part for part in parts if part is not None)


def _savings(result: Compressed) -> Html:
    """Parameters, cache, operations and times as bars: their shares of the original's."""
    pairs = [row for row in result.evaluation.rows() if not row[0].startswith("loss")]
    most = max(1.0, *(pair.ratio for _, pair, _ in pairs))
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{pair.original:{form}}</td>'
        f"<td>{pair.compressed:{form}}</td>"
        f'<td class="bar"><span style="--share:{pair.ratio / most:.4f};--whole:{1 / most:.4f}">'
        f"</span> {pair.ratio:.2f}×</td></tr>"
        for name, pair, form in pairs
    )
    return Markup(
        '<section><h2 id="savings">What it saves <a class="anchor" href="#savings" '
        'aria-label="Link to What it saves">#</a></h2><div class="scroll" tabindex="0" '
        'role="region" aria-label="What it saves"><table class="bars"><thead><tr><td></td>'
        '<th scope="col">original</th><th scope="col">compressed</th>'
        f'<th scope="col">share of the original</th></tr></thead><tbody>{rows}</tbody></table>'
        "</div></section>"
    )


def _slider(result: Compressed) -> Html | None:
    points = sorted((p for p in result.sizes if p.method == result.plan.method), key=_kept)
    if len(points) < 2:
        return None
    full = result.plan.model
    chosen = result.evaluation.attention_parameters.ratio
    nearest = min(range(len(points)), key=lambda i: abs(points[i].kept - chosen))
    data = {
        "unit": result.evaluation.unit,
        "heads": int(full["heads"]),
        "dim": int(full["head_dim"]),
        "points": [_point(point) for point in points],
    }
    return Markup(
        '<section id="sizes"><h2 id="other-sizes">Choose a size <a class="anchor" '
        'href="#other-sizes" aria-label="Link to Choose a size">#</a></h2>'
        '<div class="sliders"><label>attention parameters kept '
        f'<input type="range" id="size" min="0" max="{len(points) - 1}" value="{nearest}">'
        '</label></div><p id="size-says" aria-live="polite">The slider needs JavaScript.</p>'
        '<div class="small-figures" id="size-bars"></div>'
        '<p class="small">Blue: what each layer keeps; grey: what it had.</p></section>'
        f'<script id="size-data" type="application/json">{inline_json(data)}</script>'
    )


def _kept(point: SizePoint) -> float:
    return point.kept


def _point(point: SizePoint) -> dict[str, Any]:
    return {
        "kept": point.kept,
        "predicted": point.predicted,
        "damage": point.damage,
        "low": point.low,
        "high": point.high,
        "layers": [
            _left(layer) | {"share": round(100 * share)}
            for layer, share in zip(point.layers, point.shares, strict=True)
        ],
    }


def _left(layer: LayerShape) -> dict[str, float]:
    """Of a layer: its heads, and the mean dimensions of those that are left."""
    kept = [group for group in layer.groups for _ in group.heads]
    count = max(1, len(kept))
    return {
        "heads": len(kept),
        "qk": round(sum(group.qk_dim for group in kept) / count, 2),
        "v": round(sum(group.v_dim for group in kept) / count, 2),
    }


def _texts(texts: list[Continuation]) -> Html | None:
    if not texts:
        return None
    shown = "".join(
        f"<blockquote><p>{escape(each.prompt)}</p><dl><dt>original</dt><dd>{escape(each.before)}"
        f"</dd><dt>compressed</dt><dd>{escape(each.after)}</dd></dl>"
        f'<p class="small">{_agreement(each)}</p></blockquote>'
        for each in texts
    )
    return Markup(
        '<section class="texts"><h2 id="texts">What both models write <a class="anchor" '
        'href="#texts" aria-label="Link to What both models write">#</a></h2>'
        f'<p class="small">Held-out beginnings, each continued greedily.</p>{shown}</section>'
    )


def _agreement(text: Continuation) -> str:
    if text.before == text.after:
        return "The same text."
    return f"The same for {text.equal} token{'' if text.equal == 1 else 's'}."
