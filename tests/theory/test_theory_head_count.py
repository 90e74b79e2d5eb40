"""Head-count bounds: the paper's numbers, the conditions they hold under, and bad input."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.core.errors import InputError
from headwise.theory import Bound, BoundVerdict, Status
from headwise.theory.head_count import (
    heads_needed,
    intrinsic_dim_is_unique,
    layers_condition,
    lower_bound_exponent,
    parameters_sufficient,
    phase_map,
    reversal_score,
)

LENGTHS = (8, 16, 32, 64, 128)
fractions = st.floats(0.01, 1) | st.integers(1, 100).map(lambda percent: percent / 100)


def test_the_exponent_is_the_printed_formula() -> None:
    bound = lower_bound_exponent(heads=2, intrinsic_dim=4, length=128, head_dim=8)
    assert bound.value == pytest.approx((128 / 4 - 2 - 4 + 1) / ((8 + 1) * 2 + 1) - 1)
    assert (bound.verdict, bound.status) == (BoundVerdict.HOLDS, Status.PROVED)
    assert "theorem 2(2)" in bound.source


def test_in_the_papers_experiment_the_bound_is_vacuous_where_its_notes_say_so() -> None:
    def verdict(heads: int, length: int) -> BoundVerdict:
        return lower_bound_exponent(heads, 4, length, 8).verdict

    assert all(verdict(3, length) is BoundVerdict.VACUOUS for length in LENGTHS)
    assert [length for length in LENGTHS if verdict(1, length) is BoundVerdict.HOLDS] == [64, 128]
    assert all(verdict(4, length) is BoundVerdict.NOT_APPLICABLE for length in LENGTHS)


@given(
    heads=st.integers(1, 40),
    extra=st.integers(-5, 40),
    length=st.integers(1, 10**7),
    head_dim=st.integers(1, 300),
    fraction=fractions,
)
def test_a_value_is_a_positive_exponent_and_silence_is_named(
    heads: int, extra: int, length: int, head_dim: int, fraction: float
) -> None:
    intrinsic_dim = max(1, min(heads + extra, length))
    bound = lower_bound_exponent(heads, intrinsic_dim, length, head_dim, fraction)
    if heads >= intrinsic_dim:
        assert bound.verdict is BoundVerdict.NOT_APPLICABLE
    else:
        assert bound.verdict in (BoundVerdict.HOLDS, BoundVerdict.VACUOUS)
    assert (bound.value is None) == (bound.verdict is not BoundVerdict.HOLDS)
    if bound.value is not None:
        assert bound.value > 0
        longer = lower_bound_exponent(heads, intrinsic_dim, length + 1, head_dim, fraction)
        wider = lower_bound_exponent(heads, intrinsic_dim, length, head_dim + 1, fraction)
        assert longer.value is not None
        assert longer.value >= bound.value
        assert wider.value is None or wider.value < bound.value


@given(heads=st.integers(1, 9), head_dim=st.integers(1, 64), fraction=fractions)
def test_a_vacuous_bound_names_the_length_where_it_begins(
    heads: int, head_dim: int, fraction: float
) -> None:
    statement = lower_bound_exponent(heads, 10, 10, head_dim, fraction).statement
    first = int(statement.rsplit("length ", 1)[1].split(" ")[0].replace(",", ""))
    before = lower_bound_exponent(heads, 10, first - 1, head_dim, fraction)
    there = lower_bound_exponent(heads, 10, first, head_dim, fraction)
    assert before.verdict is BoundVerdict.VACUOUS
    assert there.verdict is BoundVerdict.HOLDS


def test_features_that_see_the_whole_sequence_give_the_derived_variant() -> None:
    quarter = lower_bound_exponent(2, 4, 128, 8)
    whole = lower_bound_exponent(2, 4, 32, 8, set_fraction=1)
    assert whole.value == quarter.value
    assert whole.status is Status.DERIVED


def test_a_five_layer_readout_weakens_the_exponent_fourfold() -> None:
    two, five = (
        lower_bound_exponent(2, 4, 128, 8, readout_layers=layers).value for layers in (2, 5)
    )
    assert two is not None
    assert five == pytest.approx(two / 4)


def test_sufficient_parameters_are_rates_of_the_theorem_that_applies() -> None:
    enough = parameters_sufficient(4, 4, 64, head_dim=2, token_dim=4)
    assert (enough.value, enough.verdict) == (2, BoundVerdict.RATE)
    assert "2(1)" in enough.source
    wide = parameters_sufficient(1, 4, 64, head_dim=256, token_dim=4)
    assert (wide.value, wide.verdict) == (3, BoundVerdict.RATE)
    assert "2(3)" in wide.source
    neither = parameters_sufficient(1, 4, 64, head_dim=255, token_dim=4)
    assert (neither.value, neither.verdict) == (None, BoundVerdict.NOT_APPLICABLE)
    worst = parameters_sufficient(7, 4, 64, head_dim=8, token_dim=6, smoothness="worst case")
    assert worst.value == 6
    assert "unknown" in enough.statement


def test_the_corollary_speaks_from_its_length_on() -> None:
    assert intrinsic_dim_is_unique(2, 4, 1000).value == 1000
    assert intrinsic_dim_is_unique(2, 4, 999).verdict is BoundVerdict.NOT_APPLICABLE


def test_depth_is_a_conjecture() -> None:
    enough, short = layers_condition(2, 2, 4), layers_condition(2, 2, 5)
    assert (enough.value, enough.verdict) == (0, BoundVerdict.HOLDS)
    assert (short.value, short.verdict) == (-1, BoundVerdict.FAILS)
    assert {enough.status, short.status} == {Status.CONJECTURED}
    assert heads_needed(5).value == 5
    assert heads_needed(5).status is Status.PROVED
    assert heads_needed(5, layers=2).value == 3
    assert heads_needed(5, layers=2).status is Status.CONJECTURED
    # It says what is needed; in several layers nothing is said of what is enough.
    assert "does not say that they are enough" in enough.statement
    assert "whether they are enough is not conjectured" in heads_needed(5, layers=2).statement
    assert not any("are enough" in each for each in heads_needed(5, layers=2).assumptions)
    assert any("are enough" in each for each in heads_needed(5).assumptions)


@given(dim=st.integers(1, 100), layers=st.integers(1, 20))
def test_heads_needed_is_the_least_that_meets_the_condition(dim: int, layers: int) -> None:
    heads = heads_needed(dim, layers).value
    assert isinstance(heads, int)
    assert layers_condition(layers, heads, dim).verdict is BoundVerdict.HOLDS
    assert heads == 1 or layers_condition(layers, heads - 1, dim).verdict is BoundVerdict.FAILS


def test_the_phase_map_agrees_with_the_bound_cell_by_cell() -> None:
    grid = phase_map(range(1, 6), LENGTHS, intrinsic_dim=4, head_dim=8)
    assert grid.exponent.shape == (5, 5)
    records = grid.records()
    assert len(records) == 25
    for row in records:
        bound = lower_bound_exponent(row["heads"], 4, row["length"], 8)
        assert row["exponent"] == (None if bound.value is None else pytest.approx(bound.value))
        assert row["verdict"] == bound.verdict
    json.dumps(records, allow_nan=False)


def test_the_reversal_score_of_the_published_table() -> None:
    """Table 2 of the paper, mean NMSE for h = 1..5 at T = 8..128; scores 0, 0, 0.06, 5.33, 4.46."""
    table = {
        1: (0.0701, 0.109, 0.11, 0.114, 0.145),
        2: (0.00731, 0.00841, 0.00942, 0.0131, 0.0147),
        3: (0.000694, 0.00064, 0.000909, 0.00131, 0.00158),
        4: (6.1e-05, 4.36e-05, 4.8e-05, 8.75e-06, 5.23e-06),
        5: (3.35e-05, 1.1e-05, 4.91e-06, 4.19e-06, 3.99e-06),
    }
    scores = [reversal_score(dict(zip(LENGTHS, row, strict=True))) for row in table.values()]
    assert scores == pytest.approx([0, 0, 0.06, 5.33, 4.46], abs=0.005)
    assert reversal_score({1: 3.0, 2: 2.0, 3: 1.0}) == pytest.approx(2.0)
    assert reversal_score({8: 0.5, 16: 0.5}) == 0


HOSTILE = [
    (lambda: lower_bound_exponent(0, 4, 8, 8), "heads must be a whole number"),
    (lambda: lower_bound_exponent(1, 4, -8, 8), "length must be"),
    (lambda: lower_bound_exponent(1.5, 4, 8, 8), "heads must be a whole number"),  # type: ignore[arg-type]
    (lambda: lower_bound_exponent(True, 4, 8, 8), "heads must be a whole number"),
    (lambda: lower_bound_exponent(1, 4, 10**5000, 8), "length must be a whole number from 1 to"),
    (lambda: lower_bound_exponent(1, 4, 8, 8, math.nan), "set_fraction must be a number above 0"),
    (lambda: lower_bound_exponent(1, 4, 8, 8, 1.5), "up to 1"),
    (lambda: lower_bound_exponent(1, 4, 8, 8, readout_layers=3), "readout_layers must be 2 or 5"),  # type: ignore[arg-type]
    (lambda: parameters_sufficient(1, 4, 8, 8, 4, "smooth"), "smoothness must be"),  # type: ignore[arg-type]
    (lambda: phase_map([], [8], intrinsic_dim=4, head_dim=8), "at least one"),
    (lambda: phase_map([1], 2, intrinsic_dim=4, head_dim=8), "lengths must be a list"),  # type: ignore[arg-type]
    (lambda: reversal_score({8: 0.1}), "at least two lengths"),
    (lambda: reversal_score({8: 0.1, 16: math.nan}), "finite"),
    (lambda: intrinsic_dim_is_unique(1, 0, 8), "second_dim must be"),
]


@pytest.mark.parametrize(("call", "sentence"), HOSTILE)
def test_bad_input_gets_a_sentence(call: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()  # type: ignore[operator]


def test_numpy_integers_are_numbers_too() -> None:
    assert lower_bound_exponent(np.int64(2), 4, np.int32(128), 8).value == pytest.approx(8 / 19)  # type: ignore[arg-type]


def test_the_largest_sizes_neither_overflow_nor_hang() -> None:
    most = 10**12
    assert lower_bound_exponent(1, 2, most, 1).verdict is BoundVerdict.HOLDS
    assert lower_bound_exponent(most - 1, most, most, most, 1e-300).verdict is BoundVerdict.VACUOUS


def test_a_bound_prints_its_reasons_and_survives_json() -> None:
    bound = lower_bound_exponent(3, 4, 128, 8)
    assert "vacuous" in str(bound)
    assert "Assumes:" in str(bound)
    assert json.loads(json.dumps(bound.to_data()))["value"] is None


def test_a_bound_cannot_claim_a_value_it_does_not_have() -> None:
    with pytest.raises(ValueError, match="vacuous"):
        Bound(
            quantity="q",
            value=1,
            verdict=BoundVerdict.VACUOUS,
            statement="",
            source="",
            status=Status.PROVED,
        )
