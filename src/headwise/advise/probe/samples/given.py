"""The user's data, checked: sequences, targets or labels, and which tokens are real."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from headwise.core.errors import InputError, require
from headwise.training.samples.specification import Loss

Kind = Literal["regression", "classification"]
LEAST_SAMPLES = 500
MOST_CLASSES = 100
SIZES, TARGET_SIZES = (1e-15, 1e15), (1e-100, 1e100)  # squares of inputs are single precision


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

    @cached_property
    def first_of_its_kind(self) -> Bool[np.ndarray, " samples"]:
        """True for a sequence that did not occur before: only those are tried and trained on.

        A repeated sequence in the held-out part would be known from training.
        """
        rows = np.ascontiguousarray(self.inputs.reshape(self.count, -1))
        if self.mask is not None:
            rows = np.concatenate([rows, self.mask], 1).astype(np.float32)
        _, places = np.unique(rows.view(f"V{rows.shape[1] * 4}").ravel(), return_index=True)
        first = np.zeros(self.count, bool)
        first[places] = True
        return first

    def without_repeats(self) -> "Samples":
        """The same with every sequence once."""
        if self.first_of_its_kind.all():
            return self
        keep = self.first_of_its_kind
        mask = None if self.mask is None else self.mask[keep]
        return Samples(self.inputs[keep], self.targets[keep], mask, self.kind)

    @classmethod
    def of(cls, inputs: Any, targets: Any, mask: Any = None, kind: Kind | None = None) -> "Samples":
        """Check what the user gave; sequences of different lengths come as a list."""
        if isinstance(inputs, list | tuple) and _ragged(inputs):
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
        keep = None if mask is None else _array(mask, "mask")
        if keep is not None:
            require(keep.dtype.kind in "biuf", f"a mask is true or false, not {keep.dtype}")
            keep = keep.astype(bool)
            require(
                keep.shape == tokens.shape[:2],
                f"the mask has shape {keep.shape}, the sequences {tokens.shape[:2]}",
            )
            require(bool(keep.any(1).all()), "the mask leaves a sequence without a token")
            tokens = np.where(keep[:, :, None], tokens, 0)
            keep = None if keep.all() else keep
        require(bool(np.isfinite(tokens).all()), "the inputs hold NaN or infinite values")
        _check_size(tokens, "inputs", *SIZES)
        tokens = tokens.astype(np.float32)
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


def _ragged(rows: Any) -> bool:
    """Sequences of different lengths."""
    require(
        all(hasattr(row, "__len__") for row in rows),
        "inputs are a list of sequences; some of them are no sequence",
    )
    return len({len(row) for row in rows}) > 1


def _pad(rows: Any) -> tuple[np.ndarray, np.ndarray]:
    arrays = [_array(row, "tokens of a sequence") for row in rows]
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
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:  # rows of different lengths
        raise InputError(
            f"{name} do not form an array ({error}); sequences may differ in length, not in "
            "token_dim, and are then a list of arrays (length, token_dim)"
        ) from error
    require(array.ndim >= 1, f"{name} is a single value, not an array")
    return array


def _check_size(values: np.ndarray, name: str, least: float, most: float) -> None:
    """Numbers whose squares are numbers."""
    if values.dtype.kind != "f":
        return
    largest = float(np.abs(values).max())
    require(
        largest == 0 or least <= largest <= most,
        f"the largest of the {name} is {largest:.1e}; give them in units in which it is between "
        f"{least:g} and {most:g}",
    )


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
    _check_size(numbers, "targets", *TARGET_SIZES)
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
