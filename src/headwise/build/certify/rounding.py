"""How far a network's floating-point output can be from its exact one: forward error analysis.

Every step carries, for each coordinate, a bound `size` on the exact value and a bound `error` on
what rounding has done to it. A dot product of n terms computed in any order, with or without fused
multiply–add, errs by at most γ_n Σ|terms| (Higham, Accuracy and Stability, §3.1); six further
roundings cover the stored weights and the bias. A product of several maps counts the roundings of
all of them, so the bound holds whether `nets.class_token` folds them together first or not.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from headwise.build.certify.precision import DOUBLE, Precision
from headwise.build.maps.declared import Box
from headwise.build.maps.relu import gamma
from headwise.core.errors import require
from headwise.nets import ClassTokenShape

Arrays = Mapping[str, np.ndarray]
_WEIGHT_ROUNDINGS = 6
_SOFTMAX_ROUNDINGS = 16  # exponential (4 units in the last place), sum's start, division


class Tracked(NamedTuple):
    """Coordinate-wise bounds: |exact| ≤ size, |computed − exact| ≤ error."""

    size: Float[np.ndarray, " dim"]
    error: Float[np.ndarray, " dim"]


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
    unit = precision.unit
    hidden = _embed(shape, params, slack, Tracked(box.reach, np.zeros(shape.token_dim)), unit)
    last = f"embed.{len(shape.embed.widths)}"
    weight, bias = params[f"{last}.weight"], params[f"{last}.bias"]
    pending = slack.get(last, np.zeros(shape.embed_dim))
    if shape.positions and shape.position_kind == "add":
        hidden = _linear(hidden, weight, np.abs(bias) + _largest(params), pending, unit)
        weight, bias = np.eye(shape.embed_dim), np.zeros(shape.embed_dim)
        pending = np.zeros(shape.embed_dim)
    scores, heads = _attention(shape, params, hidden, weight, bias, pending, length, unit)
    result = _linear(
        heads,
        params["layers.0.out.weight"],
        np.abs(params["layers.0.out.bias"]),
        np.zeros(1),
        unit,
    )
    for index in range(len(shape.readout.widths) + 1):
        result = _named(result, params, slack, f"readout.{index}", unit)
    return Rounding(float(result.error.max()) + precision.underflow, scores)


def _attention(
    shape: ClassTokenShape,
    params: Arrays,
    hidden: Tracked,
    weight: np.ndarray,
    bias: np.ndarray,
    pending: np.ndarray,
    length: int,
    unit: float,
) -> tuple[np.ndarray, Tracked]:
    """Noise of each head's scores, and the concatenated heads."""
    layer, terms = shape.layers[0], weight.shape[1]
    split = lambda name, size: params[f"layers.0.{name}"].reshape(layer.heads, size, -1)  # noqa: E731
    key, value = split("key.weight", layer.qk_dim), split("value.weight", layer.v_dim)
    query = np.abs(params["layers.0.query.weight"]) @ np.abs(params["class_token"])
    query = (query + np.abs(params["layers.0.query.bias"])).reshape(layer.heads, layer.qk_dim)
    scale = 1 / layer.qk_dim**0.5 if shape.scaled else 1.0
    direction = scale * np.einsum("hq,hqe->he", query, np.abs(key))
    folded = direction @ np.abs(weight)  # (heads, terms)
    folding = gamma(2 * shape.embed_dim + layer.qk_dim + terms + _WEIGHT_ROUNDINGS, unit)
    computed = hidden.size + hidden.error
    scores = folded @ hidden.error + folding * (folded @ computed) + direction @ pending
    scores = scores + 3 * unit * (folded @ computed)  # the softmax subtracts the largest score

    pooling = gamma(2 * length + _SOFTMAX_ROUNDINGS, unit)
    pooled = Tracked(hidden.size, hidden.error + pooling * computed)
    mixed = np.einsum("hve,ef->hvf", np.abs(value), np.abs(weight)).reshape(-1, terms)
    constant = (np.abs(value) @ np.abs(bias)).ravel() + np.abs(params["layers.0.value.bias"])
    rows = (np.abs(value) @ pending).ravel()
    return scores, _linear(pooled, mixed, constant, rows, unit, extra=2 * shape.embed_dim)


def _embed(
    shape: ClassTokenShape, params: Arrays, slack: Arrays, tokens: Tracked, unit: float
) -> Tracked:
    for index in range(len(shape.embed.widths)):
        shifted = index == 0 and shape.positions and shape.position_kind == "concat"
        bias = np.abs(params[f"embed.{index}.bias"]) + (_largest(params) if shifted else 0)
        name = f"embed.{index}"
        tokens = _linear(tokens, params[f"{name}.weight"], bias, slack.get(name, np.zeros(1)), unit)
    return tokens


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
    return Tracked(size, carried + gamma(terms, unit) * (size + carried) + slack)


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
    reach = np.abs(tokens).max(0)
    hidden = _embed(shape, params, {}, Tracked(reach, np.zeros(shape.token_dim)), unit)
    last = f"embed.{len(shape.embed.widths)}"
    weight, bias = params[f"{last}.weight"], params[f"{last}.bias"]
    if shape.positions and shape.position_kind == "add":
        bias = np.abs(bias) + _largest(params)
    none = np.zeros(shape.embed_dim)
    scores, heads = _attention(shape, params, hidden, weight, bias, none, len(tokens) + 1, unit)
    token = np.abs(params["class_token"])
    if shape.class_token_is_key:
        own = np.abs(params["layers.0.value.weight"]) @ token
        own = own + np.abs(params["layers.0.value.bias"])
        heads = Tracked(np.maximum(heads.size, own), np.maximum(heads.error, gamma(64) * own))
        queries = np.abs(params["layers.0.query.weight"]) @ token
        queries = (queries + np.abs(params["layers.0.query.bias"])).reshape(layer.heads, -1)
        keys = np.abs(params["layers.0.key.weight"]) @ token
        keys = (keys + np.abs(params["layers.0.key.bias"])).reshape(layer.heads, -1)
        terms = 2 * shape.embed_dim + layer.qk_dim + _WEIGHT_ROUNDINGS
        scores = np.maximum(scores, gamma(terms) * (queries * keys).sum(1))
    moved = np.tanh(scores / 2).repeat(layer.v_dim) * 2 * heads.size
    mixed = _linear(
        Tracked(heads.size, heads.error + moved),
        params["layers.0.out.weight"],
        np.abs(params["layers.0.out.bias"]) + (token if shape.residual else 0.0),
        np.zeros(1),
        unit,
    )
    return float(np.linalg.norm(mixed.error)) + DOUBLE.underflow
