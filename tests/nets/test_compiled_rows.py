"""GELU and the RMS norm, compiled, against the same in float64 by torch's operations."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from headwise.nets.compiled import compiled, gelu, rms_norm


def differentiated(function: Callable[..., Tensor], *given: Tensor) -> list[Tensor]:
    """The value and the gradients, for a slope that is a function of the shape."""
    leaves = [each.clone().requires_grad_() for each in given]
    value = function(*leaves)
    slope = torch.randn(value.shape, generator=torch.Generator().manual_seed(7)).to(value.dtype)
    return [value.detach(), *torch.autograd.grad(value, leaves, slope)]


def normed_by_definition(vectors: Tensor, gain: Tensor) -> Tensor:
    return gain * vectors / (vectors.square().mean(-1, keepdim=True) + 1e-6).sqrt()


@pytest.mark.parametrize("count", [1, 3, 7, 8, 16, 17, 1000, 100_003])
def test_gelu_is_that_of_float64(count: int) -> None:
    values = 3 * torch.randn(count, generator=torch.Generator().manual_seed(count))
    for found, exact in zip(
        differentiated(gelu, values), differentiated(functional.gelu, values.double()), strict=True
    ):
        assert (found - exact).abs().max() <= 1e-6


def test_gelu_far_out() -> None:
    far = torch.tensor([-1e30, -40.0, -14.0, -0.0, 0.0, 14.0, 40.0, 1e30]).repeat(2)
    value, slope = differentiated(lambda x: gelu(x), far)
    assert torch.equal(value[5:8], far[5:8])
    assert value[:5].abs().max() < 1e-30
    assert slope.isfinite().all()
    assert gelu(torch.full((16,), torch.nan)).isnan().all()


@pytest.mark.parametrize("shape", [(1, 4, 9, 64), (3, 2, 45, 16), (2, 5, 32), (2, 3, 4, 12)])
def test_the_norm_is_that_of_float64(shape: tuple[int, ...]) -> None:
    random = torch.Generator().manual_seed(len(shape))
    vectors = torch.randn(shape, generator=random)
    gain = 0.5 + torch.rand(shape[0], *(1,) * (len(shape) - 2), shape[-1], generator=random)
    exact = differentiated(normed_by_definition, vectors.double(), gain.double())
    found = differentiated(rms_norm, vectors, gain)
    for one, other in zip(found, exact, strict=True):
        assert (one - other).abs().max() <= 2e-6 * other.abs().max()


def test_a_members_norm_is_computed_as_if_alone() -> None:
    vectors = torch.randn(3, 4, 40, 32, generator=torch.Generator().manual_seed(1))
    gain = torch.rand(3, 1, 1, 32, generator=torch.Generator().manual_seed(2))
    slope = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(3))

    def gradients(members: slice) -> tuple[Tensor, ...]:
        leaves = vectors[members].clone().requires_grad_(), gain[members].clone().requires_grad_()
        return torch.autograd.grad(rms_norm(*leaves), leaves, slope[members])

    for together, alone in zip(gradients(slice(None)), gradients(slice(1, 2)), strict=True):
        assert torch.equal(together[1:2], alone)


def test_without_the_compiled_code_torch_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.randn(2, 3, 5, 32, generator=torch.Generator().manual_seed(4))
    gain = torch.ones(2, 1, 1, 32)
    before = gelu(values), rms_norm(values, gain)
    compiled.cache_clear()
    with monkeypatch.context() as patched:
        patched.setitem(__import__("sys").modules, "headwise.core.compiled.activations", None)
        assert isinstance(compiled(), str)
        for found, other in zip((gelu(values), rms_norm(values, gain)), before, strict=True):
            assert torch.allclose(found, other, atol=1e-6)
    compiled.cache_clear()
