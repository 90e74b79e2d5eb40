"""How an asked error is shared out, what a construction may cost, and where it holds."""

from collections.abc import Callable
from math import erfc, expm1, log1p, sqrt
from typing import NamedTuple

import numpy as np

from headwise.build.maps.known import KnownMap, MapPlan
from headwise.build.maps.networks import known_features, known_outer
from headwise.build.maps.sampling import Box
from headwise.core.array_files import half_of_memory
from headwise.core.errors import InputError, require
from headwise.nets import ClassTokenShape
from headwise.tasks.retrieval import Retrieval
from headwise.theory.bound import readable
from headwise.theory.checks import numbers, positive, shown, whole

GAUSSIAN_REACH = 40.0
"""A standard normal is larger than this with probability below 1e-349."""
FLOAT_SHARE = 0.005
"""Of the asked error, kept for rounding."""
_BYTES = 8  # a number in double precision
_TINY, _HUGE = 1e-30, 1e300
_SHARES = np.linspace(0.1, 0.9, 9)


class KnownTask(NamedTuple):
    """A task's features and outer map, with the box that they are known on, and that given."""

    features: KnownMap
    outer: KnownMap
    box: Box
    given: tuple[float, float] | None
    assumptions: tuple[str, ...]


class MapPlans(NamedTuple):
    """A network for the features and one for the outer map."""

    features: MapPlan
    outer: MapPlan


def known_task(
    task: Retrieval, box: tuple[float, float] | None, bounded: bool, heading: str
) -> KnownTask:
    """What is known of the task, on the box given or the one that its inputs imply.

    `bounded` says that the construction needs bounded tokens whatever the maps are.
    """
    require(isinstance(task, Retrieval), f"task must be a Retrieval, not {shown(task)}")
    if box is not None:
        low, high = check_box(box)
        assumptions = [f"Every coordinate of every token lies in [{low:g}, {high:g}]."]
        if task.inputs == "gaussian":
            assumptions.append(_outside(low, high, task.length * task.token_dim))
    elif task.inputs == "uniform":
        low, high = 0.0, 1.0
        assumptions = ["Every coordinate of every token lies in [0, 1]."]
    else:
        low, high = -GAUSSIAN_REACH, GAUSSIAN_REACH
        assumptions = [
            "Tokens are any real vectors; the term for float arithmetic is for coordinates of at "
            f"most {high:g} in size, which a Gaussian exceeds with probability below 1e-349."
        ]
    dim = task.token_dim
    domain = Box(np.full(dim, low), np.full(dim, high))
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused here
        features = known_features(task.features, domain)
        _check_finite(features, "features reach")
        outer = known_outer(task.outer, Box(features.low, features.high))
        _check_finite(outer, "target reaches")
    unbounded = task.inputs == "gaussian" and box is None
    if unbounded and (bounded or task.subsets or not (features.exact and outer.exact)):
        raise InputError(
            f"Gaussian tokens are unbounded and {heading} needs the range of the features: give "
            "a box such as (-6, 6) for the tokens' coordinates; the certificate then holds there"
        )
    assumptions.append("The task's maps are what they compute in double precision.")
    assumptions += [*features.declared, *outer.declared]
    return KnownTask(features, outer, domain, box, tuple(assumptions))


def _check_finite(known: KnownMap, what: str) -> None:
    require(
        bool(np.isfinite(known.terms).all() and np.isfinite(known.high - known.low).all()),
        f"the {what} numbers beyond double precision on this box of tokens: give a smaller box",
    )


def check_box(box: tuple[float, float]) -> tuple[float, float]:
    """The ends of an interval, the smaller first."""
    ends = numbers("box", box)
    require(
        len(ends) == 2 and float(ends[0]) < float(ends[1]),
        f"box is two finite numbers, the smaller first, not {shown(box)}",
    )
    return float(ends[0]), float(ends[1])


def share_out(
    what: KnownTask, available: float, shape_of: Callable[[MapPlans], ClassTokenShape]
) -> MapPlans:
    """Plans whose errors together are at most `available`, with the fewest parameters."""
    unit = max(what.outer.spread(np.ones(len(what.outer.box.low))), 1e-300)
    if what.features.exact or what.outer.exact:
        shares = [0.0 if what.features.exact else 1.0]
    else:
        shares = _SHARES.tolist()
    plans = [
        MapPlans(
            what.features.plan(share * available / unit), what.outer.plan((1 - share) * available)
        )
        for share in shares
    ]
    return min(plans, key=lambda each: shape_of(each).params()["mlp"])


def check_error(error: float | None) -> float | None:
    """A positive number, or None where it is left open."""
    return None if error is None else in_reach("error", error)


def in_reach(name: str, value: float) -> float:
    """A positive number that arithmetic in double precision can work with."""
    number = positive(name, value)
    require(
        _TINY <= number <= _HUGE,
        f"{name} is {number:g}; from {_TINY:g} to {_HUGE:g} can be worked with",
    )
    return number


def check_memory(shape: ClassTokenShape, max_bytes: int | None) -> None:
    """Refuse a network that would not fit, before anything of its size is allocated."""
    limit = half_of_memory() if max_bytes is None else whole("max_bytes", max_bytes, most=None)
    check_numbers(
        shape.params()["total"],
        "the network would have {} parameters",
        ". A larger error or max_bytes=… help",
        limit,
    )


def check_numbers(count: int, sentence: str, help_: str = "", limit: int | None = None) -> None:
    """Refuse more numbers than fit; the sentence says what they are, {} how many."""
    limit = half_of_memory() if limit is None else limit
    require(
        _BYTES * count <= limit,
        f"{sentence.format(readable(count))}, {_size(_BYTES * count)} in double precision; the "
        f"limit is {_size(limit)}{help_}",
    )


def _size(count: int) -> str:
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB")):
        if count >= unit:
            return f"{readable(count // unit)} {name}"
    return f"{count:,} bytes"


def _outside(low: float, high: float, count: int) -> str:
    one = (erfc(-low / sqrt(2)) + erfc(high / sqrt(2))) / 2
    some = -expm1(count * log1p(-min(one, 1 - 1e-16)))
    return f"A Gaussian sequence has a coordinate outside it with probability {some:.2g}."
