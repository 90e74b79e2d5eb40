"""Training: a result is a function of specification and seed, and networks do learn."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import ks_2samp
from torch import Tensor, nn

from headwise.core.errors import InputError
from headwise.core.spec import spec
from headwise.nets import ClassTokenNet, ClassTokenShape, PooledShape
from headwise.tasks import max_plus_min, sum_of_maxima
from headwise.training import Outcome, Training, learning_rates, train
from headwise.training.samples.data import epoch_order

TASK = sum_of_maxima(5, intrinsic_dim=2)
SHORT = Training(steps=30, rate=1e-2, batch=8, samples=64, validation=50, evaluations=3)
NETS = {
    "one layer": ClassTokenShape.standard(token_dim=4, heads=2, head_dim=3, width=9),
    "two layers": ClassTokenShape.standard(token_dim=4, heads=1, head_dim=3, width=9, layers=2),
    "norm": ClassTokenShape.standard(
        token_dim=4, heads=2, head_dim=3, width=9, residual=True, norm=True
    ),
    "talking": PooledShape.of_heads(token_dim=4, heads=2, head_dim=3, width=9, variant="talking"),
}


def same(first: Outcome, second: Outcome) -> bool:
    """Bitwise equality of everything that was computed."""
    return first.curve == second.curve and all(
        torch.equal(first.params[name], second.params[name]) for name in first.params
    )


@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
@pytest.mark.parametrize("training", [SHORT, replace(SHORT, samples=0)], ids=["fixed", "fresh"])
@pytest.mark.parametrize("engine", ["", "stacked"], ids=["fastest", "stacked"])
def test_a_member_does_not_depend_on_its_neighbours(
    engine: str,
    net: ClassTokenShape | PooledShape,
    training: Training,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HEADWISE_ENGINE", engine)
    together = train(TASK, net, training, seeds=[0, 1, 2, 3])
    for seed in (0, 3):
        (alone,) = train(TASK, net, training, seeds=[seed])
        assert same(alone, together[seed])
    other_company = train(TASK, net, training, seeds=[16, 1, 9])  # 16, 9: lanes of 0 and 1
    assert same(other_company[1], together[1])
    assert not same(other_company[2], together[1])
    assert not same(together[0], together[1])


def test_both_engines_end_in_the_same_distribution_of_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rounding sends trajectories apart, so only their statistics can agree; 32 seeds a side."""
    training = Training(steps=400, rate=1e-2, batch=32, samples=500, validation=500)
    shape = ClassTokenShape.standard(token_dim=4, heads=2, head_dim=4, width=16)

    def log_errors(engine: str, first_seed: int, change: dict[str, float]) -> np.ndarray:
        monkeypatch.setenv("HEADWISE_ENGINE", engine)
        made = [
            train(TASK, shape, replace(training, **change), seeds=list(range(start, start + 8)))
            for start in range(first_seed, first_seed + 32, 8)
        ]
        return np.log([outcome.error_last for outcomes in made for outcome in outcomes])

    fused, stacked = log_errors("fused", 0, {}), log_errors("stacked", 32, {})
    assert ks_2samp(fused, stacked).pvalue > 0.01
    slower = log_errors("fused", 0, {"rate": 2e-3})  # the test is able to see a difference
    assert ks_2samp(slower, stacked).pvalue < 0.01


def test_the_trajectory_is_that_of_torch_adamw_with_clipping() -> None:
    shape, training = NETS["one layer"], replace(SHORT, weight_decay=0.1, steps=20)
    (outcome,) = train(TASK, shape, training, seeds=[3])
    inputs, targets = TASK.sample(training.samples, (0, 1))
    mean, std = inputs.flatten(0, 1).double().mean(0), inputs.flatten(0, 1).double().std(0)
    inputs = ((inputs - mean) / std).float()
    scaled = ((targets - targets.double().mean()) / targets.double().std()).float()
    net = ClassTokenNet(shape, seed=3)
    adam = torch.optim.AdamW(net.parameters(), weight_decay=0.1)
    losses = []
    order = epoch_order(training.samples, training.batch, 3, 0, training.steps)
    for rows, rate in zip(order, learning_rates(training), strict=True):
        adam.param_groups[0]["lr"] = rate
        loss = nn.functional.mse_loss(net(inputs[rows])[:, 0], scaled[rows])
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), training.clip)
        adam.step()
        losses.append(loss.item())
    segments = [np.mean(losses[a:b]) for a, b in ((0, 7), (7, 13), (13, 20))]
    np.testing.assert_allclose([loss for _, _, loss in outcome.curve], segments, rtol=1e-5)


