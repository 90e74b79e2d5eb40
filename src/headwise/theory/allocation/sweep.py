"""Fits of log(a·H^(−q) + b·tail(d)) to the logarithms of errors, many at once.

A row of parameters is (log a, q, log b, s); tail(d) is d^(−s), or a given function, for which s is
held. Starting points come from a grid of exponents, where the best a, b ≥ 0 have a closed form;
Levenberg–Marquardt then refines every row (the noise of a run is relative, so that least squares of
logarithms is what maximum likelihood asks for).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray

LEAST, MOST = 0.05, 8.0
"""Exponents that are searched."""
LOWEST = np.array([-60.0, LEAST, -60.0, LEAST])
"""The lower end of the search, for a row of parameters."""
HIGHEST = np.array([60.0, MOST, 60.0, MOST])
"""The upper end of the search."""
_EXPONENTS = np.geomspace(LEAST, MOST, 31)
_STARTS = 8
_STEPS = 200
_SMALLEST_SCATTER = 1e-9  # relative; below it two fits are equally good


@dataclass(frozen=True)
class Sweep:
    """The runs that a fit explains: heads, dimensions, log errors; `tail` is None for d^(−s)."""

    heads: Float[Array, " runs"]
    dims: Float[Array, " runs"]
    logs: Float[Array, " runs"]
    tail: Callable[[Array], Array] | None

    @property
    def parameters(self) -> int:
        """How many numbers are fitted."""
        return 4 if self.tail is None else 3

    @property
    def freedom(self) -> int:
        """Degrees of freedom that are left for the scatter."""
        return len(self.logs) - self.parameters

    def tails(self, exponents: Float[Array, " rows"]) -> Float[Array, "rows runs"]:
        """tail(d) of every run."""
        if self.tail is None:
            return np.asarray(self.dims ** -exponents[:, None])
        given = np.asarray(self.tail(self.dims), dtype=float)
        return np.broadcast_to(given, (len(exponents), len(given)))

    def model(
        self, rows: Float[Array, "rows 4"]
    ) -> tuple[Float[Array, "rows runs"], Float[Array, "rows runs 4"]]:
        """The logarithm of every run's fitted error, and its derivatives by the parameters."""
        log_heads, log_dims = np.log(self.heads), np.log(self.dims)
        first = rows[:, :1] - rows[:, 1:2] * log_heads
        with np.errstate(divide="ignore"):
            second = rows[:, 2:3] + np.log(self.tails(rows[:, 3]))
        total = np.logaddexp(first, second)
        share = np.exp(first - total)
        by_s = -(1 - share) * log_dims if self.tail is None else np.zeros_like(share)
        return total, np.stack([share, -share * log_heads, 1 - share, by_s], -1)


def fit(
    sweep: Sweep,
    targets: Float[Array, "rows runs"],
    starts: Float[Array, "rows 4"],
    held: Bool[Array, "rows 4"],
) -> tuple[Float[Array, "rows 4"], Float[Array, " rows"]]:
    """Levenberg–Marquardt for every row at once: parameters and sums of squares.

    Held parameters stay; the others stay between the ends of the search.
    """
    rows = np.clip(starts, LOWEST, HIGHEST)
    value, slope = sweep.model(rows)
    cost = np.square(targets - value).sum(-1)
    damping = np.full(len(rows), 1e-3)
    alive = np.ones(len(rows), bool)
    identity = np.eye(4)
    for _ in range(_STEPS):
        index = np.flatnonzero(alive)
        if len(index) == 0:
            break
        at, jacobian = rows[index], slope[index]
        residual = targets[index] - value[index]
        pull = np.einsum("rnk,rn->rk", jacobian, residual)
        blocked = ((at <= LOWEST) & (pull < 0)) | ((at >= HIGHEST) & (pull > 0))
        fixed = held[index] | blocked
        jacobian = np.where(fixed[:, None, :], 0.0, jacobian)
        pull = np.where(fixed, 0.0, pull)
        gram = np.einsum("rnk,rnl->rkl", jacobian, jacobian)
        scale = np.einsum("rkk->rk", gram) + 1e-12
        gram = gram + (scale * damping[index, None])[:, :, None] * identity
        step = np.linalg.solve(gram + 1e-300 * identity, pull[..., None])[..., 0]
        moved = np.where(fixed, at, np.clip(at + step, LOWEST, HIGHEST))
        new_value, new_slope = sweep.model(moved)
        new_cost = np.square(targets[index] - new_value).sum(-1)
        better = new_cost < cost[index]
        gained = cost[index] - new_cost
        done = (better & (gained <= 1e-9 * cost[index])) | (damping[index] > 1e12)
        done |= (cost[index] < 1e-29) | (np.abs(pull).max(-1) == 0)
        taken = index[better]
        rows[taken], value[taken], slope[taken] = (
            moved[better],
            new_value[better],
            new_slope[better],
        )
        cost[taken] = new_cost[better]
        damping[index] = np.where(better, np.maximum(damping[index] / 9, 1e-14), damping[index] * 4)
        alive[index[done]] = False
    return rows, cost


