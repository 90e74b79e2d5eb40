"""What the probe makes of the errors by number of heads."""

from dataclasses import replace

import pytest

from headwise.advise.probe.clock import Clock
from headwise.advise.probe.descent import transition
from headwise.advise.probe.descent.walk import Descent, DescentPlan
from headwise.advise.probe.trust import judge_training
from headwise.advise.probe.verdict import CONFIDENT, HeadVerdict, judge

SURE = 0.97


@pytest.mark.parametrize(
    ("errors", "heads"),
    [
        ({8: 1e-4, 7: 1e-4, 6: 1.1e-4, 5: 1e-4, 4: 1.2e-4, 3: 5e-3, 2: 2e-2}, 4),
        ({8: 3e-2, 7: 2.8e-2, 6: 2.9e-2, 5: 1.2e-1, 4: 1.5e-1}, 6),  # a floor, a small drop
        ({6: 1e-3, 5: 1e-3, 4: 1e-3, 3: 1e-3, 2: 1e-3, 1: 1.1e-3}, 1),
        ({4: 4e-5, 3: 4e-5, 2: 4e-5, 1: 2.9e-4}, 1),  # all of them as good as none
        ({4: 5.4e-4, 3: 5.6e-4, 2: 6.6e-4, 1: 8.6e-4}, 1),  # max of min(x, y, z): hardly less
        ({4: 1e-3, 3: 1e-2, 2: 1e-1, 1: 0.5}, 4),  # that is: four or more
    ],
)
def test_the_verdict_reads_the_error_curve(errors: dict[int, float], heads: int) -> None:
    verdict = judge(errors, max(errors))
    assert verdict.heads == heads
    assert verdict.confidence > 0.9
    assert sum(verdict.probabilities.values()) == pytest.approx(1)


def test_a_larger_step_is_no_reason_for_doubt() -> None:
    """Max − min: with one head half of the variance is left, with two 1e-5 of it."""
    small, large = (judge({4: 1e-5, 3: 1e-5, 2: 1e-5, 1: e}, 4) for e in (1e-2, 0.5))
    assert small.heads == large.heads == 2
    assert large.confidence >= small.confidence - 0.01
    assert large.confidence > transition.CLEAR


def test_a_slow_slope_is_no_sharp_answer() -> None:
    errors = {heads: 0.1 * 1.25 ** (12 - heads) for heads in range(1, 13)}
    verdict = judge(errors, 12)
    assert verdict.interval[1] > verdict.interval[0]
    assert verdict.confidence < 0.9


def _judged(errors: dict[int, float], pooled: float | None) -> HeadVerdict | None:
    plan = DescentPlan(seed=0, head_dim=2, most_heads=max(errors))
    descent = Descent(plan, errors=errors, train_errors=errors)
    found = transition.Transition((descent,) * 3, max(errors), pooled)
    return judge_training(found, Clock(1.0))[0]


def test_what_a_mean_does_is_not_credited_to_heads() -> None:
    step = {1: 4e-1, 2: 2e-3, 3: 2e-3, 4: 2e-3}
    counted, alone = _judged(step, pooled=0.3), _judged(step, pooled=2e-3)
    assert counted is not None
    assert counted.heads == 2
    assert alone is None or alone.heads == 1
    unknown = _judged(step, pooled=None)  # the time was over before a mean was tried
    assert unknown is not None
    assert unknown.confidence < CONFIDENT


def test_heads_that_were_not_learnt_are_no_evidence_for_one() -> None:
    """Every head contains the mean; where it is better than all of them, they were not learnt."""
    failed = {1: 1.4e-1, 2: 1.0e-1, 3: 9e-2, 4: 9e-2}
    assert _judged(failed, pooled=2.5e-2) is None
    assert _judged(dict.fromkeys(failed, 2.5e-2), pooled=2.5e-2) is not None
    assert _judged(dict.fromkeys(failed, 4.5e-2), pooled=4.5e-2) is None  # too much is left
    plan = DescentPlan(seed=0, head_dim=2, most_heads=4)
    of_labels = transition.Transition((Descent(plan, failed, failed),), 4, 2.5e-2, labels=True)
    assert judge_training(of_labels, Clock(1.0))[0] is not None  # so much is none, of labels


