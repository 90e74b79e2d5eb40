"""Whatever is passed to the theory, it answers or says a sentence: nothing else comes out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwise.theory import allocation, head_count, rank, saturation
from junk import complaints

EYE = np.eye(3)
ITEM = allocation.Item(np.ones(2), np.ones(2))
CURVE = allocation.LayerCurve(((1, 2, 2),), (1.0,))
RUNS = np.array([1, 2, 4])

CALLS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (
        head_count.lower_bound_exponent,
        {
            "heads": 1,
            "intrinsic_dim": 4,
            "length": 64,
            "head_dim": 2,
            "set_fraction": 0.25,
            "readout_layers": 2,
        },
    ),
    (
        head_count.parameters_sufficient,
        {"heads": 1, "intrinsic_dim": 4, "length": 64, "head_dim": 2, "token_dim": 3},
    ),
    (
        head_count.parameters_sufficient,
        {"smoothness": "barron"}
        | {"heads": 1, "intrinsic_dim": 4, "length": 64, "head_dim": 2, "token_dim": 3},
    ),
    (head_count.intrinsic_dim_is_unique, {"first_dim": 2, "second_dim": 3, "length": 10}),
    (head_count.layers_condition, {"layers": 1, "heads": 2, "intrinsic_dim": 3}),
    (head_count.heads_needed, {"intrinsic_dim": 3, "layers": 2}),
    (
        head_count.phase_map,
        {"heads": [1], "lengths": [8], "intrinsic_dim": 3, "head_dim": 2, "set_fraction": 0.5},
    ),
    (head_count.reversal_score, {"errors_by_length": {1: 0.1, 2: 0.2}}),
    (head_count.softmax_min_error, {"count": 3, "temperature": 0.1, "sharp": True}),
    (
        head_count.softmax_leakage,
        {"outside": 3, "temperature": 0.1, "gate": 2.0, "value_range": 1.0},
    ),
    (
        rank.error_lower_bound,
        {"dim": 8, "rank": 2, "heads": 4, "values": "general", "highest_degree": 9},
    ),
    (rank.heads_needed, {"dim": 8, "rank": 2, "error": 0.1, "values": "general"}),
    (rank.low_rank_bound, {"dim": 8, "rank": 2, "heads": 4}),
    (rank.low_rank_bound, {"dim": 8, "rank": 2, "error": 0.1}),
    (rank.published_rates, {"dim": 8, "rank": 2, "error": 0.1}),
    (rank.vote_error, {"dim": 8, "heads": 3}),
    (rank.random_features_error, {"queries": EYE, "keys": EYE}),
    (rank.fit_random_features, {"queries": EYE, "keys": EYE}),
    (rank.fit_with_short_keys, {"queries": EYE, "keys": EYE}),
    (rank.exact_below_full_rank, {"dim": 4}),
    (
        rank.banded_error_bound,
        {"dim": 3, "rank": 1, "heads": 2, "values": "scalar", "highest_degree": 9},
    ),
    (rank.band_thresholds, {"dim": 3}),
    (rank.band_masses, {"dim": 3, "highest_degree": 9, "query_length": 1.0}),
    (saturation.attention_shift, {"epsilon": 0.1}),
    (saturation.output_shift, {"epsilon": 0.1, "value_diameter": 1.0}),
    (saturation.row_distance, {"epsilon": 0.1, "score_bound": 1.0, "length": 10, "sharp": True}),
    (saturation.saturation_bound, {"epsilon": 0.1, "score_bound": 1.0, "length": 10}),
    (saturation.saturation_bound, {"epsilon": 0.1, "value_diameter": 1.0}),
    (saturation.attention_shift_bound, {"epsilon": 0.1}),
    (saturation.row_changes, {"scores": EYE, "reduced": EYE}),
    (saturation.check_head, {"logits": EYE, "reduced_logits": EYE, "values": EYE}),
    (allocation.parameters, {"width": 4, "heads": 1, "qk_dim": 2, "v_dim": 2}),
    (allocation.cache_bytes, {"heads": 1, "qk_dim": 2, "v_dim": 2, "element_bytes": 2}),
    (allocation.flops, {"width": 4, "heads": 1, "qk_dim": 2, "v_dim": 2, "length": 3}),
    (
        allocation.cost_function,
        {"counts": "cache", "width": 4, "length": 3, "element_bytes": 2},
    ),
    (allocation.Item, {"costs": np.ones(2), "losses": np.ones(2)}),
    (allocation.choose, {"items": [ITEM], "budget": 3.0}),
    (allocation.lower_bound, {"items": [ITEM], "budget": 3.0, "price": 1.0}),
    (allocation.LayerCurve, {"shapes": ((1, 2, 2),), "losses": (1.0,)}),
    (
        allocation.allocate,
        {
            "curves": [CURVE],
            "budget": 1e9,
            "width": 4,
            "counts": "parameters",
            "length": 3,
            "multiple": 1,
        },
    ),
    (
        allocation.fit_tradeoff,
        {
            "heads": RUNS,
            "dims": RUNS[::-1],
            "errors": 1.0 / RUNS,
            "tail": None,
            "floor": 0.0,
            "draws": 50,
            "seed": 0,
        },
    ),
    (allocation.extraction_bound, {"kernel": np.ones((2, 2, 2)), "heads": 1, "head_dim": 1}),
    (allocation.extraction_splits, {"kernel": np.ones((2, 2, 2)), "budget": 2}),
]


@pytest.mark.parametrize(("call", "good"), CALLS, ids=lambda part: getattr(part, "__name__", ""))
def test_only_sentences_come_out(call: Callable[..., Any], good: dict[str, Any]) -> None:
    call(**good)
    assert complaints(call, good) == []


def test_nothing_public_is_left_out() -> None:
    tried = {call.__name__ for call, _ in CALLS}
    results = {"Allocation", "Choice", "Estimate", "Optimum", "Tradeoff", "HeadCheck", "RowChanges"}
    results |= {"PhaseMap", "RandomFeatures", "VoteError", "ExtractionSplits", "Split"}
    for module in (head_count, rank, saturation, allocation):
        public = {name for name in module.__all__ if callable(getattr(module, name))}
        assert public - tried - results - {"Shape"} == set(), module.__name__
