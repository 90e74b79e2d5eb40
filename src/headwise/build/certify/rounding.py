"""How far a network's floating-point output can be from its exact one: forward error analysis.

Every step carries, for each coordinate, a bound `size` on the exact value and a bound `error` on
what rounding has done to it. A dot product of n terms computed in any order, with or without fused
multiply–add, errs by at most γ_n Σ|terms| (Higham, Accuracy and Stability, §3.1); six further
roundings cover the stored weights and the bias. A product of several maps counts the roundings of
all of them, so the bound holds whether `nets.class_token` folds them together first or not.
"""

from collections.abc import Mapping
from math import inf, log2
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from headwise.build.certify.precision import DOUBLE, Precision
from headwise.build.maps.relu import gamma
from headwise.build.maps.sampling import Box
from headwise.core.errors import require
from headwise.nets import ClassTokenShape

Arrays = Mapping[str, np.ndarray]
_WEIGHT_ROUNDINGS = 6
_SOFTMAX_ROUNDINGS = 16  # exponential (4 units in the last place), sum's start, division


class Tracked(NamedTuple):
    """Coordinate-wise bounds: |exact| ≤ size, |computed − exact| ≤ error.

    `peak` bounds every number that arose on the way, sums in any order included.
    """

    size: Float[np.ndarray, " dim"]
    error: Float[np.ndarray, " dim"]
    peak: float


class Embedded(NamedTuple):
    """Tokens of the stream: weight·hidden + bias, each row of it up to `pending` off."""

    hidden: Tracked
    weight: np.ndarray
    bias: np.ndarray
    pending: np.ndarray


class Rounding(NamedTuple):
    """`output`: error of the network's output, given the attention weights that the computed
    scores define; `scores`: for each head, how far a computed score can be from the exact one."""

    output: float
    scores: Float[np.ndarray, " heads"]


def rounding(
    shape: ClassTokenShape,
    params: Arrays,
    slack: Arrays,
    box: Box,
    length: int,
    precision: Precision = DOUBLE,
) -> Rounding:
    """Bounds for a one-layer network that attends to tokens only, on tokens of the box.

    `slack` holds, for a layer's name, what its stored weights may add to each row. Weights,
    tokens and every intermediate result are numbers of the given precision.
    """
    require(
        len(shape.layers) == 1
        and not (shape.class_token_is_key or shape.residual or shape.norm)
        and shape.embed.activation == shape.readout.activation == "relu",
        "rounding is bounded for ReLU networks of one attention layer that attends to the tokens",
    )
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused here
        found, scores = _forward(shape, params, slack, box.reach, length, precision.unit)
    most = float(torch.finfo(precision.dtype).max)
    require(
        found.peak <= most / 2,
        f"there is no certificate in {precision.name}: the network's numbers may exceed the "
        f"largest that it holds, {most:.2g}; smaller tokens or features, or a higher temperature, "
        "help",
    )
    return Rounding(float(found.error.max()) + precision.underflow, scores)


def _forward(
    shape: ClassTokenShape,
    params: Arrays,
    slack: Arrays,
    reach: np.ndarray,
    length: int,
    unit: float,
) -> tuple[Tracked, np.ndarray]:
    """The output, given the attention weights that the computed scores define; their noise."""
    stream = _embed(shape, params, slack, reach, unit)
    scores, heads = _attention(shape, params, stream, length, unit)
    result = _linear(
        heads,
        params["layers.0.out.weight"],
        np.abs(params["layers.0.out.bias"]),
        np.zeros(1),
        unit,
    )
    for index in range(len(shape.readout.widths) + 1):
        result = _named(result, params, slack, f"readout.{index}", unit)
    return result, scores


def _attention(
    shape: ClassTokenShape,
    params: Arrays,
    stream: Embedded,
    length: int,
    unit: float,
) -> tuple[np.ndarray, Tracked]:
    """Noise of each head's scores, and the concatenated heads."""
    hidden, weight, bias, pending = stream
    layer, terms = shape.layers[0], weight.shape[1]
    split = lambda name, size: params[f"layers.0.{name}"].reshape(layer.heads, size, -1)  # noqa: E731
    key, value = split("key.weight", layer.qk_dim), split("value.weight", layer.v_dim)
    query = np.abs(params["layers.0.query.weight"]) @ np.abs(params["class_token"])
    query = (query + np.abs(params["layers.0.query.bias"])).reshape(layer.heads, layer.qk_dim)
    scale = 1 / layer.qk_dim**0.5 if shape.scaled else 1.0
    direction = scale * np.einsum("hq,hqe->he", query, np.abs(key))
    folded = direction @ np.abs(weight)  # (heads, terms)
    folding = _gamma(2 * shape.embed_dim + layer.qk_dim + terms + _WEIGHT_ROUNDINGS, unit)
    computed = hidden.size + hidden.error
    sizes = folded @ computed + direction @ np.abs(bias)  # of scores
    scores = folded @ hidden.error + folding * sizes + direction @ pending
    scores = scores + 3 * unit * sizes  # the softmax subtracts the largest score

    pooling = _gamma(2 * length + _SOFTMAX_ROUNDINGS, unit)
    mixed = np.einsum("hve,ef->hvf", np.abs(value), np.abs(weight)).reshape(-1, terms)
    peak = _peak(hidden.peak, sizes, folded, direction, query, mixed)
    pooled = Tracked(hidden.size, hidden.error + pooling * computed, peak)
    constant = (np.abs(value) @ np.abs(bias)).ravel() + np.abs(params["layers.0.value.bias"])
    rows = (np.abs(value) @ pending).ravel()
    return scores, _linear(pooled, mixed, constant, rows, unit, extra=2 * shape.embed_dim)


