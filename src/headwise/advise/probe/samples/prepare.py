"""The data made ready for training: standard units, a held-out part, extra coordinates.

What the network is given beside the raw token, so that nothing but the heads limits it:
- squares and products of the coordinates (`coordinates.py`);
- for padded sequences one coordinate that says "padding". The padded token is a constant, so one
  direction of the score hides it from a head; no assumption about the target is made;
- the position as sines and cosines, where the target depends on it, and where tokens are small
  their products with the slowest wave: which half of the sequence a sum is larger in is then read
  off a mean, while networks that have to find the product hardly begin to learn it.
A monotone function of a target needs the same heads, so the tails of a heavy-tailed target are
compressed: otherwise a few sequences would be all of the error.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from headwise.advise.probe.samples.coordinates import MULTIPLIED_UP_TO
from headwise.advise.probe.samples.given import Samples
from headwise.training.samples.engine import Dataset
from headwise.training.samples.specification import Loss

HOLDOUT, LEAST_HOLDOUT, MOST_HOLDOUT = 0.1, 100, 4000
HEAVY_TAILS = 6.0  # kurtosis above which tails are compressed; a Gaussian's is 3
_SPLIT = 0x5A3B


@dataclass(frozen=True)
class Prepared:
    """What training sees. `baseline` is the held-out loss of the best constant answer.

    The first `ordered_dims` coordinates of a token are the token itself, where the order matters
    and no token is padding; otherwise it is 0.
    """

    train: Dataset
    holdout: Dataset
    loss: Loss
    baseline: float
    compressed: bool
    ordered_dims: int = 0


def prepare(samples: Samples, seed: int, positions: bool) -> Prepared:
    """Shuffle, split, scale."""
    held = int(np.clip(HOLDOUT * samples.count, LEAST_HOLDOUT, MOST_HOLDOUT))
    order, held = _split(samples, held, np.random.default_rng([seed, _SPLIT]))
    tokens = torch.from_numpy(_tokens(samples, positions, order))
    targets, compressed = _targets(samples)
    values = torch.from_numpy(targets[order]).float()
    train = Dataset(tokens[held:], values[held:])
    holdout = Dataset(tokens[:held], values[:held])
    baseline = _baseline(train, holdout, samples.loss)
    ordered = samples.inputs.shape[2] if positions and samples.mask is None else 0
    return Prepared(train, holdout, samples.loss, baseline, compressed, ordered)


def _split(samples: Samples, held: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """A random order whose first `held` sequences, about as many as asked, occur there alone.

    Equal sequences on both sides would let a network that memorises look as if it had learnt.
    """
    order = rng.permutation(samples.count)
    if samples.distinct == samples.count:
        return order, held
    sizes = np.bincount(samples.groups)
    groups = rng.permutation(np.flatnonzero(sizes <= held))
    enough = 1 + int(np.searchsorted(sizes[groups].cumsum(), held))
    chosen = np.zeros(samples.distinct, bool)
    chosen[groups[:enough]] = True
    ours = chosen[samples.groups[order]]
    return np.concatenate([order[ours], order[~ours]]), int(ours.sum())


def _tokens(
    samples: Samples, positions: bool, order: Int[np.ndarray, " samples"]
) -> Float[np.ndarray, "samples length coordinates"]:
    """All coordinates in single precision, written in place: they are most of what memory holds."""
    plain, width = samples.coordinates, samples.inputs.shape[2]
    waves = _waves(samples.length) if positions else np.empty((samples.length, 0))
    multiplied = positions and width <= MULTIPLIED_UP_TO
    slowest = waves[:, [waves.shape[1] // 2 - 1, -1] if multiplied else []].T
    first, second = plain.shape[2], plain.shape[2] + waves.shape[1]
    padding = samples.mask is not None
    dims = second + width * len(slowest) + padding
    tokens = np.empty((samples.count, samples.length, dims), np.float32)
    tokens[..., :first] = plain[order]
    tokens[..., first:second] = waves
    for number, wave in enumerate(slowest):
        product = tokens[..., second + number * width : second + (number + 1) * width]
        np.multiply(tokens[..., :width], wave[:, None], out=product, casting="same_kind")
    if samples.mask is not None:
        real = samples.mask[order][:, :, None]
        tokens[..., :-1] *= real
        tokens[..., -1:] = ~real
    return tokens


def _targets(samples: Samples) -> tuple[np.ndarray, bool]:
    if samples.kind == "classification":
        return samples.targets, False
    varying = samples.targets[:, samples.targets.std(0) > 0]
    heavy = _kurtosis(varying) > HEAVY_TAILS
    columns = [_tamed(y) if tail else y for y, tail in zip(varying.T, heavy, strict=True)]
    values = np.stack(columns, 1)
    return (values - values.mean(0)) / values.std(0), bool(heavy.any())


def _waves(length: int) -> np.ndarray:
    """Sines and cosines of the position with periods 2, 4, … up to twice the length."""
    periods = 2.0 ** np.arange(1, int(np.ceil(np.log2(max(length, 2)))) + 2)
    angles = 2 * np.pi * np.arange(length)[:, None] / periods
    return np.concatenate([np.sin(angles), np.cos(angles)], 1)


def _tamed(values: np.ndarray) -> np.ndarray:
    """asinh((y − median)/q): linear up to the quantile q of |y − median|, logarithmic above it.

    The largest q that leaves no heavy tails: below it noise stays as small as it was.
    """
    centred = values - np.median(values)
    for share in (0.95, 0.9, 0.75, 0.5):
        scale = np.quantile(np.abs(centred), share)
        tamed = np.arcsinh(centred / scale) if scale > 0 else centred
        if _kurtosis(tamed[:, None])[0] <= HEAVY_TAILS:
            return tamed
    return tamed


def _kurtosis(columns: np.ndarray) -> np.ndarray:
    """Fourth moment in standard units."""
    standard = (columns - columns.mean(0)) / columns.std(0)
    return (standard**4).mean(0)


def _baseline(train: Dataset, holdout: Dataset, loss: Loss) -> float:
    mean = train.targets.double().mean(0)
    held = holdout.targets.double()
    if loss == "mse":
        return float((held - mean).square().mean())
    return float(-(held * torch.log(mean.clamp_min(1e-9))).sum(1).mean())
