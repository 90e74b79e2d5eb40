"""The map of a model's heads: a grid of layers × heads, and what is known of the head one clicks.

The grid is HTML that reads without JavaScript (the first measure is shown); the script beside this
file switches measures, pins a head, draws its curve, its spectrum and how far it looks, shows its
attention on texts, and follows addresses such as #L3H4.
"""

import re
from base64 import b64encode
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from headwise.pretrained.closeup.heads import AttendedText, HeadProfiles
from headwise.pretrained.inspection import Inspection
from headwise.report.pages.markup import Html, inline_json

_TITLES = {
    "importance_measured": "loss if removed, measured",
    "importance": "loss if removed, by gradients",
    "size_at_1pct": "dimensions needed at 1 % change",
    "size_at_10pct": "dimensions needed at 10 % change",
    "rank_by_activations": "effective rank, by activations",
    "rank_by_weights": "effective rank, by weights",
    "similarity": "likeness to its twin (cosine)",
    "entropy": "attention entropy, nats",
    "cache_bytes": "cache at 1 % change, bytes a token",
    "bound": "certificate: bound on attention's change at half the dimensions",
}
_ROOMY = 16  # layers or heads of a map whose cells have room for numbers
_DROWNS = 20.0  # a largest value this many times the median would leave all others blank


def measures(heads: pd.DataFrame) -> dict[str, str]:
    """What the map can show, with titles: those of the known measures that the table has."""
    return {name: title for name, title in _TITLES.items() if name in heads}


def shades(values: pd.Series) -> tuple[list[float], bool]:
    """Each value as a share of the scale, 0 to 1, and whether the scale is logarithmic."""
    numbers = values.to_numpy(float)
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        return [0.0] * len(numbers), False
    least = _least_of_logarithms(known)
    if logarithmic := least is not None:
        numbers = np.log(np.clip(np.nan_to_num(numbers, nan=least), least, None))
        known = numbers
    low, high = float(known.min()), float(known.max())
    span = (high - low) or 1.0
    return [round(float(v), 4) for v in np.nan_to_num((numbers - low) / span)], logarithmic


def _least_of_logarithms(known: np.ndarray) -> float | None:
    """Where a logarithmic scale begins; none where a plain one shows the differences."""
    positive = known[known > 0]
    middle = float(np.median(positive)) if len(positive) else 0.0
    if len(positive) <= 2 or positive.max() <= _DROWNS * middle:
        return None
    return max(float(positive.min()), middle / 1e3)


def head_map(inspection: Inspection) -> Html:
    """The grid, its switch and the place for one head's details."""
    heads = inspection.heads.reset_index(drop=True)
    shown = measures(heads)
    scales = {name: shades(heads[name]) for name in shown}
    first = next(iter(shown))
    data = {
        "measures": {
            name: {"title": title, "shades": scales[name][0], "logarithmic": scales[name][1]}
            | {"texts": _texts(heads, name), "ends": _ends(heads[name])}
            for name, title in shown.items()
        },
        "heads": [_known(row, shown) for row in heads.to_dict("records")],
        "curves": _curves(inspection.errors),
        **_profiles(inspection.profiles),
    }
    options = "".join(
        f'<option value="{escape(name)}">{escape(title)}</option>' for name, title in shown.items()
    )
    low, high = _ends(heads[first])
    return Markup(
        '<section class="map" id="head-map"><h2 id="heads">Every head '
        '<a class="anchor" href="#heads" aria-label="Link to Every head">#</a></h2>'
        f'<p><label>Show <select id="measure">{options}</select></label> '
        f'<span class="small key"><span id="least">{low}</span><span class="ramp"></span>'
        f'<span id="most">{high}</span> '
        f'<span id="scale">{"logarithmic" if scales[first][1] else ""}</span></span></p>'
        '<div class="beside"><div class="scroll" tabindex="0" role="region" '
        'aria-label="Map of heads">'
        f'<table class="grid{_density(heads)}">'
        f'<thead><tr><th scope="col">head</th>{_numbers(heads)}</tr></thead>'
        f"<tbody>{_rows(heads, first, scales[first][0])}</tbody></table>"
        '<p class="small">Choose a head for its details.</p></div>'
        '<aside id="pinned" aria-live="polite" hidden></aside></div></section>'
        f'<script id="head-data" type="application/json">{inline_json(data)}</script>'
    )


def _density(heads: pd.DataFrame) -> str:
    """Cells of a large map are too small for numbers, which pointing at them shows."""
    return " compact" if max(heads["head"].nunique(), heads["layer"].nunique()) > _ROOMY else ""


