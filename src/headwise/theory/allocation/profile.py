"""Fits of log(a·H^(−q) + b·tail(d)) to the logarithms of errors: many at once, and how sure.

A row of parameters is (log a, q, log b, s); tail(d) is d^(−s), or a given function, for which s is
held. Starting points come from a grid of exponents, where the best a, b ≥ 0 have a closed form;
Levenberg–Marquardt then refines every row (the noise of a run is relative, so that least squares of
logarithms is what maximum likelihood asks for).

**Intervals.** A value v of a parameter is inside if the best fit that has it, all others free, is
not worse than the best fit of all by an F test: RSS(v) ≤ RSS·(1 + F/f), f = runs − parameters
degrees of freedom, F the square of Student's quantile. Where the model is linear this is the
t-interval; where it bends, the interval bends with it, and where the data do not limit a parameter
it reaches the end of the search (profile likelihood; Bates and Watts, Nonlinear Regression, ch. 6).
Where it bends much, F is too small: simulated sweeps, drawn from the fit, say how large the
statistic gets where the truth is known, and the larger of the two is used.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray

LEAST, MOST = 0.05, 8.0
"""Exponents that are searched."""
_LOWEST = np.array([-60.0, LEAST, -60.0, LEAST])
_HIGHEST = np.array([60.0, MOST, 60.0, MOST])
_EXPONENTS = np.geomspace(LEAST, MOST, 31)
_STARTS = 8
_STEPS = 200
_TRIALS = 40  # values of a parameter at which its profile is computed
_CLOSE = 0.005  # how near the F test's limit an end is
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
    rows = np.clip(starts, _LOWEST, _HIGHEST)
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
        blocked = ((at <= _LOWEST) & (pull < 0)) | ((at >= _HIGHEST) & (pull > 0))
        fixed = held[index] | blocked
        jacobian = np.where(fixed[:, None, :], 0.0, jacobian)
        pull = np.where(fixed, 0.0, pull)
        gram = np.einsum("rnk,rnl->rkl", jacobian, jacobian)
        scale = np.einsum("rkk->rk", gram) + 1e-12
        gram = gram + (scale * damping[index, None])[:, :, None] * identity
        step = np.linalg.solve(gram + 1e-300 * identity, pull[..., None])[..., 0]
        moved = np.where(fixed, at, np.clip(at + step, _LOWEST, _HIGHEST))
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
    rows, cost = fit(sweep, targets, starts, _held(sweep, len(starts)))
    order = np.argsort(cost)
    rows, cost = rows[order], cost[order]
    limit = _limit(sweep, float(cost[0]))
    kept = [0]
    for index in range(1, len(rows)):
        apart = np.abs(rows[kept] - rows[index]).max(-1) > 1e-3
        if cost[index] <= limit and apart.all():
            kept.append(index)
    return rows[kept], cost[kept]


def profile_intervals(
    sweep: Sweep, found: Float[Array, "found 4"], least: float, simulations: int, seed: int
) -> Float[Array, "4 2"]:
    """The lowest and highest value of each parameter that the F test does not reject."""
    if sweep.freedom < 1:
        return np.stack([_LOWEST, _HIGHEST], -1)
    count = sweep.parameters
    parameter = np.tile(np.repeat(np.arange(count), 2), len(found))
    scatter = _scatter(sweep, least)
    needed = np.maximum(_quantile(sweep), _simulated(sweep, found[0], scatter, simulations, seed))
    limit = (least + scatter * needed)[parameter]
    side = np.tile([-1.0, 1.0], count * len(found))
    inner = np.repeat(found, 2 * count, axis=0)
    rows = np.arange(len(inner))
    held = _held(sweep, len(inner))
    held[rows, parameter] = True
    targets = np.broadcast_to(sweep.logs, (len(inner), len(sweep.logs)))
    end = np.where(side < 0, _LOWEST[parameter], _HIGHEST[parameter])
    inside = inner[rows, parameter].copy()
    outside = np.full(len(inner), np.nan)
    # √(RSS(v) − RSS) is nearly a straight line in v, so its crossing is found by interpolation.
    below, above = np.zeros(len(inner)), np.full(len(inner), np.nan)
    goal = np.sqrt(limit - least)  # a number an end
    step = side * np.maximum(_standard_errors(sweep, found, least).repeat(2), 1e-7)
    settled = inside == end
    for _ in range(_TRIALS):
        active = np.flatnonzero(~settled)
        if len(active) == 0:
            break
        at, far = inside[active], outside[active]
        share = np.clip(
            (goal[active] - below[active]) / (above[active] - below[active]), 0.05, 0.95
        )
        trial = np.where(np.isnan(far), at + step[active], at + share * (far - at))
        trial = np.where(
            side[active] < 0, np.maximum(trial, end[active]), np.minimum(trial, end[active])
        )
        start = inner[active].copy()
        start[np.arange(len(active)), parameter[active]] = trial
        moved, cost = fit(sweep, targets[active], start, held[active])
        root = np.sqrt(np.maximum(cost - least, 0.0))
        within = cost <= limit[active]
        taken, left = active[within], active[~within]
        inside[taken], inner[taken], below[taken] = trial[within], moved[within], root[within]
        step[taken] *= 2
        outside[left], above[left] = trial[~within], root[~within]
        settled[active] = np.abs(root - goal[active]) <= _CLOSE * goal[active]
        settled |= inside == end
    reached = np.where(np.isnan(outside), inside, outside)
    reached = np.where(inside == end, end, reached)
    intervals = np.stack([_LOWEST, _HIGHEST], -1)
    for index in range(count):
        ends = reached[parameter == index]
        intervals[index] = ends.min(), ends.max()
    return intervals


def one_term(sweep: Sweep, least: float) -> tuple[bool, bool]:
    """Whether the runs can be explained without heads, and without dimensions."""
    if sweep.freedom < 1:
        return True, True
    answers = []
    for scale, power in ((0, 1), (2, 3)):
        starts = np.tile(np.array([sweep.logs.mean(), 1.0, sweep.logs.mean(), 1.0]), (3, 1))
        starts[:, [1, 3]] = np.array([0.2, 1.0, 3.0])[:, None]
        starts[:, scale] = _LOWEST[scale] * 10
        held = _held(sweep, 3)
        held[:, [scale, power]] = True
        targets = np.broadcast_to(sweep.logs, (3, len(sweep.logs)))
        cost = fit(_Cleared(sweep, scale), targets, starts, held)[1]
        answers.append(bool(cost.min() <= _limit(sweep, least)))
    return answers[0], answers[1]


class _Cleared(Sweep):
    """A sweep whose model lacks one of the two terms."""

    def __init__(self, sweep: Sweep, scale: int) -> None:
        super().__init__(sweep.heads, sweep.dims, sweep.logs, sweep.tail)
        object.__setattr__(self, "_scale", scale)

    def model(self, rows: Array) -> tuple[Array, Array]:
        without = rows.copy()
        without[:, self._scale] = -np.inf  # type: ignore[attr-defined]
        return super().model(without)


def _simulated(
    sweep: Sweep, best: Float[Array, " 4"], scatter: float, count: int, seed: int
) -> Float[Array, " parameters"]:
    """The statistic's 95 % quantile for each parameter, over sweeps drawn from the fit itself."""
    rng = np.random.default_rng([seed, 8])
    noise = np.sqrt(scatter) * rng.standard_normal((count, len(sweep.logs)))
    targets = sweep.model(best[None])[0] + noise
    starts, held = np.tile(best, (count, 1)), _held(sweep, count)
    least = fit(sweep, targets, starts, held)[1]
    quantiles = []
    for index in range(sweep.parameters):
        known = held.copy()
        known[:, index] = True
        excess = fit(sweep, targets, starts, known)[1] - least
        quantiles.append(np.quantile(excess * sweep.freedom / least, 0.95))
    return np.array(quantiles)


def _limit(sweep: Sweep, least: float) -> float:
    """The sum of squares up to which a fit is as good as the best."""
    return least + _scatter(sweep, least) * _quantile(sweep)


def _scatter(sweep: Sweep, least: float) -> float:
    return max(least / max(sweep.freedom, 1), _SMALLEST_SCATTER**2)


def _quantile(sweep: Sweep) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(max(sweep.freedom, 1), 0.975) ** 2)


def _held(sweep: Sweep, count: int) -> Bool[Array, "rows 4"]:
    held = np.zeros((count, 4), bool)
    held[:, 3] = sweep.tail is not None
    return held


def _standard_errors(sweep: Sweep, found: Array, least: float) -> Float[Array, " ends"]:
    """Of every fit and parameter in turn, by linearisation: where to look for an end first."""
    jacobian = sweep.model(found)[1][..., : sweep.parameters]
    gram = np.einsum("rnk,rnl->rkl", jacobian, jacobian)
    inverse = np.linalg.pinv(gram, rcond=1e-12, hermitian=True)
    variance = np.maximum(np.einsum("rkk->rk", inverse), 1e-12)
    return np.minimum(2 * np.sqrt(variance * _scatter(sweep, least)), 1.0).ravel()


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
