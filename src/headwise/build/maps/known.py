"""What a construction knows of a map: its range, how far it moves, and networks for it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headwise.build.maps.relu import Network
from headwise.build.maps.sampling import Box


@dataclass(frozen=True, kw_only=True)
class MapPlan:
    """A network not yet made: its hidden widths, its error in each output, and how to make it."""

    widths: tuple[int, ...]
    error: Float[np.ndarray, " out"]
    why: str
    make: Callable[[], Network]


@dataclass(frozen=True, kw_only=True)
class KnownMap:
    """A map on a box: the range of its values and how far it moves.

    `plan(error)` is a network whose every output is within `error` and, in exact arithmetic, in
    the range. `spread(e)` bounds the change of a scalar map when input i moves by e_i at most, and
    `one_sided(e, d)` when it moves only in the direction d_i = ±1; `terms` bounds the sum of the
    sizes of the terms of which an output is computed. `declared` are the constants that all of this
    rests on and that nothing here proves, a sentence each.
    """

    box: Box
    low: Float[np.ndarray, " out"]
    high: Float[np.ndarray, " out"]
    terms: Float[np.ndarray, " out"]
    exact: bool
    plan: Callable[[float], MapPlan]
    spread: Callable[[np.ndarray], float]
    one_sided: Callable[[np.ndarray, np.ndarray], float]
    declared: tuple[str, ...] = ()
