"""What a mean over the tokens learns slowly is not credited to heads that learn it quickly."""

import headwise
from headwise.advise.probe.zoo import draw_of_class


def test_the_number_of_distinct_symbols_is_one_average() -> None:
    """Three heads reach 1e-7; a mean is 50 times above what they leave when it has begun."""
    seed, index = 139877293, 27
    task = draw_of_class("distinct symbols", seed, index)
    data = task.sample(20_000, (seed, index, 1))
    options = {"max_heads": 5, "positions": False, "seconds": 600, "seed": seed}
    found = headwise.probe(data.inputs, data.targets, **options)
    assert task.is_right(found.heads)
