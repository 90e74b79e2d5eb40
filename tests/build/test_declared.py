"""Declared constants are listed, and false ones are looked for at every scale."""

import functools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from headwise import build
from headwise.core.errors import InputError
from headwise.tasks import Function, Retrieval


def declared(
    function: Callable[[Tensor], Tensor],
    lipschitz: float | None = None,
    curvature: float | None = None,
    dim: int = 1,
) -> Retrieval:
    features = Function(
        function=function, count=1, token_dim=dim, lipschitz=lipschitz, curvature=curvature
    )
    return Retrieval(features=features, length=4, extrema="min", inputs="uniform")


def spike(centre: float, width: float) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.relu(1 - (x - centre).abs() / width)


@pytest.mark.parametrize("width", [1e-2, 1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("centre", [0.3, 0.5, 0.123456, 1 / 3])
def test_spikes_are_found(centre: float, width: float) -> None:
    with pytest.raises(InputError, match=r"declared Lipschitz constant of the features is 0.001"):
        build.retrieval(declared(spike(centre, width), 1e-3), 0.01)


def test_a_spike_at_a_round_number_is_found_however_narrow() -> None:
    with pytest.raises(InputError, match=r"1e\+07"):
        build.retrieval(declared(spike(0.3, 1e-7), 1e-3), 0.01)


@pytest.mark.parametrize(
    ("function", "lipschitz", "curvature", "dim"),
    [
        (lambda x: x + 1e-4 * torch.sin(1e5 * x), 1.01, None, 1),
        (lambda x: (x - 0.37).abs() * 0.01, None, 0.5, 1),
        (lambda x: torch.sigmoid(200 * (x.sum(-1, keepdim=True) - 1.234)), 1.0, None, 2),
        (lambda x: (40 * x.prod(-1, keepdim=True)).sin(), 30.0, None, 3),
    ],
    ids=["ripples", "kink", "step", "product"],
)
def test_what_random_pairs_hardly_show_is_found(
    function: Callable[[Tensor], Tensor],
    lipschitz: float | None,
    curvature: float | None,
    dim: int,
) -> None:
    with pytest.raises(InputError, match="declare at least that much"):
        build.retrieval(declared(function, lipschitz, curvature, dim), 0.1)


def test_true_constants_are_accepted_however_tight() -> None:
    for task in (
        declared(lambda x: torch.sin(2 * x), 2.0, 4.0),
        declared(lambda x: 1e6 + x**2, None, 2.0),
        declared(lambda x: (x - 0.3).norm(dim=-1, keepdim=True), 1.0, dim=2),
        declared(lambda x: 0 * x, 0.0),
    ):
        assert build.retrieval(task, 0.3).certificate.attack(rounds=1).holds


def test_a_certificate_lists_every_constant_that_it_rests_on() -> None:
    features = Function(
        function=lambda x: torch.sin(2 * x),
        count=1,
        token_dim=1,
        lipschitz=2.0,
        curvature=4.0,
        low=-1.0,
        high=1.0,
    )
    outer = Function(function=lambda z: z.sum(-1).cos(), count=1, lipschitz=1.0)
    task = Retrieval(features=features, length=4, outer=outer, inputs="uniform")
    certificate = build.retrieval(task, 0.3).certificate
    for words in (
        "the features have a Lipschitz constant of 2;",
        "the features have second derivatives of at most 4;",
        "the features have values of at least -1;",
        "the features have values of at most 1;",
        "the outer map has a Lipschitz constant of 1;",
    ):
        assert any(f"Declared, not proved: {words}" in each for each in certificate.assumptions)
        assert words in str(certificate)
        assert words in str(certificate.to_data()["assumptions"])


def test_code_that_raises_becomes_a_sentence() -> None:
    def broken(tokens: Tensor) -> Tensor:
        raise KeyError("x")

    with pytest.raises(InputError, match=r"the features, called on a tensor .* raised KeyError"):
        build.retrieval(declared(broken, 1.0), 0.1)


def test_a_frontier_names_the_declared_constants_of_its_certificates() -> None:
    tasks = {"line": lambda length: declared(lambda x: 0.5 * x, 1.0)}
    found = build.frontier([4], tasks=tasks, errors=(0.3, 0.2))
    assert "line: Declared, not proved: the features have a Lipschitz constant of 1" in str(found)


@pytest.mark.parametrize("corner", [(0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (1.0, 0.0, 1.0)])
@pytest.mark.parametrize("radius", [1e-2, 1e-6])
def test_a_spike_at_a_corner_of_the_box_is_found(corner: tuple[float, ...], radius: float) -> None:
    def pointed(x: Tensor) -> Tensor:
        return torch.relu(1 - (x - x.new_tensor(corner)).norm(dim=-1, keepdim=True) / radius)

    with pytest.raises(InputError, match="declared Lipschitz constant"):
        build.retrieval(declared(pointed, lipschitz=1.0, dim=3), 0.5)


@pytest.mark.parametrize("centre", [0.1234567, 0.5000123, 0.9876543])
def test_points_leave_no_gap_for_a_spike(centre: float) -> None:
    with pytest.raises(InputError, match="declared Lipschitz constant"):
        build.retrieval(declared(spike(centre, 8e-6), lipschitz=1.0), 0.5)


def test_a_declared_constant_is_listed_with_all_its_digits() -> None:
    task = declared(lambda x: torch.sin(2**0.5 * x), lipschitz=2**0.5)
    assert f"constant of {2**0.5};" in build.retrieval(task, 0.3).certificate.assumptions[-1]


def cone(centre: list[float], radius: float) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.relu(1 - (x - x.new_tensor(centre)).norm(dim=-1, keepdim=True) / radius)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("dim", "radius"), [(1, 2e-6), (2, 1.5e-3), (3, 1.8e-2)])
def test_a_spike_wider_than_the_certificate_says_is_found_wherever_it_is(
    dim: int, radius: float, seed: int
) -> None:
    place = torch.rand(dim, generator=torch.Generator().manual_seed(seed)).tolist()
    pointed = cone(place, radius)
    with pytest.raises(InputError, match="declared Lipschitz constant"):
        build.retrieval(
            declared(lambda x: pointed(x) + 0.3 * x.sum(-1, keepdim=True).sin(), 1.0, dim=dim), 0.8
        )


@pytest.mark.parametrize(("dim", "radius"), [(1, 5e-7), (2, 7.1e-4), (3, 8.7e-3), (4, 3.4e-2)])
def test_a_certificate_says_how_narrow_a_spike_can_hide(dim: int, radius: float) -> None:
    task = declared(lambda x: 0.3 * x.sum(-1, keepdim=True).sin(), 1.0, dim=dim)
    sentence = build.retrieval(task, 0.9).certificate.assumptions[-2]
    assert sentence.startswith("The features have been sampled at 1.")
    words = sentence.split("up to ")[1].split(" from")[0]
    assert radius * 0.98 <= float(words) <= radius * 1.02
    assert "a spike narrower than that can hide" in sentence


def test_a_range_that_only_the_lattice_contradicts_is_refused() -> None:
    pointed = cone([0.5, 0.5, 0.5], 1e-9)  # a place of the lattice, and of nothing else
    features = Function(function=pointed, count=1, token_dim=3, curvature=1e30, low=0.0, high=0.5)
    task = Retrieval(features=features, length=4, extrema="min", inputs="uniform")
    with pytest.raises(InputError, match=r"declared range of the features is \[0.0, 0.5\]"):
        build.retrieval(task, 0.8)


def test_code_without_gradients_is_sampled_all_the_same() -> None:
    def by_numpy(x: Tensor) -> Tensor:
        return torch.from_numpy(np.sin(3 * x.detach().numpy()))

    assert build.retrieval(declared(by_numpy, 3.0), 0.3).certificate.error <= 0.3
    with pytest.raises(InputError, match="declared Lipschitz constant"):
        build.retrieval(declared(by_numpy, 2.9), 0.3)


CENTRE = torch.tensor([0.123456, 0.7654321, 0.31415], dtype=torch.double)


def flat(x: Tensor) -> Tensor:
    return 0.3 * x.sum(-1, keepdim=True).sin()


class Peaked(torch.nn.Module):
    """A spike at a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("centre", torch.tensor([0.111, 0.222, 0.333]).double())

    def forward(self, x: Tensor) -> Tensor:
        return flat(x) + cone(self.get_buffer("centre").tolist(), 1e-6)(x)


def at_a_global(x: Tensor) -> Tensor:
    return flat(x) + torch.relu(1 - (x - CENTRE.to(x)).norm(dim=-1, keepdim=True) / 1e-4)


def at_literals(x: Tensor) -> Tensor:
    first, second, third = x.split(1, -1)
    away = (first - 0.3217).square() + (second - 0.1234567).square() + (third - 0.9).square()
    return flat(x) + torch.relu(1 - away.sqrt() / 1e-7)


def at_an_argument(centre: tuple[float, ...], x: Tensor) -> Tensor:
    return flat(x) + cone(list(centre), 1e-5)(x)


@pytest.mark.parametrize(
    "function",
    [
        at_a_global,
        at_literals,
        Peaked(),
        functools.partial(at_an_argument, (0.45, 0.67, 0.89)),
        lambda x: flat(x) + cone([2**0.5 - 1] * 3, 1e-6)(x),
    ],
    ids=["global", "literals", "buffer", "argument", "closure"],
)
def test_a_spike_that_the_code_names_is_found_however_narrow(
    function: Callable[[Tensor], Tensor],
) -> None:
    with pytest.raises(InputError, match="declared Lipschitz constant"):
        build.retrieval(declared(function, 1.0, dim=3), 0.8)
    assert build.retrieval(declared(flat, 1.0, dim=3), 0.8).certificate.error <= 0.8


def test_whatever_a_function_refers_to_is_survived() -> None:
    class Shy:
        def __getattribute__(self, name: str) -> object:
            raise RuntimeError("no")

    loop: list[object] = [Shy(), 10**400, float("nan"), {1: None}, {"a", 2.0}, np.array(["x"])]
    loop.append(loop)

    def referring(x: Tensor, kept: object = loop, huge: object = range(10**9)) -> Tensor:
        return flat(x)

    assert build.retrieval(declared(referring, 1.0, dim=1), 0.8).certificate.error <= 0.8