def _embed(
    shape: ClassTokenShape, params: Arrays, slack: Arrays, reach: np.ndarray, unit: float
) -> Embedded:
    """Tokens up to `reach` in size, after the embedding; where positions are added, after that."""
    tokens = Tracked(reach, np.zeros(len(reach)), float(reach.max()))
    for index in range(len(shape.embed.widths)):
        shifted = index == 0 and shape.positions and shape.position_kind == "concat"
        bias = np.abs(params[f"embed.{index}.bias"]) + (_largest(params) if shifted else 0)
        name = f"embed.{index}"
        tokens = _linear(tokens, params[f"{name}.weight"], bias, slack.get(name, np.zeros(1)), unit)
    last = f"embed.{len(shape.embed.widths)}"
    weight, bias = params[f"{last}.weight"], params[f"{last}.bias"]
    none = np.zeros(shape.embed_dim)
    pending = slack.get(last, none)
    if not (shape.positions and shape.position_kind == "add"):
        return Embedded(tokens, weight, bias, pending)
    tokens = _linear(tokens, weight, np.abs(bias) + _largest(params), pending, unit)
    return Embedded(tokens, np.eye(shape.embed_dim), none, none)


def _named(rows: Tracked, params: Arrays, slack: Arrays, name: str, unit: float) -> Tracked:
    bias = np.abs(params[f"{name}.bias"])
    return _linear(rows, params[f"{name}.weight"], bias, slack.get(name, np.zeros(1)), unit)


def _linear(
    rows: Tracked,
    weight: np.ndarray,
    bias: np.ndarray,
    slack: np.ndarray,
    unit: float,
    extra: int = 0,
) -> Tracked:
    """weight·x + bias; a ReLU after it changes neither bound."""
    scale = np.abs(weight)
    size = scale @ rows.size + bias
    carried = scale @ rows.error
    terms = weight.shape[1] + extra + _WEIGHT_ROUNDINGS
    error = carried + _gamma(terms, unit) * (size + carried) + slack
    return Tracked(size, error, _peak(rows.peak, size, error))


def _gamma(terms: int, unit: float = DOUBLE.unit) -> float:
    """γ of so many terms; refused where it promises nothing."""
    found = gamma(terms, unit)
    require(
        found < inf,
        f"there is no certificate at a unit round-off of 2^{log2(unit):.0f}: nothing is promised "
        f"of a sum of {terms:,} terms",
    )
    return found


def _peak(*sizes: float | np.ndarray) -> float:
    """The largest of all; NaN, from an overflow, is the largest."""
    return float(np.max([np.max(each, initial=0.0) for each in sizes]))


def _largest(params: Arrays) -> np.ndarray:
    return np.abs(params["positions"]).max(0)


def representation_rounding(
    shape: ClassTokenShape, params: Arrays, tokens: Float[np.ndarray, "length dim"]
) -> float | None:
    """How far the class token after attention can be from its exact value (Euclidean), at an input.

    For networks of one layer with a ReLU embedding and no norm; None for others. Scores that are
    off by ± e move at most tanh(e/2) of a head's attention, and its output by that times the
    values' diameter (`theory.saturation`).
    """
    if len(shape.layers) > 1 or shape.norm or shape.embed.activation != "relu":
        return None
    unit, layer = DOUBLE.unit, shape.layers[0]
    stream = _embed(shape, params, {}, np.abs(tokens).max(0), unit)
    scores, heads = _attention(shape, params, stream, len(tokens) + 1, unit)
    token = np.abs(params["class_token"])
    if shape.class_token_is_key:
        # Folded, the class token is (c − b) + b, b the embedding's last bias.
        key = token + 2 * np.abs(stream.bias)
        own = np.abs(params["layers.0.value.weight"]) @ key
        own = own + np.abs(params["layers.0.value.bias"])
        terms = 2 * shape.embed_dim + layer.qk_dim + _WEIGHT_ROUNDINGS
        error = np.maximum(heads.error, _gamma(terms) * own)
        heads = Tracked(np.maximum(heads.size, own), error, heads.peak)
        queries = np.abs(params["layers.0.query.weight"]) @ token
        queries = (queries + np.abs(params["layers.0.query.bias"])).reshape(layer.heads, -1)
        keys = np.abs(params["layers.0.key.weight"]) @ key
        keys = (keys + np.abs(params["layers.0.key.bias"])).reshape(layer.heads, -1)
        scores = np.maximum(scores, _gamma(terms) * (queries * keys).sum(1))
    moved = np.tanh(scores / 2).repeat(layer.v_dim) * 2 * heads.size
    mixed = _linear(
        Tracked(heads.size, heads.error + moved, heads.peak),
        params["layers.0.out.weight"],
        np.abs(params["layers.0.out.bias"]) + (token if shape.residual else 0.0),
        np.zeros(1),
        unit,
    )
    return float(np.linalg.norm(mixed.error)) + DOUBLE.underflow
