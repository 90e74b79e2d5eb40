"""Means with their uncertainty: the one t-interval, its form for skewed values, differences."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import nan, sqrt
from typing import Literal

import numpy as np
from scipy.special import ndtri, stdtrit  # scipy.stats takes a second to import

Sign = Literal["better", "worse", "not told apart"]


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % t-interval over seeds; the bounds are NaN where there is one seed."""

    mean: float
    low: float
    high: float
    seeds: int

    @staticmethod
    def of(values: Iterable[float], level: float = 0.95) -> "Interval":
        """Student's interval of the mean: exact for Gaussian values, the usual choice for few."""
        known = np.fromiter(values, float)
        if len(known) == 0:
            return Interval(nan, nan, nan, 0)
        mean, half = float(known.mean()), nan
        if len(known) > 1:
            spread = float(known.std(ddof=1)) / sqrt(len(known))
            half = float(stdtrit(len(known) - 1, (1 + level) / 2)) * spread
        return Interval(mean, mean - half, mean + half, len(known))

    @staticmethod
    def of_skewed(values: Iterable[float], level: float = 0.95) -> "Interval":
        """Hall's interval of the mean, for values of which few make most of the sum.

        With skewness γ, T = √n (mean − μ)/s has P(T ≤ x) = Φ(x) + γ(2x² + 1)φ(x)/(6√n) + O(1/n).
        g(T) = T + γT²/(3√n) + γ²T³/(27n) + γ/(6√n) lacks the term in 1/√n and is monotone, being
        (√n/γ) ((1 + γT/(3√n))³ − 1) + γ/(6√n): bounds of g(T) by Student's t are solved for μ.
        That few of them look skewed the other way is chance, and would lower the upper end: then it
        is the plain interval.
        """
        known = np.fromiter(values, float)
        plain = Interval.of(known, level)
        deviation = known - plain.mean
        variance = float((deviation**2).mean()) if len(known) > 2 else 0.0
        if not variance > 0:
            return plain
        root, spread = sqrt(len(known)), float(known.std(ddof=1))
        skewness = float((deviation**3).mean()) / variance**1.5
        if skewness < 1e-6:
            return plain
        reach = float(stdtrit(len(known) - 1, (1 + level) / 2))
        low, high = (
            plain.mean
            - 3
            * spread
            / skewness
            * (np.cbrt(1 + skewness * (t - skewness / (6 * root)) / root) - 1)
            for t in (reach, -reach)
        )
        return Interval(plain.mean, float(low), float(high), len(known))

    @staticmethod
    def of_share(hits: int, trials: int, level: float = 0.95) -> "Interval":
        """Wilson's interval of a share: sound for few trials, and for shares near 0 and 1."""
        if trials == 0:
            return Interval(nan, nan, nan, 0)
        z, share = float(ndtri((1 + level) / 2)), hits / trials
        centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
        half = z / (1 + z * z / trials)
        half *= sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
        return Interval(share, max(0.0, centre - half), min(1.0, centre + half), trials)

    @property
    def sign(self) -> Sign:
        """Of a difference of losses: is the first better than the second?"""
        if self.high < 0:
            return "better"
        return "worse" if self.low > 0 else "not told apart"

    def __str__(self) -> str:
        if self.low != self.low:
            return f"{self.mean:+.4f} (one seed)" if self.seeds else "not measured"
        return f"{self.mean:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"
