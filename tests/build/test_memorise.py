"""The one-head network: a wide head, five layers, and the same kind of certificate."""

import pytest
import torch

from headwise import build
from headwise.core.errors import InputError
from headwise.tasks import Bowl, Product, Retrieval, max_plus_min, sum_of_maxima

BOWLS = Retrieval(
    features=Bowl.random(3, 2),
    length=9,
    outer=Product(),
    extrema=("min", "max", "min"),
    subsets=((0, 1, 2, 3), tuple(range(8)), tuple(range(4, 9))),
    inputs="uniform",
)


@pytest.mark.parametrize(
    ("task", "error", "box"),
    [(max_plus_min(8), 0.05, None), (BOWLS, 0.1, None), (sum_of_maxima(6), 1.0, (-4.0, 4.0))],
)
def test_the_memorising_network_is_within_its_certificate(
    task: Retrieval, error: float, box: tuple[float, float] | None
) -> None:
    built = build.memorise(task, error, box=box)
    shape = built.net.shape
    assert (shape.layers[0].heads, shape.layers[0].v_dim) == (1, task.length * task.token_dim)
    assert len(shape.readout.widths) + 1 == 5
    attack = built.certificate.attack(rounds=2)
    assert attack.worst <= built.certificate.error <= error
    assert attack.worst >= 0.2 * built.certificate.error


def test_the_head_returns_the_whole_sequence() -> None:
    task = max_plus_min(5)
    net = build.memorise(task, 0.2).net
    inputs = task.sample(20, seed=0)[0].double()
    torch.testing.assert_close(net.attend(inputs) * 5, inputs.flatten(1), rtol=0, atol=1e-14)


def test_what_cannot_be_memorised_is_refused() -> None:
    with pytest.raises(InputError, match="give a box"):
        build.memorise(sum_of_maxima(8), 0.1)
    with pytest.raises(InputError, match=r"would have [\d.e+,]+ parameters, [\d.e+,]+ TiB"):
        build.memorise(max_plus_min(4096), 1e-6)
    with pytest.raises(InputError, match="error must be a number above 0"):
        build.memorise(max_plus_min(8), -0.1)
    with pytest.raises(InputError, match="holds its length, 8"):
        build.memorise(max_plus_min(8), 0.1).at_length(4)