def best_fits(sweep: Sweep) -> tuple[Float[Array, "found 4"], Float[Array, " found"]]:
    """The best fit first, then every other that is as good within its scatter."""
    starts = _starts(sweep)
    targets = np.broadcast_to(sweep.logs, (len(starts), len(sweep.logs)))
    rows, cost = fit(sweep, targets, starts, held_rows(sweep, len(starts)))
    order = np.argsort(cost)
    rows, cost = rows[order], cost[order]
    allowed = limit(sweep, float(cost[0]))
    kept = [0]
    for index in range(1, len(rows)):
        apart = np.abs(rows[kept] - rows[index]).max(-1) > 1e-3
        if cost[index] <= allowed and apart.all():
            kept.append(index)
    return rows[kept], cost[kept]


def limit(sweep: Sweep, least: float) -> float:
    """The sum of squares up to which a fit is as good as the best."""
    return least + scatter_of(sweep, least) * f_quantile(sweep)


def scatter_of(sweep: Sweep, least: float) -> float:
    """The variance of a run about the fit, never quite 0."""
    return max(least / max(sweep.freedom, 1), _SMALLEST_SCATTER**2)


def f_quantile(sweep: Sweep) -> float:
    """The 95 % quantile of the F test of one parameter: the square of Student's."""
    from scipy.special import stdtrit

    return float(stdtrit(max(sweep.freedom, 1), 0.975) ** 2)


def held_rows(sweep: Sweep, count: int) -> Bool[Array, "rows 4"]:
    """What stays in every row: the exponent of a tail that is given."""
    held = np.zeros((count, 4), bool)
    held[:, 3] = sweep.tail is not None
    return held


def _starts(sweep: Sweep) -> Float[Array, "starts 4"]:
    """The local minima of relative least squares on a grid of exponents, the best first."""
    tail_exponents = _EXPONENTS if sweep.tail is None else np.ones(1)
    errors = np.exp(sweep.logs)
    head = sweep.heads ** -_EXPONENTS[:, None] / errors
    tail = sweep.tails(tail_exponents) / errors
    ff, gg, fg = np.square(head).sum(-1)[:, None], np.square(tail).sum(-1)[None], head @ tail.T
    fy, gy = head.sum(-1)[:, None], tail.sum(-1)[None]
    determinant = ff * gg - fg**2
    safe = np.where(determinant <= 1e-12 * ff * gg, np.inf, determinant)
    a, b = (gg * fy - fg * gy) / safe, (ff * gy - fg * fy) / safe
    outside = np.isinf(safe) | (a <= 0) | (b <= 0)
    a, b = np.where(outside, fy / ff / 2, a), np.where(outside, gy / gg / 2, b)
    lost = -2 * (a * fy + b * gy) + a * a * ff + 2 * a * b * fg + b * b * gg
    padded = np.pad(lost, 1, constant_values=np.inf)
    around = [
        padded[1 + i : padded.shape[0] - 1 + i, 1 + j : padded.shape[1] - 1 + j]
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i, j) != (0, 0)
    ]
    least = np.flatnonzero((lost <= np.min(around, axis=0)).ravel())
    order = least[np.argsort(lost.ravel()[least])][:_STARTS]
    i, j = np.unravel_index(order, lost.shape)
    return np.stack([np.log(a[i, j]), _EXPONENTS[i], np.log(b[i, j]), tail_exponents[j]], -1)
