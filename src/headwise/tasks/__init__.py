"""What there is to learn: each task draws data from a seed and knows its exact answer."""

from headwise.tasks.assumptions import Assumption, check_assumptions
from headwise.tasks.maps import Affine, Bowl, Function, Product, Sum, WeightedSum
from headwise.tasks.retrieval import PRESETS, Retrieval, max_plus_min, sum_of_maxima

__all__ = [
    "PRESETS",
    "Affine",
    "Assumption",
    "Bowl",
    "Function",
    "Product",
    "Retrieval",
    "Sum",
    "WeightedSum",
    "check_assumptions",
    "max_plus_min",
    "sum_of_maxima",
]
