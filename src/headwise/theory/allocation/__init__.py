"""Allocation: how to share a budget out over heads, dimensions and layers (arXiv 2510.03784)."""

from headwise.theory.allocation.costs import COUNTS, cache_bytes, cost_function, flops, parameters
from headwise.theory.allocation.extraction import extraction_bound
from headwise.theory.allocation.knapsack import Choice, Item, choose, lower_bound
from headwise.theory.allocation.layers import Allocation, LayerCurve, Shape, allocate
from headwise.theory.allocation.splits import ExtractionSplits, Split, extraction_splits
from headwise.theory.allocation.tradeoff import Estimate, Optimum, Tradeoff, fit_tradeoff

__all__ = [
    "COUNTS",
    "Allocation",
    "Choice",
    "Estimate",
    "ExtractionSplits",
    "Item",
    "LayerCurve",
    "Optimum",
    "Shape",
    "Split",
    "Tradeoff",
    "allocate",
    "cache_bytes",
    "choose",
    "cost_function",
    "extraction_bound",
    "extraction_splits",
    "fit_tradeoff",
    "flops",
    "lower_bound",
    "parameters",
]
