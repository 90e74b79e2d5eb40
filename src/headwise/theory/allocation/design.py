"""What a sweep can determine, counted from its settings alone, before any error is looked at.

At fixed exponents the four parameters of a·H^(−q) + b·d^(−s) move the errors of the settings along
H^(−q), H^(−q)·log H, d^(−s) and d^(−s)·log d. A parameter is determined only if no combination of
these that involves it vanishes at every setting: if e_k is orthogonal to the null space of the
matrix with those columns. Four settings are therefore not enough where they are two numbers of
heads crossed with two dimensions: functions of H and functions of d on them share the constant,
which leaves three independent numbers for four unknowns.
"""

from collections.abc import Callable

import numpy as np

Array = np.ndarray
Tail = Callable[[Array], Array]

PARAMETERS = ("head_scale", "exponent", "tail_scale", "tail_exponent")
_GENERIC = ((0.9, 1.3), (1.7, 0.6), (0.45, 0.75))  # exponents at which ranks are counted
_SMALL = 1e-9


def undetermined(heads: Array, dims: Array, tail: Tail | None) -> dict[str, str]:
    """The parameters that these settings leave open, each with the reason and what would help."""
    names = PARAMETERS if tail is None else PARAMETERS[:3]
    open_ = _open(heads, dims, tail)
    if not open_.any():
        return {}
    settings = np.unique(np.stack([heads, dims]), axis=1)
    count, independent = settings.shape[1], _rank(heads, dims, tail)
    if count < len(names):
        why = f"{count} settings cannot determine {len(names)} numbers"
    else:
        why = (
            f"{count} settings of {len(set(heads.tolist()))} numbers of heads and "
            f"{len(set(dims.tolist()))} dimensions give {independent} independent numbers for "
            f"{len(names)} unknowns"
        )
    help_ = _what_would_help(heads, dims, tail)
    reasons = {}
    for index in np.flatnonzero(open_):
        varied, name = (heads, "number of heads") if index < 2 else (dims, "dimension")
        own = f"the {name} never varies" if len(set(varied.tolist())) == 1 else why
        reasons[names[index]] = own + help_
    return reasons


def _columns(heads: Array, dims: Array, tail: Tail | None, q: float, s: float) -> Array:
    first = heads**-q
    columns = [first, first * np.log(heads)]
    if tail is None:
        columns += [dims**-s, dims**-s * np.log(dims)]
    else:
        columns.append(np.asarray(tail(dims), dtype=float))
    matrix = np.stack(columns, -1)
    size = np.linalg.norm(matrix, axis=0)
    return np.asarray(matrix / np.where(size > 0, size, 1.0))


def _open(heads: Array, dims: Array, tail: Tail | None) -> Array:
    """For each parameter, whether a direction that moves it leaves every setting alone."""
    found = np.zeros(4 if tail is None else 3, bool)
    for q, s in _GENERIC:
        _, sizes, rows = np.linalg.svd(_columns(heads, dims, tail, q, s), full_matrices=True)
        full = np.zeros(len(rows))
        full[: len(sizes)] = sizes
        null = rows[full <= _SMALL * sizes[0]]
        found |= (np.abs(null) > 1e-6).any(0)
    return found


def _rank(heads: Array, dims: Array, tail: Tail | None) -> int:
    return max(
        int(np.linalg.matrix_rank(_columns(heads, dims, tail, q, s), tol=_SMALL))
        for q, s in _GENERIC
    )


def _what_would_help(heads: Array, dims: Array, tail: Tail | None) -> str:
    """The fewest further settings that determine everything, of the kinds a user would run."""
    many, wide = 2 * heads.max(), 2 * dims.max()
    offers = [
        (f"runs with {many:g} heads of dimension {dims.min():g}", [(many, dims.min())]),
        (f"runs with {heads.min():g} heads of dimension {wide:g}", [(heads.min(), wide)]),
        (
            f"a third number of heads and a third dimension, such as {many:g} × {dims.min():g} "
            f"and {heads.min():g} × {wide:g}",
            [(many, dims.min()), (heads.min(), wide)],
        ),
    ]
    for words, extra in offers:
        more = np.array(extra, dtype=float).T
        if not _open(np.append(heads, more[0]), np.append(dims, more[1]), tail).any():
            return f"; {words} would"
    return "; three numbers of heads and three dimensions, varied apart, would"
