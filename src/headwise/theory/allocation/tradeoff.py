"""Heads against dimension: error(H, d) ≈ a·H^(−q) + b·tail(d), fitted to a measured sweep.

The paper's picture: more heads extract more, wider heads lose less, and H·d is what a layer may
spend. Fitted by least squares of logarithms; the intervals are those of `profile`, from the scatter
of all runs about the fit, so that they hold the scatter over seeds and the misfit of the form. A
quantity that the settings cannot determine (`design`), or that these errors do not, is named as
such instead of being given a number.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from headwise.core.errors import InputError, require
from headwise.core.shown import Printed
from headwise.theory.allocation.design import PARAMETERS, undetermined
from headwise.theory.allocation.profile import needed_statistics, one_term, profile_intervals
from headwise.theory.allocation.sweep import LEAST, MOST, Sweep, best_fits, f_quantile
from headwise.theory.checks import number, numbers, positive, whole

Array = np.ndarray
Tail = Callable[[Array], Array]

_LEAST_FREEDOM = 2
"""With one degree of freedom an interval is narrow only where the scatter is small by chance: of
the simulated sweeps that looked determined then, most intervals missed."""
_SEEN_WITHIN = 0.9  # an interval that covers more of the sweep than this says nothing


@dataclass(frozen=True)
class Estimate(Printed):
    """A number and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


@dataclass(frozen=True)
class Optimum(Printed):
    """The best number of heads at a budget of heads × dimension, or why the sweep cannot tell."""

    budget: float
    heads: Estimate | None
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True, kw_only=True)
class Tradeoff(Printed):
    """A fit. `unidentified` maps a parameter to why the sweep does not determine it.

    `exponent` is q; `tail_exponent` is s where tail(d) = d^(−s) was fitted, else None.
    `misfit` is the p-value of the form's lack of fit against the scatter over seeds.
    """

    head_scale: Estimate
    exponent: Estimate
    tail_scale: Estimate
    tail_exponent: Estimate | None
    floor: float
    scatter: float
    misfit: float | None
    unidentified: dict[str, str]
    heads_seen: tuple[int, int]
    dims_seen: tuple[int, int]
    tail: Tail | None = None
    draws: Array = field(repr=False)  # plausible rows of (a, q, b, s)

    def __str__(self) -> str:
        numbers = {
            "head_scale": self.head_scale,
            "exponent": self.exponent,
            "tail_scale": self.tail_scale,
            "tail_exponent": self.tail_exponent,
        }
        tail = "tail(d)" if self.tail_exponent is None else "d^(−tail_exponent)"
        floor = f"{self.floor:g} + " if self.floor else ""
        lines = [f"error ≈ {floor}head_scale·H^(−exponent) + tail_scale·{tail}"]
        for name, estimate in numbers.items():
            if name in self.unidentified:
                lines.append(f"  {name}: not determined: {self.unidentified[name]}")
            elif estimate is not None:
                lines.append(f"  {name}: {estimate}")
        misfit = "" if self.misfit is None else f"; p-value of the form's misfit {self.misfit:.2g}"
        return "\n".join([*lines, f"  relative scatter of the runs {self.scatter:.2g}{misfit}"])

    def error(self, heads: float | Array, dim: float | Array) -> Array:
        """The fitted error."""
        s = self.tail_exponent.value if self.tail_exponent else 1.0
        best = (self.head_scale.value, self.exponent.value, self.tail_scale.value, s)
        return self.floor + _model(np.array([best]), np.asarray(heads), np.asarray(dim), self.tail)

    def optimum(self, budget: float) -> Optimum:
        """The best heads if heads × dimension is at most `budget`, within what the sweep saw."""
        budget = positive("budget", budget)
        low = max(self.heads_seen[0], budget / self.dims_seen[1])
        high = min(self.heads_seen[1], budget / self.dims_seen[0])

        def unknown(why: str) -> Optimum:
            return Optimum(budget, None, f"The optimum at budget {budget:g} is not known: {why}.")

        if low >= high:
            return unknown("the sweep has no two head counts with dimensions near it")
        if self.unidentified:
            names = ", ".join(self.unidentified)
            return unknown(f"the sweep does not determine {names}")
        grid = np.geomspace(low, high, 513)
        found = grid[_model(self.draws, grid, budget / grid, self.tail).argmin(-1)]
        best = float(grid[self.error(grid, budget / grid).argmin()])
        step = grid[1] / grid[0]  # the grid knows no optimum better than that
        ends = np.quantile(found, [0.025, 0.975]) * [1 / step, step]
        estimate = _estimate(best, np.clip(ends, grid[0], grid[-1]))
        if best in (grid[0], grid[-1]):
            more = "at most" if best == grid[0] else "at least"
            return unknown(f"the error is least at the sweep's edge, so it is {more} {best:.3g}")
        width = np.log(estimate.high / estimate.low) / np.log(high / low)
        if width > _SEEN_WITHIN:
            return unknown(
                f"the interval, {estimate.low:.3g} to {estimate.high:.3g} heads, is the whole sweep"
            )
        return Optimum(
            budget,
            estimate,
            f"At budget {budget:g} the best is {estimate} heads of dimension {budget / best:.3g}.",
        )


