"""The probe on data alone: it finds the number of heads, or says why it does not."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import headwise
from headwise.advise.probe import Finding
from headwise.advise.probe.clock import Clock
from headwise.advise.probe.descent import transition
from headwise.advise.probe.descent.walk import Descent, DescentPlan
from headwise.advise.probe.trust import judge_training
from headwise.advise.probe.verdict import CONFIDENT, HeadVerdict, judge
from headwise.core.errors import InputError
from headwise.tasks import sum_of_maxima


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the training: for what does not depend on how well networks learn."""
    monkeypatch.setattr(transition, "WIDE_STEPS", 300)
    monkeypatch.setattr(transition, "TUNING_STEPS", 100)
    monkeypatch.setattr(transition, "SCREENING_STEPS", 200)
    monkeypatch.setattr(transition, "MORE_SEEDS", ())


def maxima(count: int, intrinsic_dim: int, length: int = 8) -> tuple[np.ndarray, np.ndarray]:
    task = sum_of_maxima(length, intrinsic_dim, token_dim=2, seed=3)
    inputs, targets = task.sample(count, seed=1)
    return inputs.numpy(), targets.numpy()


@pytest.fixture(scope="module")
def found() -> Finding:
    return headwise.probe(*maxima(6000, 2), max_heads=4, seconds=600, positions=False)


def test_it_finds_the_intrinsic_dimension(found: Finding) -> None:
    assert found.heads == 2
    assert found.interval == (2, 2)
    assert found.confident
    assert "from 1 to 2 heads" in found.sentence
    assert "2 dimensions a head are enough" in str(found)
    assert found.head_dim is not None
    assert (found.head_dim.query_key, found.head_dim.value) == (1, 1)  # affine maxima
    errors = found.errors()
    assert errors[1] > 10 * errors[2]
    assert errors[2] < 0.01
    tokens = found.evidence.query("method == 'surrogate' and heads == 2 and head_dim == 2")
    assert tokens["value"].median() == 2


