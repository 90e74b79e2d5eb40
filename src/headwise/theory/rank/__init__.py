"""Rank: what it costs to split attention into heads of low rank (arXiv 2407.16153).

The target is the nearest neighbour: of two points on the sphere, the one closer to the query. One
head of full rank is exact. One layer of heads of rank up to dim − 2 is not, however many there are
(the bound, over all degrees, is above 0); at rank dim − 1 and even dim, dim + 1 heads of a general
kind are (`exact_below_full_rank`).
`error` is the mean square E‖target - output‖², which is 1 for an output of zero.
"""

from headwise.theory.rank.bands import band_masses, band_thresholds, banded_error_bound
from headwise.theory.rank.lower_bound import (
    PLATEAU,
    error_lower_bound,
    heads_needed,
    low_rank_bound,
)
from headwise.theory.rank.nearly_full import exact_below_full_rank
from headwise.theory.rank.random_features import (
    RandomFeatures,
    fit_random_features,
    fit_with_short_keys,
    random_features_error,
)
from headwise.theory.rank.rates import published_rates
from headwise.theory.rank.vote import VoteError, vote_error

__all__ = [
    "PLATEAU",
    "RandomFeatures",
    "VoteError",
    "band_masses",
    "band_thresholds",
    "banded_error_bound",
    "error_lower_bound",
    "exact_below_full_rank",
    "fit_random_features",
    "fit_with_short_keys",
    "heads_needed",
    "low_rank_bound",
    "published_rates",
    "random_features_error",
    "vote_error",
]