def fit_tradeoff(
    heads: Float[Array, " runs"],
    dims: Float[Array, " runs"],
    errors: Float[Array, " runs"],
    *,
    tail: Tail | None = None,
    floor: float = 0.0,
    draws: int = 200,
    seed: int = 0,
) -> Tradeoff:
    """Fit the trade-off to runs (a row each; several seeds of a setting are several rows).

    `tail` is a known decreasing function of the dimension, such as the tail of a spectrum;
    without one, tail(d) = d^(−s) with s fitted. `floor` is an error that nothing can go below.
    `draws` simulated sweeps calibrate the intervals; an optimum's is taken from as many fits that
    are as plausible as the best.
    """
    h, d, y = (
        numbers(name, each) for name, each in (("heads", heads), ("dims", dims), ("errors", errors))
    )
    floor = number("floor", floor)
    y = y - floor
    draws, seed = whole("draws", draws, least=50, most=100_000), whole("seed", seed, least=0)
    require(tail is None or callable(tail), "tail is a function of the dimension, or None")
    require(len(h) == len(d) == len(y) and len(y) >= 3, "give as many heads, dims and errors")
    require(bool((y > 0).all()), "errors must be finite and above floor")
    require(bool((h >= 1).all() and (d >= 1).all()), "heads and dims must be at least 1")
    sweep = Sweep(h, d, np.log(y), tail)
    _check_tail(sweep)
    found, costs = best_fits(sweep)
    best, least = found[0], float(costs[0])
    fitted = sweep.model(best[None])[0][0]
    needed = needed_statistics(sweep, best, least, draws, seed)
    intervals = profile_intervals(sweep, found, least, needed)
    estimates = [_estimate(best[k], intervals[k], logarithm=k in (0, 2)) for k in range(4)]
    cell = _cells(h, d)
    freedom = max(1, sweep.freedom)
    return Tradeoff(
        head_scale=estimates[0],
        exponent=estimates[1],
        tail_scale=estimates[2],
        tail_exponent=estimates[3] if tail is None else None,
        floor=floor,
        scatter=float(np.sqrt(least / freedom)),
        misfit=_lack_of_fit(sweep.logs, fitted, cell, sweep.parameters),
        unidentified=_unidentified(sweep, least, estimates),
        heads_seen=(int(h.min()), int(h.max())),
        dims_seen=(int(d.min()), int(d.max())),
        tail=tail,
        draws=_plausible(sweep, best, least, needed, draws, seed),
    )


def _check_tail(sweep: Sweep) -> None:
    if sweep.tail is None:
        return
    try:
        returned = sweep.tail(sweep.dims)
    except Exception as error:  # whatever the user's function raises becomes a sentence
        raise InputError(
            f"tail, called on an array of dimensions, raised {type(error).__name__}: {error}"
        ) from error
    given = numbers("what tail returns", returned)
    require(
        len(given) == len(sweep.dims) and bool((given >= 0).all() and (given > 0).any()),
        "tail returns one number a dimension: finite, not negative, and not all zero",
    )


