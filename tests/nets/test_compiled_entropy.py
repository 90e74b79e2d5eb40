"""Cross-entropy, compiled, against torch's of float64."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from headwise.nets.compiled import compiled, compiled_for, cross_entropy


def drawn(rows: tuple[int, ...], size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, wanted numbers, and a slope of each row's nats."""
    random = torch.Generator().manual_seed(size)
    logits = 4 * torch.randn(*rows, size, generator=random)
    wanted = torch.randint(0, size, rows, generator=random)
    return logits, wanted, torch.randn(rows, generator=random)


def nats_and_gradient(logits: Tensor, wanted: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    logits = logits.clone().requires_grad_()
    nats = cross_entropy(logits, wanted)
    return nats.detach(), torch.autograd.grad(nats, logits, slope.to(nats.dtype))[0]


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 65, 256, 1003])
def test_nats_and_gradients_are_those_of_float64(size: int) -> None:
    logits, wanted, slope = drawn((2, 3, 5), size)
    found = nats_and_gradient(logits, wanted, slope)
    exact = logits.double().requires_grad_()
    nats = functional.cross_entropy(exact.flatten(0, -2), wanted.flatten(), reduction="none")
    (gradient,) = torch.autograd.grad(nats, exact, slope.double().flatten())
    assert (found[0] - nats.view(wanted.shape)).abs().max() <= 3e-6
    assert (found[1] - gradient).abs().max() <= 3e-6


def test_far_logits_neither_overflow_nor_vanish() -> None:
    logits = torch.zeros(3, 20)
    logits[0, 3], logits[1, 4], logits[2, 5] = 1e30, -torch.inf, 300.0
    nats, gradient = nats_and_gradient(logits, torch.tensor([3, 0, 0]), torch.ones(3))
    assert nats.tolist() == pytest.approx([0.0, 2.944439, 300.0])
    assert gradient.isfinite().all()


def test_a_number_that_is_none_stays_in_its_row() -> None:
    logits, wanted, _ = drawn((4,), 37)
    for place in (0, 36):  # in a whole vector, and in what fills none
        spoiled = logits.clone()
        spoiled[2, place] = torch.nan
        nats = cross_entropy(spoiled, wanted)
        assert nats.isnan().tolist() == [False, False, True, False]


def test_a_row_is_computed_as_if_alone() -> None:
    logits, wanted, slope = drawn((3, 4, 7), 37)
    together = nats_and_gradient(logits, wanted, slope)
    alone = nats_and_gradient(logits[1:2], wanted[1:2], slope[1:2])
    for one, all_of_them in zip(alone, together, strict=True):
        assert torch.equal(one[0], all_of_them[1])


@pytest.mark.parametrize("number", [-1, 5])
def test_a_number_that_is_none_of_the_row_is_refused(number: int) -> None:
    with pytest.raises(IndexError):
        cross_entropy(torch.zeros(2, 5), torch.tensor([0, number]))


def test_without_the_compiled_code_torch_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    given = drawn((2, 3), 19)
    assert compiled_for(given[0]) is not None
    ours = nats_and_gradient(*given)
    compiled.cache_clear()
    with monkeypatch.context() as patched:
        patched.setitem(__import__("sys").modules, "headwise.core.compiled.entropy", None)
        assert compiled_for(given[0]) is None
        for one, other in zip(ours, nats_and_gradient(*given), strict=True):
            torch.testing.assert_close(one, other)
    compiled.cache_clear()
