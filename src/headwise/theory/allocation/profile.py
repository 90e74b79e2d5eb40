"""How sure the parameters of a fitted sweep are: profile likelihood, calibrated by simulation.

A value v of a parameter is inside if the best fit that has it, all others free, is
not worse than the best fit of all by an F test: RSS(v) ≤ RSS·(1 + F/f), f = runs − parameters
degrees of freedom, F the square of Student's quantile. Where the model is linear this is the
t-interval; where it bends, the interval bends with it, and where the data do not limit a parameter
it reaches the end of the search (profile likelihood; Bates and Watts, Nonlinear Regression, ch. 6).
Where it bends much, F is too small: simulated sweeps, drawn from the fit, say how large the
statistic gets where the truth is known. So it is where runs of some settings scatter more than
others: there a run is drawn with its own residual, at the size that it had before the fit followed
it, and a random sign (the wild bootstrap with HC3 residuals; MacKinnon and White 1985). The largest
of the three is used. A single run that alone determines a parameter has no residual to show: that
it scatters more than others no method can see.
"""

import numpy as np
from jaxtyping import Float

from headwise.theory.allocation.sweep import (
    HIGHEST,
    LOWEST,
    Array,
    Sweep,
    f_quantile,
    fit,
    held_rows,
    limit,
    scatter_of,
)

_TRIALS = 40  # values of a parameter at which its profile is computed
_CLOSE = 0.005  # how near the F test's limit an end is
_MOST_FOLLOWED = 0.1  # 1 − leverage of a run, at least


def needed_statistics(
    sweep: Sweep, best: Float[Array, " 4"], least: float, simulations: int, seed: int
) -> Float[Array, " parameters"]:
    """For each parameter the statistic that a value must exceed to be outside."""
    needed = np.full(sweep.parameters, f_quantile(sweep))
    if sweep.freedom >= 1:
        for noise in _noises(sweep, best, scatter_of(sweep, least), simulations, seed):
            needed = np.maximum(needed, _simulated(sweep, best, noise))
    return needed


def profile_intervals(
    sweep: Sweep,
    found: Float[Array, "found 4"],
    least: float,
    needed: Float[Array, " parameters"],
) -> Float[Array, "4 2"]:
    """The lowest and highest value of each parameter whose statistic is not above the needed."""
    if sweep.freedom < 1:
        return np.stack([LOWEST, HIGHEST], -1)
    count = sweep.parameters
    parameter = np.tile(np.repeat(np.arange(count), 2), len(found))
    scatter = scatter_of(sweep, least)
    allowed = (least + scatter * needed)[parameter]
    side = np.tile([-1.0, 1.0], count * len(found))
    inner = np.repeat(found, 2 * count, axis=0)
    rows = np.arange(len(inner))
    held = held_rows(sweep, len(inner))
    held[rows, parameter] = True
    targets = np.broadcast_to(sweep.logs, (len(inner), len(sweep.logs)))
    end = np.where(side < 0, LOWEST[parameter], HIGHEST[parameter])
    inside = inner[rows, parameter].copy()
    outside = np.full(len(inner), np.nan)
    # √(RSS(v) − RSS) is nearly a straight line in v, so its crossing is found by interpolation.
    below, above = np.zeros(len(inner)), np.full(len(inner), np.nan)
    goal = np.sqrt(allowed - least)  # a number an end
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
        within = cost <= allowed[active]
        taken, left = active[within], active[~within]
        inside[taken], inner[taken], below[taken] = trial[within], moved[within], root[within]
        step[taken] *= 2
        outside[left], above[left] = trial[~within], root[~within]
        settled[active] = np.abs(root - goal[active]) <= _CLOSE * goal[active]
        settled |= inside == end
    reached = np.where(np.isnan(outside), inside, outside)
    reached = np.where(inside == end, end, reached)
    intervals = np.stack([LOWEST, HIGHEST], -1)
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
        starts[:, scale] = LOWEST[scale] * 10
        held = held_rows(sweep, 3)
        held[:, [scale, power]] = True
        targets = np.broadcast_to(sweep.logs, (3, len(sweep.logs)))
        cost = fit(_Cleared(sweep, scale), targets, starts, held)[1]
        answers.append(bool(cost.min() <= limit(sweep, least)))
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


def _noises(
    sweep: Sweep, best: Float[Array, " 4"], scatter: float, count: int, seed: int
) -> tuple[Float[Array, "count runs"], Float[Array, "count runs"]]:
    """Scatter that is the same for all runs, and scatter of each run's own size."""
    rng = np.random.default_rng([seed, 8])
    even = np.sqrt(scatter) * rng.standard_normal((count, len(sweep.logs)))
    fitted, slopes = sweep.model(best[None])
    slopes = slopes[0, :, : sweep.parameters]
    followed = np.einsum("nk,kn->n", slopes, np.linalg.pinv(slopes, rcond=1e-10))
    own = (sweep.logs - fitted[0]) / np.maximum(1 - followed, _MOST_FOLLOWED)
    return even, own * rng.choice([-1.0, 1.0], (count, len(own)))


def _simulated(
    sweep: Sweep, best: Float[Array, " 4"], noise: Float[Array, "count runs"]
) -> Float[Array, " parameters"]:
    """The statistic's 95 % quantile for each parameter, over sweeps drawn from the fit itself."""
    targets = sweep.model(best[None])[0] + noise
    starts, held = np.tile(best, (len(noise), 1)), held_rows(sweep, len(noise))
    least = fit(sweep, targets, starts, held)[1]
    scatter = np.array([scatter_of(sweep, float(each)) for each in least])
    quantiles = []
    for index in range(sweep.parameters):
        known = held.copy()
        known[:, index] = True
        excess = fit(sweep, targets, starts, known)[1] - least
        quantiles.append(np.quantile(excess / scatter, 0.95))
    return np.array(quantiles)


def _standard_errors(sweep: Sweep, found: Array, least: float) -> Float[Array, " ends"]:
    """Of every fit and parameter in turn, by linearisation: where to look for an end first."""
    jacobian = sweep.model(found)[1][..., : sweep.parameters]
    gram = np.einsum("rnk,rnl->rkl", jacobian, jacobian)
    inverse = np.linalg.pinv(gram, rcond=1e-12, hermitian=True)
    variance = np.maximum(np.einsum("rkk->rk", inverse), 1e-12)
    return np.minimum(2 * np.sqrt(variance * scatter_of(sweep, least)), 1.0).ravel()
