"""The sequence seen through a few linear forms of it: one wide head with constant scores does that.

Where the order matters, a head that averages v(x_t, t) can hand on any linear forms Σ_t w_t·x_t, as
many as it has value dimensions. Training finds forms badly where they are alike: of the largest of
four window sums every network first learns the sum of all, and many never leave it. Statistics
finds them at once. With z the whitened sequence and r what a linear fit leaves of the target, the
matrix E[r z zᵀ] is, for Gaussian z, the mean Hessian of the target (Stein), and the span of its
eigenvectors is that of the forms (principal Hessian directions, Li 1992). For other z it is a good
guess; whether the guess holds is asked of a network that sees these forms and nothing else.

The guess is off by about √(coordinates / samples). So the network is then given the whole sequence,
begins where it was, and the forms that its first layer came to use most replace the guess.
"""

from dataclasses import replace

import torch
from torch import Tensor

from headwise.advise.probe.samples.prepare import Prepared
from headwise.training.samples.engine import Dataset

MOST_FORMS = 8  # value dimensions of a wide head
LEAST_RATIO = 4  # coordinates of the sequence for a form; more forms would be a copy of it
MOST_COORDINATES = 512
_RIDGE = 1e-6


def whole_sequences(data: Prepared) -> Prepared | None:
    """Each sequence as one token, whitened; None where no linear forms of it are to be looked for.

    That is where the order does not matter, or the sequence is so short, or so long, that a few
    forms would be a copy of it, or could not be found.
    """
    dims = data.ordered_dims
    coordinates = dims * data.train.inputs.shape[1]
    if not LEAST_RATIO <= coordinates <= MOST_COORDINATES:
        return None
    flat = data.train.inputs[..., :dims].flatten(1).double()
    mean = flat.mean(0)
    centred = flat - mean
    values, vectors = torch.linalg.eigh(centred.mT @ centred / len(flat))
    whiten = vectors / values.clamp_min(_RIDGE * float(values[-1])).sqrt() @ vectors.mT

    def whole(part: Dataset) -> Dataset:
        tokens = (part.inputs[..., :dims].flatten(1).double() - mean) @ whiten
        return Dataset(tokens.float()[:, None].contiguous(), part.targets)

    return replace(data, train=whole(data.train), holdout=whole(data.holdout), ordered_dims=0)


def guessed_forms(whole: Prepared) -> Tensor:
    """(coordinates, forms): the linear fit of the targets, then the largest mean curvatures."""
    white, targets = whole.train.inputs[:, 0].double(), whole.train.targets.double()
    samples, coordinates = white.shape
    count = min(MOST_FORMS, coordinates // LEAST_RATIO)
    targets = targets - targets.mean(0)
    fit = white.mT @ targets / samples
    rest = targets - white @ fit
    curvature = torch.zeros(coordinates, coordinates, dtype=white.dtype)
    for column in rest.mT:
        hessian = white.mT @ (white * column[:, None]) / samples
        curvature += hessian @ hessian
    straight = torch.linalg.svd(fit, full_matrices=False).U[:, : max(1, count // 2)]
    bent = torch.linalg.eigh(curvature).eigenvectors.flip(1)
    return torch.linalg.qr(torch.cat([straight, bent[:, :count]], 1)).Q[:, :count]


def most_used(first_layer: Tensor, count: int) -> Tensor:
    """The forms of the whole sequence that the rows of a first layer use most."""
    return torch.linalg.svd(first_layer.double(), full_matrices=False).Vh[:count].mT


def seen_through(whole: Prepared, forms: Tensor) -> Prepared:
    """Each sequence as one token, the values of the forms."""

    def seen(part: Dataset) -> Dataset:
        return Dataset((part.inputs.double() @ forms).float().contiguous(), part.targets)

    return replace(whole, train=seen(whole.train), holdout=seen(whole.holdout))
