"""ReLU networks as plain arrays in double precision: what constructions are made of.

A network is a list of layers; a ReLU stands between two layers, none after the last. `slack`
bounds, row by row, how far a layer with the stored (rounded) weights can be from the layer that
the proof speaks of, beyond a few units in the last place of each weight; the certificate's
rounding term collects it.
"""

from dataclasses import dataclass
from math import inf

import numpy as np
from jaxtyping import Float

UNIT = 2.0**-53
"""Unit roundoff of double precision: |fl(x) − x| ≤ UNIT·|x|."""


@dataclass(frozen=True)
class Layer:
    """x ↦ weight·x + bias."""

    weight: Float[np.ndarray, "out in"]
    bias: Float[np.ndarray, " out"]
    slack: Float[np.ndarray, " out"]


Network = list[Layer]


def layer(weight: np.ndarray, bias: np.ndarray, slack: np.ndarray | float = 0.0) -> Layer:
    """A layer from anything array-like; the slack is one number or one a row."""
    rows = np.asarray(bias, np.float64)
    return Layer(np.asarray(weight, np.float64), rows, np.broadcast_to(slack, rows.shape).copy())


def gamma(terms: int, unit: float = UNIT) -> float:
    """γ_n = n·u/(1 − n·u): a dot product of n terms, in any order, is within γ_n Σ|terms|.

    Infinite from 1/u terms on, where the inequality promises nothing.
    """
    return terms * unit / (1 - terms * unit) if terms * unit < 1 else inf


def evaluate(network: Network, inputs: Float[np.ndarray, "count in"]) -> np.ndarray:
    """The network's outputs, row by row."""
    for each in network[:-1]:
        inputs = np.maximum(inputs @ each.weight.T + each.bias, 0)
    return inputs @ network[-1].weight.T + network[-1].bias


def affine(weights: Float[np.ndarray, "out in"], offsets: Float[np.ndarray, " out"]) -> Network:
    """An affine map, exactly: u = relu(u) − relu(−u), and one of the two is zero."""
    count = len(offsets)
    pair = np.concatenate([np.eye(count), -np.eye(count)], axis=1)
    return [
        layer(np.concatenate([weights, -weights]), np.concatenate([offsets, -offsets])),
        layer(pair, np.zeros(count)),
    ]


def compose(first: Network, second: Network) -> Network:
    """second ∘ first; the two linear maps that meet become one.

    Each row of `second`'s first matrix or each column of the other must hold one non-zero at most
    where they meet, so that the products are single ones and round once; the bias is a sum whose
    rounding is accounted for here.
    """
    inner, outer = first[-1], second[0]
    scale = np.abs(outer.weight)
    bias = outer.weight @ inner.bias + outer.bias
    rounding = gamma(len(inner.bias) + 2) * (scale @ np.abs(inner.bias) + np.abs(outer.bias))
    slack = scale @ inner.slack + outer.slack + rounding
    met = layer(outer.weight @ inner.weight, bias, slack)
    return [*first[:-1], met, *second[1:]]


def repeat(network: Network, copies: int) -> Network:
    """The same network on `copies` blocks of the input, side by side."""
    return [
        layer(
            np.kron(np.eye(copies), each.weight),
            np.tile(each.bias, copies),
            np.tile(each.slack, copies),
        )
        for each in network
    ]
