"""Whatever a user calls an array, as numpy numbers of a size that arithmetic can bear.

Squares of numbers beyond 1e±150 leave double precision, and a network works in single precision.
Neither the mean nor the scale of inputs and targets matters to heads, so both are taken out where
they are extreme: by a power of two, which is exact, and by a shift in double precision.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.core.errors import InputError, require

SMALLEST, LARGEST = 1e-6, 1e6  # inputs of this size go to single precision as they are
FARTHEST = 2.0**24  # of the typical deviation; single precision cannot hold both
_DISTANT = 1e4  # a mean so many deviations from zero costs four of single precision's seven digits


def plain_array(values: Any, name: str) -> np.ndarray:
    """A numpy array of numbers, booleans or text. `name` is plural, for the sentence."""
    if isinstance(values, Tensor):
        values = _from_tensor(values, name)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} are not one array: rows differ in length ({error})") from error
    require(array.ndim >= 1, f"{name} are a single value, not an array")
    if array.dtype == object:
        array = _from_objects(array, name)
    return array


def _from_tensor(values: Tensor, name: str) -> np.ndarray:
    if values.layout != torch.strided:
        values = values.to_dense()
    values = values.detach().cpu().resolve_conj().resolve_neg()
    if values.is_quantized:
        values = values.dequantize()
    if values.dtype.is_floating_point and values.dtype not in (torch.float32, torch.float64):
        values = values.float()  # numpy knows no bfloat16
    try:
        array: np.ndarray = values.numpy()
    except (TypeError, RuntimeError) as error:
        raise InputError(f"{name} of type {values.dtype} cannot be read: {error}") from error
    return array


def _from_objects(array: np.ndarray, name: str) -> np.ndarray:
    """Numbers where all are numbers, text where all are text; what is missing has no place."""
    flat = array.ravel().tolist()
    missing = sum(each is None or (isinstance(each, float) and each != each) for each in flat)
    require(missing == 0, f"{missing} of the {name} are missing (None or NaN)")
    if all(isinstance(each, str) for each in flat):
        return array.astype(str)
    numbers = (bool, int, float, np.number, np.bool_)
    if all(isinstance(each, numbers) for each in flat):
        tried = np.array(flat)
        if tried.dtype != object:
            return tried.reshape(array.shape)
    kinds = sorted({type(each).__name__ for each in flat})
    raise InputError(f"{name} are of the types {', '.join(kinds)}; numbers are accepted")


def check_finite(values: np.ndarray, name: str) -> None:
    """Refuse NaN and infinity."""
    if values.dtype.kind == "f":
        require(bool(np.isfinite(values).all()), f"the {name} hold NaN or infinite values")


def well_scaled(columns: np.ndarray, least: float = SMALLEST, most: float = LARGEST) -> np.ndarray:
    """The columns (last axis) in double precision, extreme ones times a power of two."""
    values = columns.astype(np.float64)
    size = np.abs(values).max(tuple(range(values.ndim - 1)))
    extreme = (size > 0) & ((size < least) | (size > most))
    if not extreme.any():
        return values
    exponents = np.where(extreme, np.frexp(size)[1], 0)
    return np.ldexp(values, -exponents)


def single_precision(tokens: np.ndarray, real: np.ndarray | None) -> np.ndarray:
    """Tokens for a network, shifted where their mean is far from zero for their deviation."""
    values = well_scaled(tokens)
    rows = values.reshape(-1, values.shape[-1]) if real is None else values[real]
    _check_outliers(rows)
    mean, spread = rows.mean(0), rows.std(0)
    distant = np.abs(mean) > _DISTANT * spread
    values = well_scaled(values - np.where(distant, mean, 0.0))
    if real is not None:
        values[~real] = 0.0
    return values.astype(np.float32)


def _check_outliers(rows: np.ndarray) -> None:
    for number, column in enumerate(rows.T):
        off = np.abs(column - np.median(column))
        typical = np.median(off[off > 0]) if (off > 0).any() else 0.0
        require(
            off.max() <= FARTHEST * typical or typical == 0.0,
            f"coordinate {number} of the tokens has a value {off.max() / max(typical, 1e-300):.0e} "
            "times as far from the median as is usual; single precision cannot hold it beside the "
            "others: remove it, clip it, or take logarithms",
        )
