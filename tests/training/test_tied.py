"""Variants trained as plain heads with tied weights: the same network, the same trajectory."""

import numpy as np
import pytest
import torch

from headwise.core.errors import InputError
from headwise.nets import AttentionShape, MLPShape, PooledShape
from headwise.nets.sequence import HeadPooling
from headwise.nets.tied import fixed_params, plain_twin, twin_params
from headwise.training import Training
from headwise.training.fused.engine import FusedEngine
from headwise.training.samples.choose import make_engine
from headwise.training.samples.engine import Dataset
from headwise.training.samples.stacked import StackedEngine

TIED = ["talking", "mixture:1:2", "mixture:0:3", "gated", "differential", "mixture:0:1"]


def network(variant: str, heads: int = 4, outputs: int = 1) -> PooledShape:
    """All dimensions differ."""
    return PooledShape(
        token_dim=3,
        embed_dim=11,
        embed=MLPShape(widths=(7,), activation="relu"),
        pooling=HeadPooling(layer=AttentionShape(heads=heads, qk_dim=6, v_dim=5), variant=variant),
        readout=MLPShape(widths=(13,), activation="gelu"),
        outputs=outputs,
    )


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("variant", ["plain", *TIED])
def test_the_plain_twin_computes_the_same(variant, heads):
    if variant in ("mixture:1:2", "mixture:0:3") and heads == 1:
        variant = "mixture:0:1"
    shape = network(variant, heads)
    rng = np.random.default_rng(1)
    params = {
        name: torch.from_numpy(0.7 * rng.standard_normal((2, *size)))
        for name, size in shape.parameter_shapes().items()
    }
    twin = plain_twin(shape)
    fixed = {
        name: value.double().expand(2, *value.shape) for name, value in fixed_params(shape).items()
    }
    made = fixed | twin_params(shape, params)
    sizes = {name: tuple(value.shape[1:]) for name, value in made.items()}
    assert sizes == twin.parameter_shapes()
    inputs = torch.from_numpy(rng.standard_normal((2, 6, 9, 3)))
    assert (shape.forward(params, inputs) - twin.forward(made, inputs)).abs().max() < 1e-12


@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
@pytest.mark.parametrize("variant", TIED)
def test_both_engines_take_the_same_steps(variant, loss):
    shape = network(variant, outputs=3)
    training, seeds = Training(steps=1, rate=1e-3, batch=8, loss=loss, weight_decay=0.1), [0, 2, 5]
    start = [shape.initial_params(seed) for seed in seeds]
    engine, reason = make_engine(shape, training, start, seeds)
    assert engine.name == "fused"
    assert "tied weights" in reason
    stacked = StackedEngine(shape, training, start, seeds)
    rng = torch.Generator().manual_seed(3)
    targets = torch.randn(20, 3, generator=rng)
    data = Dataset(torch.randn(20, 9, 3, generator=rng), targets.softmax(1))
    order = np.random.default_rng(4).integers(0, 20, (3, 12, 8))
    rates = np.full(12, 3e-3)
    ours, theirs = engine.advance(data, order, rates), stacked.advance(data, order, rates)
    assert abs(ours - theirs).max() < 1e-5
    for first, second in zip(engine.params(), stacked.params(), strict=True):
        assert all((first[name] - second[name]).abs().max() < 1e-4 for name in first)
    assert (engine.predict(data.inputs) - stacked.predict(data.inputs)).abs().max() < 1e-4


def test_the_plain_kernel_refuses_what_it_would_train_as_plain_heads():
    shape = network("talking")
    with pytest.raises(InputError, match="tied"):
        FusedEngine(shape, Training(steps=1, rate=1e-3), [shape.initial_params(0)])


def test_a_row_outside_the_data_is_refused():
    shape, training = network("gated"), Training(steps=1, rate=1e-3, batch=1, samples=1)
    engine, _ = make_engine(shape, training, [shape.initial_params(0)], [0])
    data = Dataset(torch.ones(3, 5, 3), torch.ones(3, 1))
    for row in (-1, 3):
        with pytest.raises(InputError, match="row"):
            engine.advance(data, np.full((1, 1, 1), row), np.array([1e-3]))
