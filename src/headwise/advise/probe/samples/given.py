"""The user's data, checked: sequences, targets or labels, and which tokens are real."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from headwise.advise.probe.samples.arrays import (
    check_finite,
    plain_array,
    single_precision,
    well_scaled,
)
from headwise.advise.probe.samples.coordinates import coordinates
from headwise.core.errors import require
from headwise.training.samples.specification import Loss

Kind = Literal["regression", "classification"]
LEAST_SAMPLES = 500
MOST_CLASSES = 100


@dataclass(frozen=True)
class Samples:
    """Sequences, what they are mapped to, and which tokens are real."""

    inputs: Float[np.ndarray, "samples length token_dim"]
    targets: Float[np.ndarray, "samples outputs"]  # numbers, or one-hot classes
    mask: Bool[np.ndarray, "samples length"] | None
    kind: Kind

    @property
    def count(self) -> int:
        """How many sequences."""
        return len(self.inputs)

    @property
    def length(self) -> int:
        """Tokens of the longest."""
        return self.inputs.shape[1]

    @property
    def loss(self) -> Loss:
        """What training minimises."""
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
        inputs, listed = _listed(inputs)
        require(
            mask is None or listed is None,
            "a mask goes with an array; a list of sequences has its lengths",
        )
        tokens = plain_array(inputs, "inputs")
        tokens = tokens[:, :, None] if tokens.ndim == 2 else tokens
        require(
            tokens.ndim == 3 and min(tokens.shape) >= 1 and tokens.dtype.kind in "fiub",
            f"inputs are numbers of shape (samples, length, token_dim), at least one of each, not "
            f"{tokens.dtype} of shape {tokens.shape}",
        )
        values = plain_array(targets, "targets")
        require(
            values.ndim in (1, 2) and len(values) == len(tokens) and values.size > 0,
            f"there are {len(tokens)} sequences but targets of shape {values.shape}; expected "
            f"({len(tokens)},) or ({len(tokens)}, outputs)",
        )
        keep = listed if mask is None else _mask(mask, tokens.shape[:2])
        if keep is not None:
            tokens = np.where(keep[:, :, None], tokens, 0)
            keep = None if keep.all() else keep
        check_finite(tokens, "inputs")
        check_finite(values, "targets")
        kind = _guess(values) if kind is None else kind
        require(
            kind in ("regression", "classification"), "kind is 'regression' or 'classification'"
        )
        numbers = _numbers(values) if kind == "regression" else _one_hot(values)
        return cls(single_precision(tokens, keep), numbers, keep, kind)

    @cached_property
    def groups(self) -> Int[np.ndarray, " samples"]:
        """Equal sequences have the same number, from 0 on."""
        rows = np.ascontiguousarray(self.inputs.reshape(self.count, -1) + 0.0)  # no minus zero
        keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
        number: np.ndarray = np.unique(keys, return_inverse=True)[1]
        return number.ravel()

    @cached_property
    def coordinates(self) -> Float[np.ndarray, "samples length coordinates"]:
        """What a network sees of the tokens beside their positions."""
        return coordinates(self.inputs, self.mask)

    @property
    def distinct(self) -> int:
        """How many sequences are different from each other."""
        return int(self.groups.max()) + 1

    @property
    def constant(self) -> bool:
        """Every output is the same for all sequences."""
        return bool((self.targets.min(0) == self.targets.max(0)).all())


def _listed(inputs: Any) -> tuple[Any, np.ndarray | None]:
    """A list of sequences of different lengths as a padded array and its mask; else as it is."""
    if not isinstance(inputs, list | tuple) or len(inputs) == 0:
        return inputs, None
    if all(np.isscalar(row) for row in inputs):
        return inputs, None
    arrays = [plain_array(row, "the tokens of a sequence") for row in inputs]
    if len({row.shape for row in arrays}) == 1:
        return np.stack(arrays), None
    arrays = [row[:, None] if row.ndim == 1 else row for row in arrays]
    dims = {row.shape[1] for row in arrays if row.ndim == 2}
    require(
        all(row.ndim == 2 and len(row) for row in arrays) and len(dims) == 1,
        "every sequence is an array (length, token_dim) of the same token_dim, at least one token",
    )
    require(all(row.dtype.kind in "fiub" for row in arrays), "the tokens of a sequence are numbers")
    longest = max(len(row) for row in arrays)
    padded = np.zeros((len(arrays), longest, dims.pop()))
    mask = np.zeros(padded.shape[:2], bool)
    for index, row in enumerate(arrays):
        padded[index, : len(row)], mask[index, : len(row)] = row, True
    return padded, mask


def _mask(values: Any, shape: tuple[int, int]) -> np.ndarray:
    mask = plain_array(values, "the mask's entries")
    require(mask.shape == shape, f"the mask has shape {mask.shape}, the sequences {shape}")
    require(
        mask.dtype.kind in "fiub" and bool(((mask == 0) | (mask == 1)).all()),
        "a mask is true or 1 where a token is real, false or 0 where it is padding; nothing else",
    )
    keep = mask.astype(bool)
    require(bool(keep.any(1).all()), "the mask leaves a sequence without a token")
    return keep


def _guess(values: np.ndarray) -> Kind:
    """Labels are text, booleans, or a few whole numbers that recur; everything else is a number."""
    if values.dtype.kind in "USb":
        return "classification"
    few = values.ndim == 1 and len(np.unique(values)) <= min(MOST_CLASSES, len(values) / 20)
    return "classification" if values.dtype.kind in "iu" and few else "regression"


def _numbers(values: np.ndarray) -> np.ndarray:
    require(values.dtype.kind in "fiub", f"targets of type {values.dtype} are not numbers")
    return well_scaled(values.reshape(len(values), -1), 1e-100, 1e100)


def _one_hot(values: np.ndarray) -> np.ndarray:
    require(values.ndim == 1 or values.shape[1] == 1, "class labels are one for each sequence")
    classes, index = np.unique(values.ravel(), return_inverse=True)
    require(
        len(classes) <= MOST_CLASSES,
        f"there are {len(classes)} classes; the probe takes at most {MOST_CLASSES}",
    )
    return np.eye(len(classes))[index]