def _short(value: float) -> str:
    """Two digits that fit a cell: .0012, 1.2e-4."""
    if value != value:
        return "–"
    small = 0 < abs(value) < 1e-3
    return re.sub(r"e([+-])0*", r"e\1", f"{value:.1e}") if small else f"{value:.2g}"


def _texts(heads: pd.DataFrame, name: str) -> list[str]:
    """What stands in the cells: the number, and of likeness the twin."""
    said = [_short(value) for value in heads[name]]
    if name != "similarity" or "most_similar_head" not in heads:
        return said
    twins = zip(said, heads["most_similar_head"], heads["head"], strict=True)
    return ["–" if twin == head else f"{value} ≈{int(twin)}" for value, twin, head in twins]


def _ends(values: pd.Series) -> tuple[str, str]:
    """Where the scale begins and ends, as text: of logarithms, what is less is not told apart."""
    known = values[np.isfinite(values.astype(float))].to_numpy(float)
    if not len(known):
        return "", ""
    least = _least_of_logarithms(known)
    if least is not None and known.min() < least:
        return f"≤ {_short(least)}", _short(known.max())
    return _short(known.min()), _short(known.max())


def _profiles(profiles: HeadProfiles) -> dict[str, Any]:
    """Spectra and reach by head, texts with their attention in 256 steps."""
    return {
        "spectra": _by_head(profiles.spectra, 4),
        "reach": _by_head(profiles.reach, 4),
        "distances": profiles.distances,
        "texts": [_attention(text) for text in profiles.texts],
    }


def _by_head(values: dict[int, np.ndarray], digits: int) -> dict[str, list[float]]:
    return {
        f"L{layer}H{head}": np.nan_to_num(row).round(digits).tolist()
        for layer, rows in values.items()
        for head, row in enumerate(rows)
    }


def _attention(text: AttendedText) -> dict[str, Any]:
    steps = {
        layer: np.nan_to_num(255 * weights).round().astype(np.uint8).tobytes()
        for layer, weights in text.weights.items()
    }
    weights = {layer: b64encode(content).decode() for layer, content in steps.items()}
    return {"tokens": text.tokens, "weights": weights}


def _numbers(heads: pd.DataFrame) -> str:
    return "".join(
        f'<th scope="col">{head}</th>' for head in sorted(set(heads["head"].astype(int)))
    )


def _rows(heads: pd.DataFrame, first: str, depth: list[float]) -> str:
    said, texts = [], _texts(heads, first)
    for layer, here in heads.groupby("layer", sort=True):
        cells = "".join(
            f'<td><button type="button" id="L{int(row.layer)}H{int(row.head)}" '
            f'data-index="{index}" class="{shade_class(depth[index])}" '
            f'style="--shade:{depth[index]:.3f}" '
            f'aria-label="layer {int(row.layer)} head {int(row.head)}">'
            f"{texts[index]}</button></td>"
            for index, row in zip(here.index, here.itertuples(), strict=True)
        )
        stack = f" {escape(here['stack'].iloc[0])}" if "stack" in here else ""
        said.append(f'<tr><th scope="row">layer {int(str(layer))}{stack}</th>{cells}</tr>')
    return "".join(said)


def shade_class(share: float) -> str:
    """Which text reads on a cell: white from .8 on by day, black from .57 on at night (4.5:1)."""
    return " ".join(
        ["cell", *(["mid"] if share > 0.57 else []), *(["deep"] if share > 0.8 else [])]
    )


def _known(row: dict[str, Any], shown: dict[str, str]) -> dict[str, Any]:
    twin = row.get("most_similar_head")
    return {
        "layer": int(row["layer"]),
        "head": int(row["head"]),
        "twin": None if twin is None or twin != twin or twin == row["head"] else int(twin),
        "numbers": {
            title: f"{row[name]:.4g}" for name, title in shown.items() if row[name] == row[name]
        },
    }


def _curves(errors: pd.DataFrame) -> dict[str, list[list[float]]]:
    """By head, the change of its output over the dimensions kept, at the greatest length."""
    longest = errors[errors["length"] == errors["length"].max()].sort_values("size")
    return {
        f"L{int(layer)}H{int(head)}": [
            [int(size), round(float(change), 5)]
            for size, change in zip(here["size"], here["change"], strict=True)
        ]
        for (layer, head), here in longest.groupby(["layer", "head"])
    }
