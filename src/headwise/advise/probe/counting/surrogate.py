"""What a trained network looks at, where the function itself is not at hand."""

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.nets import ClassTokenShape

LEAST_SHARE = 0.2  # of the largest influence in the sequence: a softmax never ignores a token
_INPUTS, _QUANTILE = 128, 0.9
_ALWAYS, _MOST = 0.95, 0.5  # share of the sequences, and of the attention that tokens get

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