def test_a_mean_is_trusted_where_heads_learnt_less() -> None:
    """The length of the mean token: four value dimensions, which two narrow heads have."""
    narrow = {1: 0.5, 2: 3.4e-3, 3: 3.5e-3, 4: 4.5e-3}
    wide = {1: 1.1e-2, 2: 9.1e-2, 3: 0.3, 4: 0.3}
    descents = [
        Descent(DescentPlan(seed, head_dim, most_heads=4), errors, train_errors=errors)
        for seed, head_dim, errors in ((0, 2, narrow), (1, 2, narrow), (2, 8, wide))
    ]
    found = transition.Transition(tuple(descents), 4, pooled=2e-3)
    verdict, _ = judge_training(found, Clock(1.0))
    assert verdict is not None
    assert (verdict.heads, found.precision(1)) == (1, 2e-3)


def test_heads_that_a_mean_beats_do_not_say_how_wide_they_are() -> None:
    failed = dict.fromkeys(range(1, 5), 0.24)
    descent = Descent(DescentPlan(0, 8, most_heads=4), failed, train_errors=failed)
    beaten = transition.Transition((descent,), 4, pooled=3e-3)
    assert not beaten.learnt_with(1)
    assert transition.Transition((descent,), 4, pooled=0.2).learnt_with(1)


def test_a_feature_of_little_weight_is_not_overlooked() -> None:
    """Two maxima with weights 1 and 0.01: one head leaves 1e-4, two heads 6e-6. Of max x + y_1 it
    leaves 3e-4, two leave 3e-6 though their scores are alike.
    """
    weak = {1: 1e-4, 2: 6e-6, 3: 6e-6, 4: 7e-6}
    assert _judged(weak, pooled=0.3) is None
    errors = {1: 3e-4, 2: 3e-6, 3: 3e-6, 4: 3e-6}
    read_along = Descent(DescentPlan(0, 2, 4), errors, errors, likeness={2: 0.82})
    found = transition.Transition((read_along,) * 2, 4, 2.7e-3)
    assert judge_training(found, Clock(1.0))[0] is None
    sharpened = _judged({1: 2e-5, 2: 9e-6, 3: 6e-6, 4: 6e-6}, pooled=0.3)
    assert sharpened is not None
    assert sharpened.heads == 1


def _of(*descents: dict[int, float], pooled: float) -> transition.Transition:
    """Descents of narrow heads, and the last one of wide heads."""
    dims = (2,) * (len(descents) - 1) + (8,)
    made = [
        Descent(DescentPlan(seed, dim, most_heads=max(errors)), errors, train_errors=errors)
        for seed, (dim, errors) in enumerate(zip(dims, descents, strict=True))
    ]
    return transition.Transition(tuple(made), max(map(max, descents)), pooled)


def test_what_chance_learns_is_no_evidence_of_heads() -> None:
    """A kurtosis is one average. Eight wide heads left 0.1 of it, two of them 5e-3; twelve narrow
    ones 1e-2, two of them 1e-3.
    """
    steady = {1: 0.4, 2: 7e-4, 3: 7e-4, 4: 7e-4}
    narrow, wide = {1: 0.4, 2: 1.2e-3, 3: 1e-2, 4: 1e-2}, {1: 0.063, 2: 5e-3, 3: 0.1, 4: 0.1}
    verdict, _ = judge_training(_of(steady, steady, pooled=0.1), Clock(1.0))
    assert verdict is not None
    assert (verdict.heads, verdict.confidence > CONFIDENT) == (2, True)
    verdict, obstacle = judge_training(_of(steady, narrow, wide, pooled=0.1), Clock(1.0))
    assert verdict is None
    assert obstacle is not None
    assert "chance" in obstacle[0]
    narrow, wide = {1: 0.5, 2: 7e-6, 3: 4e-6, 4: 1e-3}, {1: 1e-2, 2: 2e-4, 3: 1e-3, 4: 8e-3}
    verdict, _ = judge_training(_of(narrow, narrow, wide, pooled=0.1), Clock(1.0))
    assert verdict is not None  # the largest less the smallest brightness of patches
    assert (verdict.heads, verdict.confidence < SURE) == (2, True)
    # three bowls at length 64: every head that goes lets the others learn a little more
    narrow = {1: 0.31, 2: 0.12, 3: 1e-3, 4: 1.3e-3, 8: 4.2e-3}
    wide = {1: 0.31, 2: 0.11, 3: 5e-4, 4: 1.1e-3, 8: 2.9e-3}
    verdict, _ = judge_training(_of(narrow, wide, pooled=0.7), Clock(1.0))
    assert verdict is not None
    assert (verdict.heads, verdict.confidence < SURE) == (3, True)
    # wide heads that were stuck at first, as of a retrieval task now and then
    verdict, _ = judge_training(_of(steady, steady, wide, pooled=0.1), Clock(1.0))
    assert verdict is not None
    assert (verdict.heads, verdict.confidence < SURE) == (2, True)


