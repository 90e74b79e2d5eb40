"""Functions of short sequences as retrieval targets, and as certified networks."""

from itertools import product

import pytest
import torch
from torch import Tensor

from headwise import build
from headwise.core.errors import InputError
from headwise.tasks import check_assumptions


def targets(tokens: Tensor) -> Tensor:
    return (3 * tokens[:, 0, 0] * tokens[:, -1, -1]).sin() + tokens.square().sum((1, 2))


@pytest.mark.parametrize(("length", "dim"), [(1, 1), (2, 3), (3, 2), (4, 1), (4, 5)])
def test_every_function_of_a_short_sequence_is_a_retrieval_target(length: int, dim: int) -> None:
    task = build.as_retrieval(targets, length, dim)
    assert task.intrinsic_dim == length * (dim + 1)
    inputs = task.sample(200, seed=1)[0].double()
    assert torch.allclose(task.oracle(inputs), targets(inputs), atol=1e-10)
    assert all(each.holds is not False for each in check_assumptions(task))


def test_a_function_of_one_token_becomes_a_certified_network() -> None:
    task = build.as_retrieval(lambda x: (3 * x[:, 0, 0]).sin(), 1, 1, lipschitz=3.0)
    built = build.retrieval(task, 0.1)
    inputs = torch.rand(500, 1, 1, generator=torch.Generator().manual_seed(0)).double()
    errors = (built.net(inputs)[:, 0] - (3 * inputs[:, 0, 0]).sin()).abs()
    assert float(errors.max()) <= built.certificate.error <= 0.1
    with pytest.raises(InputError, match="from 1 to 4"):
        build.as_retrieval(targets, 5, 1)
    with pytest.raises(InputError, match="from 1 to 24"):
        build.as_retrieval(targets, 25, 1, features="coordinates")
    with pytest.raises(InputError, match="features must be 'distances' or 'coordinates'"):
        build.as_retrieval(targets, 2, 1, features="angles")  # type: ignore[arg-type]


def test_a_function_is_asked_inside_the_cube_only() -> None:
    asked = []

    def root(x: torch.Tensor) -> torch.Tensor:
        asked.append((float(x.detach().min()), float(x.detach().max())))
        return (0.01 + x[:, 0, 0]).sqrt()  # NaN below −0.01

    built = build.retrieval(build.as_retrieval(root, 1, 1, lipschitz=5.0), 0.3)
    assert built.certificate.attack(rounds=1).holds
    assert min(low for low, _ in asked) >= 0
    assert max(high for _, high in asked) <= 1


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6, 8, 9, 12, 13, 16])
@pytest.mark.parametrize("dim", [1, 2])
def test_minima_and_maxima_over_quarters_determine_every_token(length: int, dim: int) -> None:
    generator = torch.Generator().manual_seed(length)
    inputs = torch.rand(100, length, dim, generator=generator, dtype=torch.double)
    inputs[:50] = inputs[:50].mul(3).round().div(3)  # ties
    for position, axis in product(range(length), range(dim)):
        task = build.as_retrieval(
            lambda x, t=position, i=axis: x[:, t, i],  # type: ignore[misc]
            length,
            dim,
            features="coordinates",
        )
        assert all(4 * len(each) >= length for each in task.subsets)
        assert torch.allclose(task.oracle(inputs), inputs[:, position, axis], rtol=0, atol=1e-11)


def test_the_outer_map_is_as_steep_as_it_is_declared() -> None:
    """Features that no sequence has, in all directions: the declared slope is not exceeded."""
    for features, length in (("distances", 3), ("coordinates", 4), ("coordinates", 9)):
        task = build.as_retrieval(
            lambda x: x.sum((1, 2)).sin(),
            length,
            2,
            lipschitz=(2 * length) ** 0.5,
            features=features,  # type: ignore[arg-type]
        )
        generator = torch.Generator().manual_seed(0)
        first = torch.rand(2000, task.intrinsic_dim, generator=generator, dtype=torch.double)
        moved = torch.randn(first.shape, generator=generator, dtype=torch.double) * 1e-4
        change = (task.outer(first + moved) - task.outer(first)).abs() / moved.norm(dim=1)
        assert float(change.max()) <= task.outer.lipschitz  # type: ignore[operator]


@pytest.mark.parametrize(
    ("length", "dim", "error"),
    [(2, 1, 0.05), (3, 1, 0.1), (4, 1, 0.25), (2, 2, 0.25), (1, 4, 0.25), (1, 5, 0.6)],
)
def test_functions_of_several_tokens_become_certified_networks(
    length: int, dim: int, error: float
) -> None:
    def ripple(x: Tensor) -> Tensor:
        return (x.sum((1, 2)) + x[:, 0, 0]).sin()

    count = length * dim
    task = build.as_retrieval(
        ripple,
        length,
        dim,
        lipschitz=(count + 3) ** 0.5,  # of the gradient (2, 1, …, 1)·cos
        curvature=count + 3,
        features="coordinates",
    )
    built = build.retrieval(task, error)
    assert built.net.shape.layers[0].heads == count
    assert built.certificate.error <= error
    assert bool(built.certificate.attack(rounds=1))
    inputs = torch.rand(3000, length, dim, generator=torch.Generator().manual_seed(3)).double()
    assert float((built.net(inputs)[:, 0] - ripple(inputs)).abs().max()) <= built.certificate.error


def test_more_numbers_than_a_grid_has_axes_are_refused() -> None:
    for length, dim in ((7, 1), (1, 7), (5, 1)):
        task = build.as_retrieval(
            lambda x: x.sum((1, 2)), length, dim, lipschitz=3.0, features="coordinates"
        )
        with pytest.raises(InputError, match="a certified network can be built in up to 6"):
            build.retrieval(task, 0.5)


def test_curvature_is_taken_only_where_it_is_the_outer_maps() -> None:
    for features, length in (("distances", 2), ("coordinates", 5)):
        with pytest.raises(InputError, match="second derivatives carry over"):
            build.as_retrieval(
                lambda x: x.sum((1, 2)),
                length,
                1,
                curvature=1.0,
                features=features,  # type: ignore[arg-type]
            )
