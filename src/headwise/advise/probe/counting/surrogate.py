"""What a trained network looks at, where the function itself is not at hand."""

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headwise.nets import ClassTokenShape

LEAST_SHARE = 0.2  # of the largest influence in the sequence: a softmax never ignores a token
_INPUTS, _QUANTILE = 128, 0.9
_ALWAYS, _MOST = 0.95, 0.5  # share of the sequences, and of the attention that tokens get
_FLAT, _SHARP = 0.7, 0.3  # of the tokens: what an average attends to, and an extremum
_SWAPPED, _AGAIN = 64, 4  # sequences whose tokens are exchanged, position by position; how often
_APART, _NOTICED = 8.0, 1e-2  # times what others change the answer, and share of its variance

Sequences = Float[Tensor, "count length token_dim"]


def influential_tokens(
    shape: ClassTokenShape, params: Mapping[str, Tensor], inputs: Sequences
) -> float:
    """Tokens on which the network's answer depends, at nine of ten inputs at most so many."""
    weights = {name: value.double()[None] for name, value in params.items()}
    leaf = inputs[:_INPUTS].double().requires_grad_()
    answers = shape.forward(weights, leaf[None])[0]  # (count, outputs)
    slopes = [
        torch.autograd.grad(output, leaf, retain_graph=True)[0].norm(dim=-1)
        for output in answers.sum(0)
    ]
    influence = torch.stack(slopes).amax(0)
    counts = (influence > LEAST_SHARE * influence.amax(1, keepdim=True)).sum(1)
    return float(np.quantile(counts.numpy(), _QUANTILE))


def fixed_readers(shape: ClassTokenShape, params: Mapping[str, Tensor], inputs: Sequences) -> int:
    """Heads that look at the same position in nearly every sequence, and hardly elsewhere."""
    weights = {name: value.double()[None] for name, value in params.items()}
    with torch.no_grad():
        taken = shape.attention_weights(weights, inputs[:_INPUTS].double()[None])[0]
    shares = taken / taken.sum(1, keepdim=True)  # (count, length, heads), without the class token
    largest, place = shares.max(1)
    usual = place.mode(0).values
    same = (place == usual).double().mean(0) > _ALWAYS
    return int((same & (largest.median(0).values > _MOST)).sum())


def read_positions(shape: ClassTokenShape, params: Mapping[str, Tensor], inputs: Sequences) -> int:
    """Positions that the network reads for themselves, however its heads share that work.

    The token there, exchanged for the one of another sequence, changes the answer far more than at
    usual positions and at those beside it. An extremum is attained now here, now there; of a
    window, or where weights vary smoothly, positions are like those beside them. Of long sequences
    some position stands out by chance, and in others does not: it is to stand out in all.
    """
    weights = {name: value[None] for name, value in params.items()}
    if inputs.shape[1] < 4:
        return 0
    read = torch.ones(inputs.shape[1], dtype=torch.bool)
    for some in inputs[: _SWAPPED * _AGAIN].split(_SWAPPED):
        read &= _apart(shape, weights, some)
        if not read.any():
            break
    return int(read.sum())


def _apart(
    shape: ClassTokenShape, weights: Mapping[str, Tensor], some: Sequences
) -> Bool[Tensor, "length"]:
    """The positions whose tokens matter far more in these sequences than those beside them."""
    count, length, _ = some.shape
    swapped = some.repeat(length, 1, 1, 1)  # (position, count, length, token_dim)
    places = torch.arange(length)
    swapped[places, :, places] = some.roll(1, 0).transpose(0, 1)
    with torch.no_grad():
        answers = shape.forward(weights, swapped.flatten(0, 1)[None])[0].unflatten(
            0, (length, count)
        )
        plain = shape.forward(weights, some[None])[0]
    change = ((answers - plain).square().mean(1) / plain.var(0).clamp_min(1e-12)).amax(1)
    beside = torch.stack([change.roll(1), change.roll(-1)])
    beside[0, 0], beside[1, -1] = change[1], change[-2]
    usual = torch.maximum(beside.amax(0), change.median())
    return (change > _APART * usual) & (change > _NOTICED)


def two_choices(
    shape: ClassTokenShape, params: Mapping[str, Tensor], inputs: Sequences
) -> tuple[float, float]:
    """How alike two heads choose, from −1 to 1, and the share of the tokens that each attends to.

    The first is the rank correlation of their scores over tokens, and 0 where one averages and the
    other chooses, which no head does at once, whatever the scores. The second is that of the head
    that attends to fewer.
    """
    weights = {name: value.double()[None] for name, value in params.items()}
    with torch.no_grad():
        taken = shape.attention_weights(weights, inputs[:_INPUTS].double()[None])[0]
    shares = taken / taken.sum(1, keepdim=True)  # (count, length, 2)
    attended = torch.exp(-torch.special.xlogy(shares, shares).sum(1)).median(0).values
    spread = attended / shares.shape[1]
    narrowest = float(spread.min())
    if spread.max() > _FLAT and narrowest < _SHARP:
        return 0.0, narrowest
    ranks = shares.argsort(1).argsort(1).double()
    ranks = ranks - ranks.mean(1, keepdim=True)
    both = (ranks[..., 0] * ranks[..., 1]).sum()
    return float(both / ranks.square().sum((0, 1)).prod().sqrt()), narrowest
