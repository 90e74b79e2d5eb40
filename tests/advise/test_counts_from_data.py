"""What one head learns slowly is not credited to several that learn it quickly."""

import numpy as np
import pytest

import headwise
from headwise.advise.probe.zoo import draw_of_class


@pytest.mark.slow
def test_the_number_of_distinct_symbols_is_one_average() -> None:
    """Three heads reach 1e-7; a mean is 50 times above what they leave when it has begun."""
    seed, index = 139877293, 27
    task = draw_of_class("distinct symbols", seed, index)
    data = task.sample(20_000, (seed, index, 1))
    options = {"max_heads": 5, "positions": False, "seconds": 600, "seed": seed}
    found = headwise.probe(data.inputs, data.targets, **options)
    assert task.is_right(found.heads)


def test_two_opposite_softmax_means_are_one_average() -> None:
    """Two narrow heads leave 1.5e-4, a wide one 1e-3 when it has begun and 3e-4 in the end."""
    inputs = np.random.default_rng(0).standard_normal((12_000, 24, 2)).astype(np.float32)
    up, down = np.exp(0.9 * inputs[..., 0]), np.exp(-0.9 * inputs[..., 0])
    means = [(e * inputs[..., 1]).sum(1) / e.sum(1) for e in (up, down)]
    options = {"max_heads": 3, "positions": False, "seconds": 600}
    found = headwise.probe(inputs, means[0] + means[1], **options)
    assert found.heads == 1
