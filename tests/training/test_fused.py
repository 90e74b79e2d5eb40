"""The fused engine against float64 autograd of the network's own definition."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from headwise.core.errors import InputError
from headwise.nets import AttentionShape, ClassTokenShape, MLPShape, PooledShape
from headwise.nets.sequence import HeadPooling, SetPooling
from headwise.training import Training
from headwise.training.fused import available, covers
from headwise.training.fused.engine import FusedEngine
from headwise.training.samples.engine import Dataset


def network(
    token_dim=4, dim=32, heads=4, qk_dim=8, v_dim=8, width=32, readout=32, **more
) -> ClassTokenShape:
    return ClassTokenShape(
        token_dim=token_dim,
        embed_dim=dim,
        layers=(AttentionShape(heads=heads, qk_dim=qk_dim, v_dim=v_dim),),
        embed=MLPShape(widths=(width,), activation="relu"),
        readout=MLPShape(widths=(readout,), activation="gelu"),
        **more,
    )


ALL_ON = {"residual": True, "norm": True, "outputs": 3, "class_token_is_key": False}


def heads_of(variant: str, heads=4, dim=32, qk_dim=8, v_dim=8, width=32, readout=32) -> PooledShape:
    """The same with heads of a variant."""
    plain = network(4, dim, heads, qk_dim, v_dim, width, readout)
    return PooledShape(
        token_dim=4,
        embed_dim=dim,
        embed=plain.embed,
        pooling=HeadPooling(layer=plain.layers[0], variant=variant),
        readout=plain.readout,
    )


# (network, length, batch): each line stretches something the others do not
SWEEP = [
    (network(), 32, 16),
    (network(), 8, 5),
    (network(token_dim=1, dim=1, heads=1, qk_dim=1, v_dim=1, width=1, readout=1), 1, 1),
    (network(token_dim=3, dim=7, heads=3, qk_dim=2, v_dim=5, width=9, readout=11), 13, 6),
    (network(token_dim=2, dim=33, heads=5, qk_dim=7, v_dim=3, width=31, readout=17), 33, 33),
    (network(heads=1, dim=8), 128, 9),
    (network(heads=8, dim=64), 31, 70),
    (network(token_dim=64, heads=16, dim=40, qk_dim=3, v_dim=4), 40, 7),
    (network(token_dim=20, heads=2, width=200, readout=100), 50, 12),
    (network(width=40), 700, 3),  # several blocks to a sequence
    (network(heads=3, dim=24, width=64), 1025, 2),
    (network(class_token_is_key=False), 17, 10),
    (network(class_token_is_key=False), 300, 3),
    (network(scaled=False), 17, 10),
    (network(residual=True), 17, 10),
    (network(norm=True), 17, 10),
    (network(outputs=5), 17, 10),
    (network(token_dim=3, dim=10, heads=3, v_dim=5, width=9, readout=13, **ALL_ON), 19, 21),
    (heads_of("plain"), 17, 10),
    (heads_of("grouped:2"), 32, 16),
    (heads_of("grouped:1", heads=6, dim=10, qk_dim=3, v_dim=5, width=9, readout=11), 13, 9),
    (heads_of("banded:2"), 32, 16),
    (heads_of("banded"), 131, 16),  # bands that end within a block
    (heads_of("window:5"), 100, 9),  # blocks of which no token is seen
    (heads_of("window:500"), 17, 9),
    (heads_of("top-k:4"), 32, 16),
    (heads_of("top-k:1"), 17, 5),
    (heads_of("top-k:9", heads=3, width=40), 300, 11),  # the class token is hidden at times
    (heads_of("top-k:40"), 32, 16),
    (heads_of("top-k:2", heads=1), 9, 4),
    (heads_of("top-k:7", heads=2, width=300), 70, 3),  # several blocks, twice through them
    (heads_of("linear"), 32, 16),
    (heads_of("linear", heads=3, dim=10, qk_dim=5, v_dim=3, width=9, readout=11), 13, 21),
    (heads_of("linear", heads=1, dim=7, qk_dim=1, v_dim=2, width=40), 300, 5),
    (heads_of("linear", heads=2, dim=3, qk_dim=9, v_dim=1, width=1, readout=1), 1, 1),
]


def trained_looking(shape: ClassTokenShape, seed: int) -> dict[str, torch.Tensor]:
    """Parameters without the zeros and small scales of a fresh network, so that all matter."""
    rng = np.random.default_rng(seed)
    fresh = shape.initial_params(seed)
    return {
        name: value + torch.from_numpy(0.3 * rng.standard_normal(value.shape).astype(np.float32))
        for name, value in fresh.items()
    }


def random_data(shape: ClassTokenShape, length: int, count: int, seed: int, classes=False):
    rng = np.random.default_rng([seed, 1])
    inputs = rng.standard_normal((count, length, shape.token_dim)).astype(np.float32)
    targets = rng.standard_normal((count, shape.outputs)).astype(np.float32)
    if classes:
        targets = np.exp(targets) / np.exp(targets).sum(1, keepdims=True)
    return Dataset(torch.from_numpy(inputs), torch.from_numpy(targets))


def loss_of(training: Training, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    if training.loss == "mse":
        return functional.mse_loss(outputs, targets)
    return functional.cross_entropy(outputs, targets)


def autograd(shape, training, params, data, rows):
    """Loss and gradients in double precision."""
    wide = {name: value.double()[None].requires_grad_() for name, value in params.items()}
    outputs = shape.forward(wide, data.inputs[rows].double()[None])[0]
    loss = loss_of(training, outputs, data.targets[rows].double())
    loss.backward()
    zero = torch.zeros(())
    return loss.item(), {
        name: zero if value.grad is None else value.grad[0] for name, value in wide.items()
    }


@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
@pytest.mark.parametrize(("shape", "length", "batch"), SWEEP)
def test_loss_and_gradients_equal_float64_autograd(shape, length, batch, loss):
    if loss == "cross-entropy" and shape.outputs == 1:
        shape = replace(shape, outputs=2)
    training = Training(steps=1, rate=1e-3, batch=batch, samples=2 * batch, loss=loss)
    params = trained_looking(shape, seed=3)
    data = random_data(shape, length, 2 * batch, seed=4, classes=loss == "cross-entropy")
    rows = np.random.default_rng(5).permutation(2 * batch)[:batch]
    expected_loss, expected = autograd(shape, training, params, data, rows)

    engine = FusedEngine(shape, training, [params])
    losses = engine.advance(data, rows[None, None], np.array([0.0]))
    assert losses[0, 0] == pytest.approx(expected_loss, rel=1e-5)
    (gradients,) = engine.gradients()
    largest = max(value.abs().max().item() for value in expected.values())
    for name, gradient in gradients.items():
        error = (gradient.double() - expected[name]).abs().max().item()
        scale = expected[name].abs().max().item() + 0.1 * largest
        assert error <= 3e-5 * scale, f"{name}: {error / scale}"


@pytest.mark.parametrize(("shape", "length", "batch"), SWEEP)
def test_predictions_equal_the_network(shape, length, batch):
    params = trained_looking(shape, seed=6)
    data = random_data(shape, length, 300 if length < 100 else 5, seed=7)
    training = Training(steps=1, rate=1e-3, batch=batch, samples=batch)
    (outputs,) = FusedEngine(shape, training, [params]).predict(data.inputs)
    wide = {name: value.double()[None] for name, value in params.items()}
    expected = shape.forward(wide, data.inputs.double()[None])[0]
    assert (outputs.double() - expected).abs().max() <= 2e-5 * expected.abs().max()


def torch_losses(shape, training, params, data, order, rates):
    """What a user would write: the network's forward, autograd, clipping, torch's AdamW."""
    stacked = {name: value.clone()[None].requires_grad_() for name, value in params.items()}
    optimizer = torch.optim.AdamW(stacked.values(), weight_decay=training.weight_decay)
    losses = []
    for rows, rate in zip(order, rates, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        outputs = shape.forward(stacked, data.inputs[rows][None])[0]
        loss = loss_of(training, outputs, data.targets[rows])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(stacked.values(), training.clip)
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses), {name: value.detach()[0] for name, value in stacked.items()}


@pytest.mark.parametrize(
    ("shape", "training"),
    [
        (network(), Training(steps=20, rate=1e-2)),
        (network(heads=1, dim=8), Training(steps=20, rate=1e-2, batch=50)),
        (network(heads=5, dim=40), Training(steps=20, rate=1e-2, clip=0.05, weight_decay=0.1)),
        (network(heads=3, **ALL_ON), Training(steps=20, rate=1e-2, loss="cross-entropy")),
    ],
)
def test_losses_follow_torch_for_twenty_steps(shape, training):
    data = random_data(shape, 24, 200, seed=8, classes=training.loss == "cross-entropy")
    order = np.random.default_rng(9).integers(0, 200, (20, training.batch))
    rates = training.rate * np.linspace(0.1, 1, 20)
    params = shape.initial_params(10)
    expected, final = torch_losses(shape, training, params, data, order, rates)
    engine = FusedEngine(shape, training, [params])
    losses = [engine.advance(data, order[None, i : i + 7], rates[i : i + 7]) for i in (0, 7, 14)]
    np.testing.assert_allclose(np.concatenate(losses, 1)[0], expected, rtol=1e-5)
    for name, value in engine.params()[0].items():
        torch.testing.assert_close(value, final[name], rtol=1e-3, atol=1e-4)


def test_a_member_does_not_depend_on_its_neighbours_or_on_how_steps_are_grouped():
    shape, training = network(), Training(steps=8, rate=1e-2, batch=20, samples=100)
    data = random_data(shape, 21, 100, seed=11)
    members = [shape.initial_params(seed) for seed in range(3)]
    members[1]["class_token"] = members[1]["class_token"] * math.nan
    order = np.random.default_rng(12).integers(0, 100, (3, 8, 20))
    rates = np.full(8, 1e-2)
    together = FusedEngine(shape, training, members)
    losses = together.advance(data, order, rates)
    for member in (0, 2):
        alone = FusedEngine(shape, training, [members[member]])
        parts = [alone.advance(data, order[[member], i : i + 4], rates[i : i + 4]) for i in (0, 4)]
        assert np.array_equal(np.concatenate(parts, 1)[0], losses[member])
        for name, value in alone.params()[0].items():
            assert torch.equal(value, together.params()[member][name])
        assert torch.equal(alone.predict(data.inputs)[0], together.predict(data.inputs)[member])


@pytest.mark.parametrize("name", list(network(norm=True).parameter_shapes()))
def test_a_parameter_that_is_not_a_number_shows_in_the_loss(name):
    shape, training = network(norm=True), Training(steps=1, rate=1e-2, batch=4, samples=4)
    params = shape.initial_params(13)
    params[name].view(-1)[-1] = math.nan
    engine = FusedEngine(shape, training, [params])
    data = random_data(shape, 9, 4, seed=14)
    losses = engine.advance(data, np.arange(4)[None, None], np.array([1e-2]))
    # the key bias cancels in the softmax and is left out of the sum altogether
    assert np.isnan(losses).all() == (name != "layers.0.key.bias")


def test_a_rate_far_too_large_ends_in_a_loss_that_is_not_finite():
    shape, training = network(), Training(steps=60, rate=1e30, batch=8, samples=8)
    engine = FusedEngine(shape, training, [shape.initial_params(15)])
    data = random_data(shape, 9, 8, seed=16)
    order = np.tile(np.arange(8), (1, 60, 1))
    assert not np.isfinite(engine.advance(data, order, np.full(60, 1e30))[0, -1])


def test_it_says_what_it_does_not_cover():
    training = Training(steps=1, rate=1e-3)
    one = network()
    assert covers(one, training) is None
    assert "2 attention layers" in covers(replace(one, layers=one.layers * 2), training)
    assert "positions" in covers(replace(one, positions=5), training)
    deep = MLPShape(widths=(4, 4), activation="relu")
    assert "2 hidden layers" in covers(replace(one, embed=deep), training)
    smooth = MLPShape(widths=(4,), activation="gelu")
    assert "activation is gelu" in covers(replace(one, embed=smooth), training)
    with pytest.raises(InputError, match="positions"):
        FusedEngine(replace(one, positions=5), training, [])


def test_rows_outside_the_data_are_refused():
    shape, training = network(), Training(steps=1, rate=1e-3, batch=1, samples=1)
    engine = FusedEngine(shape, training, [shape.initial_params(0)])
    data = random_data(shape, 5, 3, seed=17)
    for row in (-1, 3):
        with pytest.raises(InputError, match="row"):
            engine.advance(data, np.full((1, 1, 1), row), np.array([1e-3]))


def test_the_kernel_works_here():
    assert available() is None


def test_what_the_kernel_has_not_is_said():
    training = Training(steps=1, rate=1e-3)
    pooled = PooledShape.standard(token_dim=4, pooling=SetPooling(kind="max"), embed_dim=4)
    assert "pools by max pooling" in str(covers(pooled, training))
    placed = replace(heads_of("banded:2"), positions=8)
    assert "positions" in str(covers(placed, training))