def test_trained_weights_take_raw_data() -> None:
    task = max_plus_min(6)
    shape = ClassTokenShape.standard(token_dim=1, heads=2, width=16)
    training = Training(steps=1500, rate=1e-2, samples=1000, validation=400, evaluations=5)
    (outcome,) = train(task, shape, training, seeds=[0])
    assert outcome.error_last is not None
    assert outcome.error_last < 0.05
    inputs, targets = task.sample(4000, seed=(9, 9))
    with torch.no_grad():
        outputs = ClassTokenNet(shape, outcome.params)(inputs)[:, 0]
    error = (outputs - targets).square().mean()
    assert float(error / targets.var()) == pytest.approx(outcome.error_last, rel=0.5)


def test_best_and_last_are_those_of_the_curve() -> None:
    (outcome,) = train(TASK, NETS["one layer"], SHORT, seeds=[5])
    errors = {step: error for step, error, _ in outcome.curve}
    assert list(errors) == [10, 20, 30]
    assert outcome.error == min(errors.values())
    assert outcome.best_step is not None
    assert errors[outcome.best_step] == outcome.error
    assert outcome.error_last == errors[30]


def test_a_network_that_diverges_is_recorded_and_does_not_touch_the_others() -> None:
    wild = replace(SHORT, rate=1e12, clip=1e12)
    outcomes = train(TASK, NETS["one layer"], wild, seeds=[0, 1])
    assert all(outcome.diverged for outcome in outcomes)
    assert all(outcome.error_last is None or outcome.error_last > 1 for outcome in outcomes)


def test_every_epoch_is_a_permutation_and_any_range_of_steps_can_be_asked_for() -> None:
    whole = epoch_order(20, 6, seed=1, first=0, last=12)
    assert whole.shape == (12, 6)
    for epoch in range(4):
        rows = whole[3 * epoch : 3 * epoch + 3].ravel()
        assert len(set(rows)) == 18
    pieces = [epoch_order(20, 6, 1, first, last) for first, last in ((0, 5), (5, 7), (7, 12))]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    assert not np.array_equal(whole, epoch_order(20, 6, seed=2, first=0, last=12))


def test_warm_up_then_cosine_to_zero() -> None:
    rates = learning_rates(Training(steps=100, rate=2.0, warmup=0.1))
    assert rates[9] == pytest.approx(2.0)
    assert rates[0] == pytest.approx(0.2)
    assert rates[-1] < 0.001 * 2
    assert (np.diff(rates[10:]) < 0).all()


@spec
class Broken:
    """A task whose data are wrong in one way."""

    fault: str
    length: int = 3
    token_dim: int = 4

    def sample(self, count: int, seed: object) -> tuple[Tensor, Tensor]:
        inputs, targets = sum_of_maxima(3).sample(count, 0)
        if self.fault == "nan":
            inputs[0, 0, 0] = float("nan")
        if self.fault == "constant":
            targets[:] = 1.0
        return inputs, targets


@pytest.mark.parametrize(("fault", "sentence"), [("nan", "NaN or inf"), ("constant", "constant")])
def test_unusable_data_get_a_sentence(fault: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        train(Broken(fault=fault), NETS["one layer"], SHORT, seeds=[0])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"rate": 0.0}, "learning rate"),
        ({"batch": 65}, "larger than the training set"),
        ({"warmup": 1.0}, "warmup"),
        ({"loss": "hinge"}, "loss is"),
    ],
)
def test_impossible_training_is_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        replace(SHORT, **change)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="seeds are distinct"):
        train(TASK, NETS["one layer"], SHORT, seeds=[])
    with pytest.raises(InputError, match="the network takes"):
        train(max_plus_min(4), NETS["one layer"], SHORT, seeds=[0])
