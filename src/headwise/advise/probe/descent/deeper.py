"""Does a second layer help? Where the answer depends on which tokens fit together, it does.

One layer read at a class token scores tokens one by one. A layer before it can hand every token
what stands at a fixed place, the first or the last token x_q, and the token before its own,
x_{t-1}; a network between the two multiplies. Then the second layer's score may hold x_q·x_t, the
neighbour of x_q, or x_q·x_{t-1}, what followed x_q earlier (induction). So a network of one layer
is trained on tokens that already have these products, coordinate by coordinate: it is a second
layer on a first that was built by hand, with about as many parameters as networks without them.

The score x_qᵀ W x_t is that of a head whose query is a token, and W is diagonal here. Its rank, the
query–key dimension, is the number of coordinates whose products matter: those without which the
error grows.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headwise.advise.probe.clock import Clock
from headwise.advise.probe.descent.network import RATE, held_out_error, probe_shape, train_on
from headwise.advise.probe.samples.prepare import Prepared
from headwise.advise.probe.verdict import FLOOR
from headwise.training.samples.engine import Dataset

HEADS, HEAD_DIM, STEPS = 4, 8, 8000
MOST_DIMS = 16  # token coordinates; each is multiplied four times
CLEARLY = 3.0  # the factor by which the error must fall
MATTERS, HARDLY = 2.0, 1.1  # factors by which the error grows without a coordinate


@dataclass(frozen=True)
class SecondLayer:
    """The held-out error on top of such a first layer, and how many coordinates are compared.

    `least` of them surely matter, more than `most` surely do not.
    """

    error: float
    compared: int
    least: int
    most: int


def try_second_layer(data: Prepared, seed: int, clock: Clock) -> SecondLayer | None:
    """Train it; None where it cannot be asked, or the time is over."""
    dims = data.ordered_dims
    if not 1 <= dims <= MOST_DIMS or data.train.inputs.shape[1] < 3:
        return None
    compared = replace(data, train=_with(data.train, dims), holdout=_with(data.holdout, dims))
    shape = probe_shape(compared, HEADS, HEAD_DIM)
    clock.planned += STEPS
    start = shape.initial_params(seed)
    trained = train_on(compared, shape, start, seed, 0, STEPS, RATE, clock)
    if trained is None:
        return None
    error = held_out_error(compared, shape, trained[0])
    factors = []
    for coordinate in range(dims):
        without = replace(compared, holdout=_without(compared.holdout, dims, coordinate))
        factors.append(held_out_error(without, shape, trained[0]) / max(error, FLOOR))
    counts = [sum(f > limit for f in factors) for limit in (MATTERS, CLEARLY, HARDLY)]
    return SecondLayer(error, *counts)


def _without(part: Dataset, dims: int, coordinate: int) -> Dataset:
    """The same without the products of one coordinate."""
    inputs = part.inputs.clone()
    inputs[..., inputs.shape[2] - 4 * dims + coordinate :: dims] = 0.0
    return Dataset(inputs, part.targets)


def _with(part: Dataset, dims: int) -> Dataset:
    return Dataset(with_comparisons(part.inputs, dims), part.targets)


def with_comparisons(inputs: Tensor, dims: int) -> Tensor:
    """Tokens with the products of themselves, and of the token before, with the first and last."""
    own = inputs[..., :dims]
    before = torch.cat([torch.zeros_like(own[:, :1]), own[:, :-1]], 1)
    products = [each * own[:, [place]] for place in (0, -1) for each in (own, before)]
    return torch.cat([inputs, *products], -1).contiguous()