def test_more_heads_can_do_what_fewer_have_learnt() -> None:
    """A log-determinant: one head was trained for long, two were not and left 20 times as much."""
    errors = {1: 1.2e-3, 2: 2e-2, 3: 1.2e-3, 4: 9e-4}
    verdict, _ = judge_training(_of(errors, errors, pooled=4e-3), Clock(1.0))
    assert verdict is not None
    assert verdict.heads == 1


def test_one_head_that_is_close_to_all_is_the_answer_where_no_number_has_a_step() -> None:
    """A bowl's minimum and its sine: further heads sharpen what one has learnt, 3-fold in all."""
    slow = {1: 6.5e-4, 2: 3.5e-4, 3: 2.5e-4, 4: 2.3e-4}
    verdict, _ = judge_training(_of(slow, slow, pooled=0.3), Clock(1.0))
    assert verdict is not None
    assert verdict.heads == 1
    threshold = {1: 8e-3, 2: 4e-3, 3: 2e-3, 4: 1e-3}
    assert judge_training(_of(threshold, threshold, pooled=0.3), Clock(1.0))[0] is None


def test_a_sheer_step_counts_although_a_further_head_refines_the_rest() -> None:
    """A range in standard deviations takes three heads; a fourth gains 2.4-fold."""
    narrow = {2: 0.3, 3: 1.6e-3, 4: 8.6e-4, 5: 7.1e-4}
    wide = {2: 0.045, 3: 1.3e-3, 4: 3.6e-4, 5: 7.2e-4}
    verdict, _ = judge_training(_of(narrow, wide, pooled=0.05), Clock(1.0))
    assert verdict is not None
    assert (verdict.heads, verdict.confidence < CONFIDENT) == (3, True)


def test_three_features_of_which_one_head_does_nearly_all() -> None:
    """(1 + max x + min x)·(1 + mean y): one head, trained for long, leaves 2.5e-3."""
    errors = {1: 9.3e-3, 2: 5.8e-3, 3: 1.7e-4, 4: 1.9e-4}
    plan = DescentPlan(6, 8, most_heads=1, least_heads=1)
    patient = Descent(plan, {1: 2.5e-3}, train_errors={1: 2.5e-3})
    found = _of(errors, errors, pooled=0.02)
    found = replace(found, descents=(*found.descents, patient))
    verdict, _ = judge_training(found, Clock(1.0))
    assert verdict is not None
    assert (verdict.heads, verdict.confidence < CONFIDENT) == (3, True)
    soft = {1: 3e-3, 2: 4e-4, 3: 3e-5, 4: 3e-5}
    found = _of(soft, soft, pooled=0.3)
    assert (
        judge_training(replace(found, descents=(*found.descents, patient)), Clock(1.0))[0] is None
    )


def test_what_more_heads_refine_is_no_feature_of_its_own() -> None:
    """How far the largest token lies out of the others: two heads, and four refine it sixfold."""
    for gain, answered in ((6, True), (12, False)):
        errors = {1: 0.026, 2: 3.2e-4, 3: 3.2e-4 / gain, 4: 3.2e-4 / gain}
        verdict, obstacle = judge_training(_of(errors, errors, pooled=0.02), Clock(1.0))
        assert (verdict is not None and verdict.heads == 2) == answered
        assert answered or (obstacle is not None and "little weight" in obstacle[0])


def test_one_head_that_leaves_something_is_not_called_sure() -> None:
    """The mean of the largest tokens: one head leaves 2e-3, however many there are beside it."""
    said = []
    for left in (2e-4, 2e-3, 2e-2):
        errors = dict.fromkeys(range(1, 5), left)
        verdict, _ = judge_training(_of(errors, errors, pooled=5e-2), Clock(1.0))
        assert verdict is not None
        assert verdict.heads == 1
        said.append(verdict.confidence)
    assert said[0] > SURE > said[1] > CONFIDENT > said[2]


