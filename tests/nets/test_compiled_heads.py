"""What heads read, compiled, against the same in float64 by torch's operations."""

import pytest
import torch
from torch import Tensor

from headwise.nets.attention import read_heads
from headwise.nets.compiled import compiled, compiled_for, computed_by
from headwise.nets.positions import rotation
from headwise.nets.shape import AttentionShape

# members, batch, length, heads, qk_dim, v_dim, keys, causal, turned, normed
CASES = [
    (1, 16, 64, 4, 16, 16, 64, True, True, True),
    (4, 6, 8, 16, 1, 1, 8, False, False, False),
    (2, 5, 7, 3, 2, 5, 7, True, True, True),
    (3, 4, 9, 2, 4, 3, 8, False, False, False),
    (1, 3, 1, 2, 2, 2, 1, True, False, True),
    (2, 7, 17, 5, 6, 4, 17, False, True, True),
    (1, 1, 33, 1, 8, 2, 33, True, False, False),
]


def gradients(case: tuple, dtype: torch.dtype, only: slice = slice(None)) -> list[Tensor]:
    """The outputs, and the gradients of rows and gains, of these members."""
    members, batch, length, heads, qk, v, keys, causal, turned, normed = case
    layer, random = (
        AttentionShape(heads=heads, qk_dim=qk, v_dim=v),
        torch.Generator().manual_seed(1),
    )
    rows = torch.randn(members, batch, length, heads * (2 * qk + v), generator=random)
    gains = 0.5 + torch.rand(2, members, heads, qk, generator=random)
    slope = torch.randn(members, batch, length, heads * v, generator=random)
    rows = rows[only].to(dtype).requires_grad_()
    gains = gains[:, only].to(dtype).requires_grad_()
    turns = rotation(length, qk, rows.device).to(dtype) if turned else None
    mixed = read_heads(
        rows, layer, keys=keys, causal=causal, turns=turns,
        gains=(gains[0], gains[1]) if normed else None,
    )  # fmt: skip
    assert (compiled_for(rows) is not None) == (dtype == torch.float32)
    wanted = [rows, gains] if normed else [rows]
    return [mixed.detach(), *torch.autograd.grad(mixed, wanted, slope[only].to(dtype))]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_outputs_and_gradients_are_those_of_float64(case: tuple) -> None:
    for found, exact in zip(
        gradients(case, torch.float32), gradients(case, torch.float64), strict=True
    ):
        assert (found - exact).abs().max() <= 2e-6 * exact.abs().max() + 1e-7


def test_a_member_is_computed_as_if_alone() -> None:
    case = CASES[2]
    together, alone = gradients(case, torch.float32), gradients(case, torch.float32, slice(1, 2))
    assert torch.equal(together[0][1:], alone[0])
    assert torch.equal(together[1][1:], alone[1])
    assert torch.equal(together[2][:, 1:], alone[2])


def test_a_number_that_is_none_stays_in_its_sequence() -> None:
    rows = torch.ones(1, 3, 4, 6)
    rows[0, 1, 2, 3] = torch.nan  # a key of the second head
    mixed = read_heads(rows, AttentionShape(heads=2, qk_dim=1, v_dim=1), keys=4, causal=True)
    spoiled = torch.zeros(1, 3, 4, 2, dtype=torch.bool)
    spoiled[0, 1, 2:, 1] = True
    assert torch.equal(mixed.isnan(), spoiled)


def test_large_scores_do_not_overflow() -> None:
    rows = torch.tensor([[[[80.0, 80.0, 1.0], [80.0, -80.0, 3.0]]]])
    mixed = read_heads(rows, AttentionShape(heads=1, qk_dim=1, v_dim=1), keys=2)
    assert mixed.flatten().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_whoever_asks_first_gets_the_compiled_code(mode: type) -> None:
    compiled.cache_clear()
    with mode():
        assert computed_by("cpu") == "attention compiled"


def test_without_the_compiled_code_torch_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert computed_by("cpu") == "attention compiled"
    before = gradients(CASES[0], torch.float32)
    compiled.cache_clear()
    with monkeypatch.context() as patched:
        patched.setitem(__import__("sys").modules, "headwise.core.compiled.heads", None)
        assert "does not work here" in computed_by("cpu")
        rows, layer = torch.ones(1, 1, 2, 3), AttentionShape(heads=1, qk_dim=1, v_dim=1)
        assert compiled_for(rows) is None
        assert torch.allclose(read_heads(rows, layer, keys=2), torch.ones(1, 1, 2, 1))
    compiled.cache_clear()
    assert torch.equal(gradients(CASES[0], torch.float32)[0], before[0])
