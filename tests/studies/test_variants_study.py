"""The study of variants: where a transition is seen, and that verdicts follow the numbers."""

import pandas as pd
import pytest

from headwise.core.errors import InputError
from headwise.lab.kinds import kind_of
from headwise.nets.variants import VARIANTS
from headwise.studies import find_study
from headwise.studies.allocation.schedules import SIZES, with_attention
from headwise.studies.variants.transition import transition

STUDY = find_study("variants")


def sweep(model: str, errors: dict[int, list[float]], part="heads", **more: object) -> pd.DataFrame:
    rows = [
        {"part": part, "model": model, "units": units, "seed": seed, "error": error,
         "intrinsic_dim": 4, "length": 32, **more}
        for units, values in errors.items()
        for seed, error in enumerate(values)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def verdicts(results: pd.DataFrame) -> dict[str, str]:
    return {claim.statement: claim.check(results).status for claim in STUDY.claims}


SHARP = {2: [0.2, 0.3], 3: [0.1, 0.09], 4: [1e-3, 2e-3], 5: [9e-4, 1e-3]}
LATE = {2: [0.2, 0.3], 3: [0.1, 0.09], 4: [0.09, 0.08], 5: [9e-4, 1e-3]}
FLAT = {2: [0.2, 0.3], 3: [0.1, 0.15], 4: [0.09, 0.1], 5: [0.08, 0.09]}
TORN = {2: [0.3, 0.3], 3: [0.1, 1e-3], 4: [1e-3, 1e-3], 5: [1e-3, 1e-3]}


def test_a_transition_is_where_the_error_falls_most():
    sharp, torn = transition(sweep("a", SHARP)), transition(sweep("a", TORN))
    assert sharp is not None
    assert torn is not None
    assert (sharp.at, sharp.low, sharp.high) == (4, 4, 4)
    assert sharp.fall == pytest.approx(90)
    assert (torn.low, torn.high) == (3, 4)  # a seed of two is there with three heads
    assert transition(sweep("a", FLAT)).at is None
    assert transition(sweep("a", {4: [1.0]})) is None


@pytest.mark.parametrize(
    ("model", "errors", "statement", "status"),
    [
        ("gated", SHARP, "Gating does not replace heads", "holds"),
        ("gated", LATE, "Gating does not replace heads", "does not hold"),
        ("gated", TORN, "Gating does not replace heads", "cannot tell"),
        ("linear", FLAT, "Linear attention shows no transition", "holds"),
        ("linear", SHARP, "Linear attention shows no transition", "does not hold"),
    ],
)
def test_a_verdict_follows_the_numbers(model, errors, statement, status):
    found = verdicts(sweep(model, errors))
    assert found.pop(statement) == status
    assert set(found.values()) == {"not tested"}


def test_banded_heads_are_expected_at_a_multiple():
    banded = {units: SHARP[units // 2] for units in (4, 6, 8, 10)}
    (statement,) = [claim.statement for claim in STUDY.claims if "Banded" in claim.statement]
    assert verdicts(sweep("banded:2", banded))[statement] == "holds"


def test_talking_heads_are_judged_by_the_gap():
    def rank(talking: float) -> pd.DataFrame:
        parts = [("plain", 1, 0.4), ("plain", 8, 0.01), ("talking", 1, talking)]
        return pd.concat(
            sweep(model, {8: [error, 1.1 * error, 0.9 * error]}, "rank", rank=r)
            for model, r, error in parts
        )

    (statement,) = [claim.statement for claim in STUDY.claims if "close most" in claim.statement]
    assert verdicts(rank(0.02))[statement] == "holds"
    assert verdicts(rank(0.4))[statement] == "does not hold"


def test_every_run_of_a_tier_fits_its_kind_and_every_claim_is_decided_somewhere():
    for tier in STUDY.tiers:
        runs = [run for part in STUDY.runs(tier).values() for run in part]
        assert len({run.key for run in runs}) == len(runs)
        for run in runs:
            kind = kind_of(run)
            kind.check(run)
            assert kind.cost(run) > 0
            assert set(kind.describe(run)) == {column.name for column in kind.columns}
    assert len(STUDY.claims) == len({claim.statement for claim in STUDY.claims}) == 16
    assert all(claim.source.startswith("predicted: ") for claim in STUDY.claims)


def test_the_comparison_of_schedules_takes_a_variant():
    study = with_attention("talking")
    size = SIZES["quick"]
    assert study.name == "allocation-talking"
    assert size.attention == "plain"
    with pytest.raises(InputError, match="there is no attention"):
        with_attention("nonsense")


@pytest.mark.parametrize("variant", [*VARIANTS, "grouped:2", "banded:2", "mixture:1:2"])
def test_schedules_that_a_variant_has_no_form_for_are_left_out(variant):
    runs = with_attention(variant).runs("quick")
    assert {"uniform", "early-heavy"} <= set(runs)  # four heads a layer, which all divide
    takes_one_head = variant not in ("grouped:2", "banded:2", "mixture", "mixture:1:2")
    assert ("many-then-one" in runs) is takes_one_head
    with pytest.raises(InputError, match="nothing to compare"):
        with_attention("grouped:8").runs("quick")