def test_one_wide_head_that_summarises_is_not_trusted() -> None:
    """The highest point of a walk: of narrow heads it takes three, and 1 % stays unexplained."""
    narrow, wide = {1: 4e-2, 2: 1.5e-2, 3: 1.1e-2, 4: 1.1e-2}, dict.fromkeys(range(1, 5), 1.1e-2)
    descents = [
        Descent(DescentPlan(seed, head_dim, most_heads=4), errors, train_errors=errors)
        for seed, head_dim, errors in ((0, 2, narrow), (1, 2, narrow), (2, 8, wide))
    ]
    for pooled in (0.1, 1.2e-2):
        found = transition.Transition(tuple(descents), 4, pooled)
        verdict, obstacle = judge_training(found, Clock(1.0))
        assert verdict is None
        assert obstacle is not None
        assert "summary" in obstacle[0]


@pytest.mark.parametrize(("readers", "answer"), [(0, 3), (1, None), (3, 3)])
def test_a_position_read_beside_other_heads_may_cost_none(readers: int, answer: int | None) -> None:
    """Max x or max y by the first token takes two heads, and training finds three: it reads the
    first with a head of its own.
    """
    errors = {1: 1.1e-1, 2: 2.9e-2, 3: 3.1e-4, 4: 2.8e-4}
    descents = [
        Descent(
            DescentPlan(seed, 2, most_heads=4),
            errors,
            train_errors=errors,
            fixed_readers={3: readers},
        )
        for seed in range(3)
    ]
    verdict, _ = judge_training(transition.Transition(tuple(descents), 4, 0.2), Clock(1.0))
    assert (None if verdict is None else verdict.heads) == answer


def test_sharpening_is_not_taken_for_a_second_head() -> None:
    """Log-sum-exps of inverse temperature 8 and 5: one head in principle, and a step at two."""
    assert _judged({1: 2.1e-3, 2: 3.4e-5, 3: 4e-6, 4: 3.8e-6}, pooled=1.6e-3) is None
    assert _judged({1: 1.2e-3, 2: 2e-5, 3: 1e-5, 4: 9e-6}, pooled=1e-3) is None


@pytest.mark.parametrize(("alike", "patient", "answer"), [(0.0, 6e-4, 2), (0.9, 6e-4, None)])
def test_two_heads_with_a_feature_each_are_told_from_one_that_is_slow(
    alike: float, patient: float, answer: int | None
) -> None:
    """max x · mean y: one soft head, trained for long, comes near; a maximum alone comes up."""
    assert _patiently(alike, patient)[0] == answer
    assert _patiently(alike, 1.6e-4)[0] == 1


def test_two_unlike_heads_are_not_sure_where_one_is_not_far_behind() -> None:
    """max x · (1 + mean y), where one head, trained for long, leaves 2.6 times as much as two."""
    heads, confidence = _patiently(0.0, 4e-4)
    assert heads == 2
    assert confidence < CONFIDENT


def _patiently(alike: float, patient: float) -> tuple[int | None, float]:
    errors = {1: 5.4e-3, 2: 1.4e-4, 3: 1.5e-4, 4: 1.5e-4}
    usual = [
        Descent(DescentPlan(seed, dim, most_heads=4), errors, errors, likeness={2: alike})
        for seed, dim in ((0, 2), (2, 8))
    ]
    one = Descent(DescentPlan(6, 8, most_heads=1, least_heads=1), {1: patient}, {1: patient})
    found = transition.Transition((*usual, one), 4, 0.3)
    verdict, _ = judge_training(found, Clock(1.0))
    return (None, 0.0) if verdict is None else (verdict.heads, verdict.confidence)


@pytest.mark.parametrize(("breadth", "answer"), [(0.6, 1), (0.1, None)])
def test_two_averages_are_one_head(breadth: float, answer: int | None) -> None:
    """A ratio of means: two narrow heads learn it, and one head can be both averages."""
    errors = {1: 1.3e-3, 2: 1.9e-4, 3: 2e-4, 4: 2.3e-4}
    usual = [
        Descent(DescentPlan(seed, 2, 4), errors, errors, likeness={2: 0.6}, breadth={2: breadth})
        for seed in (0, 1)
    ]
    verdict, _ = judge_training(transition.Transition(tuple(usual), 4, 1.5e-3), Clock(1.0))
    assert (None if verdict is None else verdict.heads) == answer
