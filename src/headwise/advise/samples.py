"""The user's data, checked and made ready: standard units, a held-out part, extra coordinates.

What the network is given beside the raw token, so that nothing but the heads limits it:
- the squares of the coordinates, where tokens are small: a bowl is then a sum, not an
  approximation by ReLUs, and the error floor that hides the transition falls;
- for padded sequences one coordinate that says "padding". The padded token is a constant, so one
  direction of the score hides it from a head; no assumption about the target is made;
- the position as sines and cosines, where the target depends on it (see `positions`).
A monotone function of a target needs the same heads, so the tails of a heavy-tailed target are
compressed: otherwise a few sequences would be all of the error.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headwise.errors import require
from headwise.train.engine import Dataset
from headwise.train.training import Loss

Kind = Literal["regression", "classification"]
LEAST_SAMPLES = 500
HOLDOUT, LEAST_HOLDOUT, MOST_HOLDOUT = 0.1, 100, 4000
HEAVY_TAILS = 6.0  # kurtosis above which tails are compressed; a Gaussian's is 3
MOST_CLASSES = 100
SQUARED_UP_TO = 16  # token coordinates
_SPLIT = 0x5A3B


@dataclass(frozen=True)
class Samples:
    """Sequences, what they are mapped to, and which tokens are real."""

    inputs: Float[np.ndarray, "samples length token_dim"]
    targets: Float[np.ndarray, "samples outputs"]  # numbers, or one-hot classes
    mask: Bool[np.ndarray, "samples length"] | None
    kind: Kind

    @property
    def count(self) -> int:
        return len(self.inputs)

    @property
    def length(self) -> int:
        return self.inputs.shape[1]

    @property
    def loss(self) -> Loss:
        return "mse" if self.kind == "regression" else "cross-entropy"

    @property
    def fingerprint(self) -> str:
        """A hash of all the numbers."""
        digest = hashlib.sha256(f"{self.kind}{self.inputs.shape}{self.targets.shape}".encode())
        for array in (self.inputs, self.targets, self.mask):
            if array is not None:
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @classmethod
    def of(cls, inputs: Any, targets: Any, mask: Any = None, kind: Kind | None = None) -> "Samples":
        """Check what the user gave; sequences of different lengths come as a list."""
        if isinstance(inputs, list | tuple) and len({len(row) for row in inputs}) > 1:
            require(mask is None, "a mask goes with an array; a list of sequences has its lengths")
            inputs, mask = _pad(inputs)
        tokens = _array(inputs, "inputs")
        tokens = tokens[:, :, None] if tokens.ndim == 2 else tokens
        require(
            tokens.ndim == 3 and min(tokens.shape) >= 1 and tokens.dtype.kind in "fiub",
            f"inputs are numbers of shape (samples, length, token_dim), not {tokens.dtype} of "
            f"shape {tokens.shape}",
        )
        values = _array(targets, "targets")
        require(
            values.ndim in (1, 2) and len(values) == len(tokens),
            f"there are {len(tokens)} sequences but targets of shape {values.shape}; expected "
            f"({len(tokens)},) or ({len(tokens)}, outputs)",
        )
        keep = None if mask is None else _array(mask, "mask").astype(bool)
        if keep is not None:
            require(
                keep.shape == tokens.shape[:2],
                f"the mask has shape {keep.shape}, the sequences {tokens.shape[:2]}",
            )
            require(bool(keep.any(1).all()), "the mask leaves a sequence without a token")
            tokens = np.where(keep[:, :, None], tokens, 0)
            keep = None if keep.all() else keep
        tokens = tokens.astype(np.float32)
        require(bool(np.isfinite(tokens).all()), "the inputs hold NaN or infinite values")
        kind = _guess(values) if kind is None else kind
        require(
            kind in ("regression", "classification"), "kind is 'regression' or 'classification'"
        )
        numbers = _numbers(values) if kind == "regression" else _one_hot(values)
        return cls(tokens, numbers, keep, kind)

    @property
    def constant(self) -> bool:
        """Every output is the same for all sequences."""
        return bool((self.targets.min(0) == self.targets.max(0)).all())

    def prepare(self, seed: int, positions: bool) -> "Prepared":
        """Shuffle, split, scale."""
        order = np.random.default_rng([seed, _SPLIT]).permutation(self.count)
        held = int(np.clip(HOLDOUT * self.count, LEAST_HOLDOUT, MOST_HOLDOUT))
        tokens = torch.from_numpy(self._tokens(positions)[order])
        targets, compressed = self._targets()
        values = torch.from_numpy(targets[order]).float()
        train = Dataset(tokens[held:], values[held:])
        holdout = Dataset(tokens[:held], values[:held])
        ignorance = _ignorance(train, holdout, self.loss)
        return Prepared(train, holdout, self.loss, ignorance, compressed)

    def _tokens(self, positions: bool) -> Float[np.ndarray, "samples length coordinates"]:
        real = np.ones(self.inputs.shape[:2], bool) if self.mask is None else self.mask
        parts = [_standard(self.inputs, real)]
        if self.inputs.shape[2] <= SQUARED_UP_TO:
            parts.append(_standard(parts[0] ** 2, real))
        if positions:
            parts.append(np.tile(_waves(self.length), (self.count, 1, 1)))
        if self.mask is not None:
            parts = [part * self.mask[:, :, None] for part in parts]
            parts.append(~self.mask[:, :, None])
        return np.concatenate([part.astype(np.float32) for part in parts], 2)

    def _targets(self) -> tuple[np.ndarray, bool]:
        if self.kind == "classification":
            return self.targets, False
        varying = self.targets[:, self.targets.std(0) > 0]
        heavy = _kurtosis(varying) > HEAVY_TAILS
        columns = [_tamed(y) if tail else y for y, tail in zip(varying.T, heavy, strict=True)]
        values = np.stack(columns, 1)
        return (values - values.mean(0)) / values.std(0), bool(heavy.any())


@dataclass(frozen=True)
class Prepared:
    """What training sees. `ignorance` is the held-out loss of the best constant answer."""

    train: Dataset
    holdout: Dataset
    loss: Loss
    ignorance: float
    compressed: bool


def _pad(rows: Any) -> tuple[np.ndarray, np.ndarray]:
    arrays = [_array(row, "a sequence") for row in rows]
    arrays = [row[:, None] if row.ndim == 1 else row for row in arrays]
    dims = {row.shape[1] for row in arrays if row.ndim == 2}
    require(
        all(row.ndim == 2 and len(row) for row in arrays) and len(dims) == 1,
        "every sequence is an array (length, token_dim) of the same token_dim, at least one token",
    )
    longest = max(len(row) for row in arrays)
    padded = np.zeros((len(arrays), longest, dims.pop()), np.float32)
    mask = np.zeros(padded.shape[:2], bool)
    for index, row in enumerate(arrays):
        padded[index, : len(row)], mask[index, : len(row)] = row, True
    return padded, mask


def _array(values: Any, name: str) -> np.ndarray:
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    array = np.asarray(values)
    require(array.ndim >= 1, f"{name} is a single value, not an array")
    return array


def _guess(values: np.ndarray) -> Kind:
    """Labels are text, booleans, or a few whole numbers that recur; everything else is a number."""
    if values.dtype.kind in "OUSb":
        return "classification"
    few = values.ndim == 1 and len(np.unique(values)) <= min(MOST_CLASSES, len(values) / 20)
    return "classification" if values.dtype.kind in "iu" and few else "regression"


def _numbers(values: np.ndarray) -> np.ndarray:
    require(values.dtype.kind in "fiub", f"targets of type {values.dtype} are not numbers")
    numbers = values.astype(np.float64).reshape(len(values), -1)
    require(bool(np.isfinite(numbers).all()), "the targets hold NaN or infinite values")
    return numbers


def _one_hot(values: np.ndarray) -> np.ndarray:
    require(values.ndim == 1 or values.shape[1] == 1, "class labels are one for each sequence")
    if values.dtype.kind == "f":
        require(bool(np.isfinite(values).all()), "the labels hold NaN or infinite values")
    labels = values.ravel().astype(str) if values.dtype == object else values.ravel()
    classes, index = np.unique(labels, return_inverse=True)
    require(
        len(classes) <= MOST_CLASSES,
        f"there are {len(classes)} classes; the probe takes at most {MOST_CLASSES}",
    )
    return np.eye(len(classes))[index]


def _standard(tokens: np.ndarray, real: np.ndarray) -> np.ndarray:
    """Mean 0 and deviation 1 over the real tokens; a coordinate that is constant becomes 0."""
    rows = tokens[real].astype(np.float64)
    spread = rows.std(0)
    return (tokens - rows.mean(0)) / np.where(spread > 1e-12, spread, 1)


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


def _ignorance(train: Dataset, holdout: Dataset, loss: Loss) -> float:
    mean = train.targets.double().mean(0)
    held = holdout.targets.double()
    if loss == "mse":
        return float((held - mean).square().mean())
    return float(-(held * torch.log(mean.clamp_min(1e-9))).sum(1).mean())