def test_a_finding_is_data(found: Finding, tmp_path: Path) -> None:
    data = json.loads(found.to_json())
    assert data["heads"] == 2
    assert data["confident"] is True
    assert set(data["evidence"][0]) == set(found.evidence.columns)
    found.figure(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_counting_and_training_are_joined(short: None) -> None:
    task = sum_of_maxima(16, 1, token_dim=2)

    def of_any_length(inputs: torch.Tensor) -> torch.Tensor:
        return task.features(inputs).amax(1).sum(-1)

    finding = headwise.probe(target=of_any_length, sampler=task.sample, train=True, max_heads=3)
    methods = {
        "sensitivity",
        "transition",
        "ablation",
        "surrogate",
        "head dimension",
        "length",
    }
    assert set(finding.evidence["method"]) == methods
    assert finding.heads == 1
    lengths = finding.evidence.query("method == 'length' and heads == 1")["length"]
    assert sorted(lengths) == [4, 8, 16]
    assert "Reversal with the length" in str(finding)


def test_labels_padding_and_lists_are_data_too() -> None:
    inputs, _ = maxima(6000, 1)
    lengths = np.random.default_rng(0).integers(4, 9, len(inputs))
    sequences = [row[:length] for row, length in zip(inputs, lengths, strict=True)]
    direction = np.array(sum_of_maxima(8, 1, token_dim=2, seed=3).features.weights[0])
    best = np.array([(row @ direction).max() for row in sequences])
    labels = np.where(best > np.median(best), "large", "small")
    finding = headwise.probe(sequences, labels, max_heads=3, seconds=600, positions=False)
    assert finding.heads == 1
    assert finding.errors()[1] < 0.2


def test_noise_gets_no_number(short: None) -> None:
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((2000, 6, 2))
    finding = headwise.probe(inputs, rng.standard_normal(2000), max_heads=3)
    assert finding.heads is None
    assert finding.settled_by
    assert len(finding.errors()) == 3  # the partial evidence is there
    assert "No answer" in str(finding)


def test_more_features_than_heads_get_no_number() -> None:
    finding = headwise.probe(*maxima(4000, 3, length=12), max_heads=2, seconds=600)
    assert finding.heads is None
    assert "still falls at 2 heads" in finding.sentence
    assert finding.head_dim is None
    assert "max_heads" in finding.settled_by


@pytest.mark.parametrize("targets", [np.full(600, 3.0), np.full(600, "a")])
def test_a_constant_target_gets_no_number(targets: np.ndarray) -> None:
    finding = headwise.probe(np.random.default_rng(0).random((600, 4, 2)), targets)
    assert finding.heads is None
    assert "constant" in finding.sentence


def test_fifty_samples_get_no_number() -> None:
    finding = headwise.probe(*maxima(50, 2))
    assert finding.heads is None
    assert "50 samples" in finding.sentence


def test_repeated_sequences_are_one_sample() -> None:
    inputs, targets = maxima(5, 2)
    finding = headwise.probe(np.tile(inputs, (400, 1, 1)), np.tile(targets, 400))
    assert finding.heads is None
    assert "only 5 are different" in finding.sentence


def test_without_time_there_is_no_number() -> None:
    finding = headwise.probe(*maxima(1000, 2), seconds=1e-6, positions=False)
    assert finding.heads is None
    assert "more seconds" in finding.settled_by


def test_a_stopped_probe_goes_on(short: None, tmp_path: Path) -> None:
    data, state = maxima(1000, 2), tmp_path / "state.json"
    options = {"max_heads": 3, "positions": False}
    whole = headwise.probe(*data, **options)

    def stop(fraction: float, doing: str) -> None:
        if state.exists() and "removal_costs" in state.read_text():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        headwise.probe(*data, **options, state=state, jobs=1, on_progress=stop)
    (kept,) = (k for k in json.loads(state.read_text())["probes"].values() if k)
    assert 0 < len(kept) < 4  # not all of three descents and a control
    for _ in range(2):  # the first time the rest is trained, the second time nothing
        resumed = headwise.probe(*data, **options, state=state)
        assert resumed.to_data()["evidence"] == whole.to_data()["evidence"]
    other = headwise.probe(*maxima(1000, 1), **options, state=state)
    assert other.to_data()["evidence"] != whole.to_data()["evidence"]


def test_a_file_that_is_no_state_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(InputError, match="not the state of a probe"):
        headwise.probe(*maxima(600, 1), state=tmp_path / "a.json")


GOOD = np.zeros((10, 4, 2))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"inputs": GOOD}, "give inputs and targets"),
        ({}, "either data or a function"),
        ({"inputs": GOOD, "targets": np.ones(9)}, "10 sequences but targets of shape"),
        ({"inputs": GOOD[0, 0], "targets": np.ones(2)}, "shape"),
        ({"inputs": GOOD + np.nan, "targets": np.ones(10)}, "NaN or infinite"),
        ({"inputs": GOOD, "targets": np.full(10, np.inf)}, "NaN or infinite"),
        ({"inputs": GOOD.astype(str), "targets": np.ones(10)}, "inputs are numbers"),
        ({"inputs": GOOD, "targets": np.ones(10), "mask": np.ones((10, 3))}, "the mask has shape"),
        ({"inputs": GOOD, "targets": np.ones(10), "mask": np.zeros((10, 4))}, "without a token"),
        ({"inputs": GOOD, "targets": np.ones(10), "max_heads": 1}, "from 2 to 64"),
        ({"inputs": GOOD, "targets": np.ones(10), "seconds": 0}, "some time"),
        ({"inputs": GOOD, "targets": np.ones(10), "kind": "ranking"}, "kind is"),
        ({"inputs": [np.ones((2, 3)), np.ones((3, 2))], "targets": np.ones(2)}, "same token_dim"),
        ({"inputs": [np.ones((2, 3)), np.ones((2, 2))], "targets": np.ones(2)}, "same token_dim"),
        ({"inputs": [[[1, 2], [3]], [[1, 2]]], "targets": np.ones(2)}, "rows differ in length"),
        ({"inputs": [None, None], "targets": np.ones(2)}, "a single value"),
        ({"inputs": GOOD, "targets": np.ones(10), "max_heads": 2.5}, "a whole number"),
        ({"inputs": GOOD, "targets": np.ones(10), "jobs": 0}, "jobs is 0"),
        ({"inputs": GOOD, "targets": np.ones(10), "jobs": 1.5}, "jobs is 1.5"),
        ({"inputs": GOOD, "targets": np.ones(10), "seconds": float("nan")}, "some time"),
        ({"inputs": GOOD, "targets": np.ones(10), "positions": "yes"}, "positions is 'yes'"),
        ({"inputs": GOOD, "targets": np.ones(10), "mask": GOOD[..., 0].astype(str)}, "true or"),
    ],
)
def test_unusable_data_get_a_sentence(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        headwise.probe(**arguments)


@pytest.mark.parametrize(
    ("errors", "heads"),
    [
        ({8: 1e-4, 7: 1e-4, 6: 1.1e-4, 5: 1e-4, 4: 1.2e-4, 3: 5e-3, 2: 2e-2}, 4),
        ({8: 3e-2, 7: 2.8e-2, 6: 2.9e-2, 5: 1.2e-1, 4: 1.5e-1}, 6),  # a floor, a small drop
        ({6: 1e-3, 5: 1e-3, 4: 1e-3, 3: 1e-3, 2: 1e-3, 1: 1.1e-3}, 1),
        ({4: 1e-3, 3: 1e-2, 2: 1e-1, 1: 0.5}, 4),  # that is: four or more
    ],
)
def test_the_verdict_reads_the_error_curve(errors: dict[int, float], heads: int) -> None:
    verdict = judge(errors, max(errors))
    assert verdict.heads == heads
    assert verdict.confidence > 0.9
    assert sum(verdict.probabilities.values()) == pytest.approx(1)


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
    assert _judged(failed, pooled=4.5e-2) is None
    assert _judged(dict.fromkeys(failed, 4.5e-2), pooled=4.5e-2) is not None


def test_heads_that_a_mean_beats_do_not_say_how_wide_they_are() -> None:
    failed = dict.fromkeys(range(1, 5), 0.24)
    descent = Descent(DescentPlan(0, 8, most_heads=4), failed, train_errors=failed)
    beaten = transition.Transition((descent,), 4, pooled=3e-3)
    assert not beaten.learnt_with(1)
    assert transition.Transition((descent,), 4, pooled=0.2).learnt_with(1)


def test_a_feature_of_little_weight_is_not_overlooked() -> None:
    """Two maxima with weights 1 and 0.01: one head leaves 1e-4, two heads 6e-6."""
    weak = {1: 1e-4, 2: 6e-6, 3: 6e-6, 4: 7e-6}
    assert _judged(weak, pooled=0.3) is None
    sharpened = _judged({1: 2e-5, 2: 9e-6, 3: 6e-6, 4: 6e-6}, pooled=0.3)
    assert sharpened is not None
    assert sharpened.heads == 1


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


def test_a_copied_head_is_removed_without_loss() -> None:
    from headwise.advise.probe.descent.removal import remove_head, with_heads
    from headwise.nets import ClassTokenNet, ClassTokenShape
    from headwise.training.samples.engine import Dataset

    shape = ClassTokenShape.standard(token_dim=2, heads=3, head_dim=2, width=8)
    net = ClassTokenNet(shape, seed=4)
    params = {name: value.detach().clone() for name, value in net.named_parameters()}
    for part in ("query", "key", "value"):
        for kind in ("weight", "bias"):
            by_head = params[f"layers.0.{part}.{kind}"].unflatten(0, (3, 2))
            by_head[2] = by_head[0]
    inputs = torch.from_numpy(maxima(200, 1)[0])
    with torch.no_grad():
        answers = ClassTokenNet(shape, params)(inputs)
    removal = remove_head(shape, params, Dataset(inputs, answers + 0.1), "mse")
    assert removal.shape == with_heads(shape, 2)
    assert removal.cost == pytest.approx(1, abs=1e-3)
    with torch.no_grad():
        fewer = ClassTokenNet(removal.shape, removal.params)(inputs)
    torch.testing.assert_close(fewer, answers, rtol=1e-3, atol=1e-3)


def test_importing_headwise_stays_light() -> None:
    import subprocess
    import sys

    code = "import sys, headwise; assert 'torch' not in sys.modules and 'pandas' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'prob'"):
        headwise.prob  # noqa: B018


