"""One head before and after a reduction: what the inequalities allow, and what was measured."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from headwise.core.errors import require
from headwise.core.shown import Printed
from headwise.theory.bound import rounded_up
from headwise.theory.checks import scores_array
from headwise.theory.directed import up
from headwise.theory.saturation.inequalities import (
    VACUOUS,
    Array,
    attention_shift_bound,
    row_changes,
)

_ROUNDING = 1e-9
_MEAN_DOUBT = 1e-12  # relative, of a mean, an exponential or a distance as computed
_DISTANCES_AT_ONCE = 2**22  # bounds the memory of the diameter: 32 MB


@dataclass(frozen=True, kw_only=True)
class HeadCheck(Printed):
    """The largest over all rows of each term, with what was measured beside what is allowed.

    `attention_*`: total variation of a row. `distance_*`: its Euclidean distance, e^B ε/√n for
    the n keys that the row sees. `output_*`: Euclidean distance of the head's outputs.
    """

    rows: int
    keys: int
    epsilon: float
    score_bound: float
    attention_bound: float
    attention_mean_bound: float
    attention_measured: float
    distance_bound: float
    distance_measured: float
    value_diameter: float
    output_bound: float
    output_measured: float

    @property
    def vacuous(self) -> bool:
        """Whether the certificate says no more than that probabilities are at most one."""
        return self.attention_bound > VACUOUS

    @property
    def holds(self) -> bool:
        """Whether nothing measured exceeds its bound by more than rounding."""
        pairs = (
            (self.attention_measured, self.attention_bound),
            (self.distance_measured, self.distance_bound),
            (self.output_measured, self.output_bound),
        )
        return all(measured <= bound * (1 + _ROUNDING) + _ROUNDING for measured, bound in pairs)

    def to_data(self) -> dict[str, Any]:
        """The check as JSON data."""
        return asdict(self) | {"vacuous": self.vacuous, "holds": self.holds}

    def __str__(self) -> str:
        verdict = "vacuous" if self.vacuous else "holds" if self.holds else "BROKEN"
        return (
            f"certificate of a head, {self.rows:,} rows of {self.keys:,} keys: {verdict}\n"
            f"  score change ± {self.epsilon:.4g}, scores within ± {self.score_bound:.4g}, "
            f"values' diameter {self.value_diameter:.4g}\n"
            f"  attention, total variation:   at most {rounded_up(self.attention_bound)}, "
            f"measured {self.attention_measured:.4g}\n"
            f"  attention, Euclidean:         at most {rounded_up(self.distance_bound)}, "
            f"measured {self.distance_measured:.4g}\n"
            f"  output:                       at most {rounded_up(self.output_bound)}, "
            f"measured {self.output_measured:.4g}"
        )


def check_head(
    logits: Float[Array, "rows keys"],
    reduced_logits: Float[Array, "rows keys"],
    values: Float[Array, "keys v_dim"],
) -> HeadCheck:
    """Certify one head on the inputs that gave these scores; −∞ marks keys a row may not see.

    Scores are as they enter the softmax, with their scale. `values` are what the head mixes,
    through its output projection or not: the output is measured in their space.
    """
    scores, reduced = _matrix("logits", logits), _matrix("reduced_logits", reduced_logits)
    mixed = _matrix("values", values)
    require(
        scores.shape == reduced.shape and scores.shape[1] == len(mixed),
        f"logits {scores.shape} and reduced_logits {reduced.shape} must be rows × keys, and "
        f"values {mixed.shape} keys × dimensions",
    )
    require(bool(np.isfinite(mixed).all()), "values must be finite")
    change = row_changes(scores, reduced)
    bound = attention_shift_bound(change.epsilon)
    visible = np.isfinite(scores)
    spread = np.maximum(_half_spread(scores, visible), _half_spread(reduced, visible))
    distance = np.exp(np.minimum(spread, 700.0)) * change.epsilon / np.sqrt(visible.sum(-1))
    moved = change.after - change.before
    diameter = _diameter(mixed[visible.any(0)])
    return HeadCheck(
        rows=scores.shape[0],
        keys=scores.shape[1],
        epsilon=float(change.epsilon.max()),
        score_bound=float(spread.max()),
        attention_bound=min(1.0, up(float(bound.max()))),
        attention_mean_bound=min(1.0, up(float(bound.mean()), _MEAN_DOUBT)),
        attention_measured=float(change.shift.max()),
        distance_bound=up(float(np.minimum(distance, np.sqrt(2) * bound).max()), _MEAN_DOUBT),
        distance_measured=float(np.linalg.norm(moved, axis=-1).max()),
        value_diameter=diameter,
        output_bound=up(float(bound.max()) * diameter, _MEAN_DOUBT),
        output_measured=float(np.linalg.norm(moved @ mixed, axis=-1).max()),
    )


def _matrix(name: str, value: Any) -> Array:
    array = scores_array(name, value)
    require(array.ndim == 2 and array.size > 0, f"{name} must be a matrix, not {array.shape}")
    return array


def _half_spread(scores: Array, visible: Array) -> Array:
    lowest = np.where(visible, scores, np.inf).min(-1)
    return (scores.max(-1) - lowest) / 2


def _diameter(points: Float[Array, "points dim"]) -> float:
    from scipy.spatial.distance import cdist

    step = max(1, _DISTANCES_AT_ONCE // len(points))
    parts = (points[start : start + step] for start in range(0, len(points), step))
    return max(float(cdist(part, points).max()) for part in parts)
