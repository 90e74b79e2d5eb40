"""The claims, fed with the paper's own tables and with tables made to break them."""

import numpy as np
import pandas as pd
import pytest

from headwise.lab.summary import summarise
from headwise.studies.head_count import claims
from headwise.studies.head_count.synthetic import HEAD_COUNT


@pytest.fixture
def published() -> pd.DataFrame:
    """The paper's tables in the form of a result table."""
    return HEAD_COUNT.published().assign(intrinsic_dim=4)


def test_the_papers_tables_satisfy_the_papers_claims(published: pd.DataFrame) -> None:
    verdicts = {claim.statement: claim.check(published) for claim in HEAD_COUNT.claims[:3]}
    assert {verdict.status for verdict in verdicts.values()} == {"holds"}
    for check in (claims.drop_fixed_width, claims.drop_at_three, claims.drop_two_layers):
        assert check(published).status == "holds"
    assert "5.33" in claims.reversed_above(published).numbers


def test_the_finding_of_the_papers_table_is_dimension_four(published: pd.DataFrame) -> None:
    finding = claims.finding(published)
    assert finding.value == 4
    assert "from 3 to 4 heads at every length" in finding.sentence


def test_lengths_that_disagree_are_inconclusive(published: pd.DataFrame) -> None:
    disagreeing = published.copy()
    early = (disagreeing["length"] == 8) & (disagreeing["heads"] == 3)
    disagreeing.loc[early & (disagreeing["part"] == "transition"), "error"] = 6e-5
    finding = claims.finding(disagreeing)
    assert finding.value is None
    assert "T = 8: 3" in finding.sentence
    assert finding.settled_by


def test_an_unfinished_table_is_no_finding(published: pd.DataFrame) -> None:
    some = published[~((published["heads"] == 4) & (published["length"] == 8))]
    assert claims.finding(some).value is None
    assert "h = 4" not in claims.reversed_above(some).numbers
    for claim in HEAD_COUNT.claims:
        claim.check(some)  # says what it can
    assert claims.finding(published[published["part"] == "no such"]).value is None


def test_an_unfinished_cell_refutes_nothing(published: pd.DataFrame) -> None:
    here = (published["heads"] == 4) & (published["length"] == 8)
    for some in (published[~here], published.assign(error=published["error"].mask(here))):
        assert claims.drop_at_four(some).status == "holds"
    both = pd.concat([published, published.assign(part="orthonormal")])
    assert claims.draw_matters(both[both["heads"] != 3]).status == "not tested"


def test_a_claim_without_runs_is_not_tested(published: pd.DataFrame) -> None:
    nothing = published[published["part"] == "no such"]
    for claim in HEAD_COUNT.claims:
        assert claim.check(nothing).status == "not tested"


def test_claims_can_fail(published: pd.DataFrame) -> None:
    flat = published.assign(error=0.01 + 1e-9 * published["length"])
    assert claims.drop_at_four(flat).status == "does not hold"
    assert claims.reversed_above(flat).status == "does not hold"
    falling = published.assign(error=1.0 / published["length"])
    assert claims.grows_below(falling).status == "does not hold"
    assert claims.small_at_four(falling).status == "does not hold"


def test_width_claim_sees_slopes_and_order() -> None:
    rows = [
        {"part": "width", "heads": h, "length": t, "width": n, "error": t / n**0.5}
        for h in (1, 2, 3)
        for t in (8, 32)
        for n in (12, 24, 48)
    ]
    table = pd.DataFrame(rows)
    assert claims.slow_in_width(table).status == "holds"
    backwards = table.assign(error=1 / table["error"])
    assert claims.slow_in_width(backwards).status == "does not hold"


def test_summaries_give_minimum_mean_interval_and_stuck_seeds() -> None:
    errors = [1e-4, 2e-4, 4e-4, 2e-2]
    table = pd.DataFrame(
        {"part": "p", "heads": 1, "error": [*errors, None], "diverged": [False] * 4 + [True]}
    )
    (row,) = summarise(table, ["heads"]).to_dict("records")
    logs = np.log(errors)
    half = 3.182446 * logs.std(ddof=1) / 2  # Student's t, 3 degrees of freedom, 97.5 %
    assert row["error_min"] == 1e-4
    assert row["error_mean"] == pytest.approx(np.exp(logs.mean()))
    assert row["error_low"] == pytest.approx(np.exp(logs.mean() - half), rel=1e-5)
    assert (row["seeds"], row["stuck"], row["diverged"]) == (5, 1, 1)


def test_table_2_needs_41_seeds_if_its_numbers_are_means() -> None:
    assert claims.seeds_for_deviation(*claims.PRINTED) == 41


@pytest.mark.parametrize("seed", range(20))
def test_no_sample_needs_more_seeds_than_it_has(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sample = 10.0 ** rng.uniform(-8, 0, size=int(rng.integers(2, 50)))
    assert claims.seeds_for_deviation(sample.mean(), 0.999 * sample.std(ddof=1)) <= len(sample)
    one_large = np.eye(1, len(sample))[0]  # the extreme case: the bound is attained
    needed = claims.seeds_for_deviation(one_large.mean(), 0.999999 * one_large.std(ddof=1))
    assert needed == len(sample)


def test_minima_are_told_from_means(published: pd.DataFrame) -> None:
    several = [
        published.assign(seed=seed, error=published["error"] * k) for seed, k in ((0, 1), (1, 9))
    ]
    assert claims.table_2_is_the_minimum(pd.concat(several)).status == "holds"
    around = [
        published.assign(seed=seed, error=published["error"] * k)
        for seed, k in ((0, 0.1), (1, 1.9))
    ]
    assert claims.table_2_is_the_minimum(pd.concat(around)).status == "does not hold"