def test_a_head_that_reads_one_position_is_told_from_one_that_averages() -> None:
    from headwise.advise.probe.counting.surrogate import fixed_readers
    from headwise.nets import AttentionShape, ClassTokenShape, MLPShape

    shape = ClassTokenShape(
        token_dim=2,
        embed_dim=2,
        layers=(AttentionShape(heads=2, qk_dim=1, v_dim=1),),
        embed=MLPShape(widths=(2,), activation="relu"),
        readout=MLPShape(widths=(2,), activation="gelu"),
    )
    params = {name: torch.zeros(size) for name, size in shape.parameter_shapes().items()}
    params["embed.0.weight"] = params["embed.1.weight"] = torch.eye(2)
    params["layers.0.query.bias"] += 1
    params["layers.0.key.weight"][0, 1] = 20.0  # the first head looks at the mark
    inputs = torch.rand(50, 6, 2, generator=torch.Generator().manual_seed(0))
    inputs[..., 1] = 0
    inputs[:, 2, 1] = 1  # always at the same place
    assert fixed_readers(shape, params, inputs) == 1
    for row, place in enumerate(torch.arange(50) % 6):
        inputs[row, :, 1] = 0
        inputs[row, place, 1] = 1
    assert fixed_readers(shape, params, inputs) == 0