def _plausible(
    sweep: Sweep, best: Array, least: float, needed: Array, draws: int, seed: int
) -> Array:
    """Rows of (a, q, b, s) as sure as the fit: Student's distribution about it, by linearisation.

    Its covariance is that of least squares; its heavier tails are what f degrees of freedom leave
    unknown of the scatter. It is widened as the intervals of the parameters are.
    """
    freedom = max(1, sweep.freedom)
    jacobian = sweep.model(best[None])[1][0]
    sizes, vectors = np.linalg.eigh(jacobian.T @ jacobian)
    spread = np.where(sizes > 1e-14 * sizes[-1], 1 / np.sqrt(np.maximum(sizes, 1e-300)), 0.0)
    rng = np.random.default_rng([seed, 8])
    normal = rng.standard_normal((draws, 4)) * spread @ vectors.T
    scale = np.sqrt(least / freedom / (rng.chisquare(freedom, (draws, 1)) / freedom))
    rows = best + np.sqrt(needed.max() / f_quantile(sweep)) * scale * normal
    rows[:, [1, 3]] = np.clip(rows[:, [1, 3]], LEAST, MOST)
    rows[:, [0, 2]] = np.exp(np.clip(rows[:, [0, 2]], -60, 60))
    return np.asarray(rows)


def _model(rows: Array, heads: Array, dim: Array, tail: Tail | None) -> Array:
    a, q, b, s = (column[:, None] for column in rows.T)
    reached = dim**-s if tail is None else tail(dim)
    values = a * heads**-q + b * reached
    return values[0] if len(rows) == 1 else values


def _estimate(value: float, interval: Array, logarithm: bool = False) -> Estimate:
    low, high = interval.tolist()
    ends = (float(value), min(float(value), low), max(float(value), high))
    return Estimate(*(np.exp(ends).tolist() if logarithm else ends))


def _cells(h: Array, d: Array) -> Array:
    return np.unique(np.stack([h, d]), axis=1, return_inverse=True)[1].ravel()


def _cell_means(values: Array, cell: Array) -> Array:
    return np.bincount(cell, values) / np.bincount(cell)


def _lack_of_fit(logs: Array, fitted: Array, cell: Array, params: int) -> float | None:
    """F test of cell means around the fit against runs around their cell's mean."""
    means = _cell_means(logs, cell)
    between, within = len(means) - params, len(logs) - len(means)
    scatter = float(np.square(logs - means[cell]).sum())
    if between < 1 or within < 1 or scatter == 0:
        return None
    from scipy.stats import f

    apart = float(np.square(means[cell] - fitted).sum())
    return float(f.sf(apart / between / (scatter / within), between, within))


def _unidentified(sweep: Sweep, least: float, estimates: list[Estimate]) -> dict[str, str]:
    """What the settings cannot determine, or else what these errors do not."""
    names = PARAMETERS[: sweep.parameters]
    reasons = undetermined(sweep.heads, sweep.dims, sweep.tail)
    if reasons:
        return reasons
    if sweep.freedom < _LEAST_FREEDOM:
        left = "no scatter" if sweep.freedom < 1 else "one number for the scatter, too few"
        why = f"{len(sweep.logs)} runs for {len(names)} unknowns leave {left} to judge by; "
        return dict.fromkeys(names, why + "more seeds or settings would")
    without = one_term(sweep, least)
    sides = (("number of heads", 0), ("dimension", 2))
    for (name, index), unneeded in zip(sides, without, strict=True):
        scale, power = PARAMETERS[index], PARAMETERS[index + 1]
        fitted_power = power in names
        low, high = estimates[index + 1].low, estimates[index + 1].high
        if unneeded:
            why = f"the error may not depend on the {name} at all"
        elif fitted_power and (low <= LEAST or high >= MOST):
            why = (
                f"{scale} and {power} can be exchanged for each other: every {power} from "
                f"{low:.2g} to {high:.2g} fits (the search ends at {LEAST:.2g} and {MOST:.2g})"
            )
        else:
            continue
        reasons[scale] = why
        if fitted_power:
            reasons[power] = why
    return reasons
