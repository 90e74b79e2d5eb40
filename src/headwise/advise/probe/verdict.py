"""From errors by number of heads to an answer, an interval and a confidence; or a refusal.

What h heads cost is c(h) = log(error with h heads / smallest error with more), where errors below
FLOOR count as none, since they differ by the length of training alone, and differences that are
small beside FLOOR count as little. With the needed number D of
heads or more, nothing is lost: c is 0 up to the scatter of training. Below it every head is
missed. So

    P(D | errors) ∝ Π_{h ≥ D} p(c(h) | enough) · Π_{h < D} p(c(h) | too few),   D = 1, 2, …

The two densities describe random retrieval tasks (`headwise probe-eval` draws such tasks): with
enough heads c is half a bell curve, with too few it follows a gamma distribution, c² e^{−c}/2: a
factor of e³ ≈ 20 on average, hardly ever below 2; a step beyond e⁴ is no surprise, however large it
is. Both have a share of surprises.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log, pi, sqrt

FLOOR, FLOOR_OF_LABELS = 3e-4, 2e-2  # a cross-entropy falls on and on as borders sharpen
ENOUGH_SPREAD = 0.2
SURPRISES, SURPRISE_RANGE = 0.02, 10.0  # share, and the range of c over which they spread
LARGEST_COST = 4.0  # a larger one says no more
CREDIBLE = 0.95
CONFIDENT = 0.9


@dataclass(frozen=True)
class HeadVerdict:
    """Probabilities of each number of heads. `most_heads` stands for itself and all above."""

    probabilities: dict[int, float]

    @property
    def heads(self) -> int:
        """The most probable number."""
        return max(self.probabilities, key=lambda heads: self.probabilities[heads])

    @property
    def confidence(self) -> float:
        """Its probability."""
        return self.probabilities[self.heads]

    @property
    def interval(self) -> tuple[int, int]:
        """The smallest range around the answer that holds 95 % of the probability."""
        low = high = self.heads
        held = self.confidence
        while held < CREDIBLE:
            below = self.probabilities.get(low - 1, 0.0)
            above = self.probabilities.get(high + 1, 0.0)
            if below + above == 0:
                break
            low, high = (low - 1, high) if below >= above else (low, high + 1)
            held += max(below, above)
        return low, high

    def doubted(self, chance: float, most_heads: int) -> "HeadVerdict":
        """The same with this chance of the answer: what is left goes to its neighbours.

        Half as much for every step away, so that interval and confidence come from one
        distribution. The answer never becomes likelier than it was.
        """
        chance = min(chance, self.confidence)
        far = {h: 0.5 ** abs(h - self.heads) for h in range(1, most_heads + 1) if h != self.heads}
        share = (1 - chance) / (1 - self.confidence + sum(far.values()))
        rest = {h: share * (self.probabilities.get(h, 0.0) + weight) for h, weight in far.items()}
        return HeadVerdict(_ordered({**rest, self.heads: chance}))

    def joined_with(self, other: "HeadVerdict") -> "HeadVerdict":
        """Both lines of evidence together, as independent."""
        least = 1e-4
        product = {
            heads: max(p, least) * max(other.probabilities.get(heads, 0.0), least)
            for heads, p in self.probabilities.items()
        }
        return HeadVerdict(_normalised(product))


def judge(errors: Mapping[int, float], most_heads: int, floor: float = FLOOR) -> HeadVerdict:
    """`errors` by number of heads, from `most_heads` down to where the answer was clear.

    Errors below `floor` are as good as none.
    """
    fewest = min(errors)
    costs = {
        heads: _cost(error, min(errors[more] for more in errors if more > heads), floor)
        for heads, error in errors.items()
        if heads < most_heads
    }
    scores = {}
    for needed in range(fewest, most_heads + 1):
        scores[needed] = sum(
            log(_enough(cost) if heads >= needed else _too_few(cost))
            for heads, cost in costs.items()
        )
    best = max(scores.values())
    return HeadVerdict(_normalised({heads: exp(score - best) for heads, score in scores.items()}))


def from_count(count: int) -> HeadVerdict:
    """What a count of influential tokens says: it can miss features, it cannot invent them."""
    more = 0.005
    return HeadVerdict({count: 1 - 1.1 * more, count + 1: more, count + 2: 0.1 * more})


def _cost(error: float, with_more: float, floor: float) -> float:
    raised = max(error, floor) / max(with_more, floor)
    return log(min(raised, (error + floor) / (with_more + floor)))


def _enough(cost: float) -> float:
    loss = max(cost, 0.0)  # a gain is certainly no loss
    return _surprised(2 * exp(-((loss / ENOUGH_SPREAD) ** 2) / 2) / (ENOUGH_SPREAD * sqrt(2 * pi)))


def _too_few(cost: float) -> float:
    loss = min(max(cost, 0.0), LARGEST_COST)
    return _surprised(loss**2 * exp(-loss) / 2)


def _surprised(density: float) -> float:
    return (1 - SURPRISES) * density + SURPRISES / SURPRISE_RANGE


def _normalised(weights: Mapping[int, float]) -> dict[int, float]:
    total = sum(weights.values())
    return _ordered({heads: weight / total for heads, weight in weights.items()})


def _ordered(weights: Mapping[int, float]) -> dict[int, float]:
    return {heads: weights[heads] for heads in sorted(weights)}
