"""Counts, majorities, parities and quantiles: one head in principle, and jumps in the target.

For all of them an average of indicators, v = [x > c], is enough: one head. But an indicator is no
continuous function. A network of slope s errs on the tokens within 1/s of c, and more heads
sharpen it further, at every width: the error falls gradually and no number stands out. One head
is right; so is a refusal, unless the tokens keep away from the threshold.
"""

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from headwise.advise.probe.zoo.task import REFUSE, Tokens, Value, ZooTask, right, some_noise
from headwise.advise.probe.zoo.tokens import any_shape, independent


def _jumping(rng: Generator, about: str, value: Value, labels: bool = False) -> ZooTask:
    length, token_dim = any_shape(rng, longest=64, widest=3)
    words = f"{about}, length {length}, token_dim {token_dim}"
    tokens = independent(rng, length, token_dim)
    noise = 0.0 if labels else some_noise(rng)
    return ZooTask(words, right(1, REFUSE), tokens, value, noise, labels)


def hard_counts(rng: Generator) -> ZooTask:
    """Σ [x_t > c]: average of the indicator, which jumps."""
    c = float(rng.uniform(-0.5, 1))
    return _jumping(rng, f"count of x > {c:.2f}", lambda x: (x[..., 0] > c).double().sum(1))


def box_counts(rng: Generator) -> ZooTask:
    """Tokens inside an interval: average of its indicator, which jumps twice."""
    low = float(rng.uniform(-1, 0))
    high = low + float(rng.uniform(0.5, 1.5))
    return _jumping(
        rng,
        f"count of {low:.2f} < x < {high:.2f}",
        lambda x: ((x[..., 0] > low) & (x[..., 0] < high)).double().sum(1),
    )


def majorities(rng: Generator) -> ZooTask:
    """Are more tokens above zero than below? The readout thresholds an average of indicators."""
    return _jumping(
        rng,
        "majority above zero, a label",
        lambda x: ((x[..., 0] > 0).double().mean(1) > 0.5).long(),
        labels=True,
    )


def exact_counts(rng: Generator) -> ZooTask:
    """Are exactly k tokens above c? A readout that is one at k/T and zero at (k ± 1)/T."""
    share = float(rng.uniform(0.15, 0.3))
    return _jumping(
        rng,
        f"is exactly a share {share:.2f} of the tokens above 0.8, a label",
        lambda x: ((x[..., 0] > 0.8).sum(1) == round(share * x.shape[1])).long(),
        labels=True,
    )


def parities(rng: Generator) -> ZooTask:
    """The count of positive tokens, odd or even: T teeth of a readout on one average."""
    length = int(rng.integers(6, 25))
    signs = rng.random() < 0.5

    def tokens(rng: Generator, count: int) -> np.ndarray:
        drawn = rng.standard_normal((count, length, 1))
        return np.sign(drawn) if signs else drawn

    return ZooTask(
        f"parity of {length} {'signs' if signs else 'tokens above zero'}",
        right(1, REFUSE),
        tokens,
        lambda x: (x[..., 0] > 0).long().sum(1) % 2,
        labels=True,
    )


def _kept_away(length: int, margin: float) -> Tokens:
    """Tokens whose first coordinate is at least a margin from zero."""

    def draw(rng: Generator, count: int) -> np.ndarray:
        size = margin + np.abs(rng.standard_normal((count, length, 1)))
        return size * rng.choice([-1.0, 1.0], (count, length, 1))

    return draw


def clear_counts(rng: Generator) -> ZooTask:
    """Count of positive tokens where none is within 0.3 of zero: v has slope 1/0.3 there. 1 head.

    On the tokens that occur, the indicator equals clip(x/0.6 + 1/2, 0, 1), which is continuous.
    """
    length, margin = int(rng.integers(8, 49)), float(rng.uniform(0.3, 0.6))
    return ZooTask(
        f"count of positive tokens that keep {margin:.2f} from zero, length {length}",
        right(1),
        _kept_away(length, margin),
        lambda x: (x[..., 0] > 0).double().sum(1),
        some_noise(rng),
    )


def quantiles(rng: Generator) -> ZooTask:
    """A quantile or the median of x. One head in principle, of many dimensions: 1 or a refusal.

    The averages of the ramps relu(x − c_j), j = 1..n, hold the distribution up to 1/n, and its
    quantile is a readout of them. With 8 dimensions n is 8, and more heads add more c_j: the error
    falls gradually. No single token's choice gives a quantile.
    """
    q = float(rng.uniform(0.25, 0.75))
    return _jumping(
        rng, f"quantile {q:.2f}", lambda x: torch.quantile(x[..., 0], q, 1, interpolation="linear")
    )


def spreads_of_quantiles(rng: Generator) -> ZooTask:
    """Interquartile range: both quartiles from the one head of `quantiles`; 1 or a refusal."""

    def value(x: Tensor) -> Tensor:
        levels = torch.tensor([0.25, 0.75], dtype=x.dtype)
        low, high = torch.quantile(x[..., 0], levels, 1)
        return high - low

    return _jumping(rng, "interquartile range", value)


CLASSES = (
    hard_counts,
    box_counts,
    majorities,
    exact_counts,
    parities,
    clear_counts,
    quantiles,
    spreads_of_quantiles,
)
