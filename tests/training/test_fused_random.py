"""The kernel on networks that nobody chose: sizes drawn at random, every variant that it has."""

import random
from dataclasses import replace

import numpy as np
import pytest
from test_fused import autograd, heads_of, random_data, trained_looking

from headwise.training import Training
from headwise.training.fused.engine import FusedEngine

VARIANTS = ("plain", "grouped", "banded", "window", "top-k", "linear")


def drawn(variant: str, rng: random.Random):
    """A network, a length and a batch size, small and odd."""
    heads, length = rng.randint(1, 7), rng.choice([1, 2, 3, 7, 16, 33, 130])
    numbers = {
        "grouped": rng.choice([n for n in range(1, heads + 1) if heads % n == 0]),
        "banded": rng.randint(1, min(heads, length)),
        "window": rng.randint(1, length + 3),
        "top-k": rng.randint(1, length + 3),
    }
    text = f"{variant}:{numbers[variant]}" if variant in numbers else variant
    dim, qk_dim, v_dim = (rng.randint(1, 12) for _ in range(3))
    width, readout = rng.randint(1, 40), rng.randint(1, 40)
    shape = heads_of(text, heads, dim, qk_dim, v_dim, width, readout)
    token_dim, outputs = rng.randint(1, 7), rng.randint(1, 3)
    return replace(shape, token_dim=token_dim, outputs=outputs), length, rng.choice([1, 3, 8, 17])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("variant", VARIANTS)
def test_gradients_of_any_network_equal_float64_autograd(variant, seed):
    shape, length, batch = drawn(variant, random.Random(f"{variant} {seed}"))
    training = Training(steps=1, rate=1e-3, batch=batch, samples=2 * batch)
    params, data = trained_looking(shape, seed), random_data(shape, length, 2 * batch, seed)
    rows = np.random.default_rng(seed).permutation(2 * batch)[:batch]
    wanted_loss, wanted = autograd(shape, training, params, data, rows)
    engine = FusedEngine(shape, training, [params])
    (losses,) = engine.advance(data, rows[None, None], np.array([0.0]))
    assert losses[0] == pytest.approx(wanted_loss, rel=2e-5)
    (found,) = engine.gradients()
    largest = max(value.abs().max().item() for value in wanted.values())
    for name, gradient in found.items():
        gap = (gradient.double() - wanted[name]).abs().max().item()
        assert gap <= 1e-4 * (wanted[name].abs().max().item() + 0.1 * largest), name
