"""Products with an identity in them: the same maps, with fewer numbers."""

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_models import small_material, small_model

import headwise
from headwise.pretrained import Budget, apply_plan, compress, make_plan, measure_model
from headwise.pretrained._evaluate import attention_parameters
from headwise.pretrained.adapters import LinearPart
from headwise.pretrained.model.pivots import Pivoted, PivotedHeads, pivoted, pivoted_heads
from headwise.pretrained.plan.allocate import total
from headwise.pretrained.plan.counts import parameters


def random(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(sum(sizes))).double()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("deficient", [True, False])
def test_a_product_is_the_same_with_an_identity_in_it(bias: bool, deficient: bool) -> None:
    thin, wide = random(5, 12), random(17, 5)
    if deficient:
        wide[:, 3:] = wide[:, :1]
    shift = random(17) if bias else None
    parts, order = pivoted(LinearPart(thin, None), LinearPart(wide, shift))
    module = Pivoted(12, 17, 5, bias).double()
    state = {f"{index}.weight": part.weight for index, part in enumerate(parts)}
    state |= {f"{index}.bias": part.bias for index, part in enumerate(parts) if bias}
    assert order is not None
    module.load_state_dict(state | {"order": order})
    for tokens in (3, 9):  # fewer than the rank, and more
        x = random(tokens, 12)
        torch.testing.assert_close(module(x), torch.nn.functional.linear(x, wide @ thin, shift))
    assert sum(p.numel() for p in module.parameters()) == 5 * (12 + 17 - 5) + 17 * bias


def test_a_product_of_as_many_rows_as_its_rank_is_one_matrix() -> None:
    thin, wide = random(5, 12), random(4, 5)
    (whole,), order = pivoted(LinearPart(thin, None), LinearPart(wide, None))
    assert order is None
    torch.testing.assert_close(whole.weight, wide @ thin)


def test_each_head_holds_an_identity_whatever_it_reads() -> None:
    """A usual head, one that reads two inputs alone, a dead one, one as wide as the input."""
    sizes, inputs = [4, 3, 2, 9], 9
    weight = random(sum(sizes), inputs)
    weight[4:7] = 0
    weight[4, 8], weight[5, 2] = 1e-3, 1.0
    weight[7:9] = 0
    packed, pivots, turns = pivoted_heads(weight, sizes)
    module = PivotedHeads(inputs, sizes).double()
    module.load_state_dict({"weight": packed, "pivots": pivots})
    x = random(5, inputs)
    for given, turn, rows in zip(
        module(x).split(sizes, -1), turns, weight.split(sizes), strict=True
    ):
        torch.testing.assert_close(given @ turn.T, x @ rows.T)
    assert packed.numel() == sum(size * (inputs - size) for size in sizes[:3]) + 81
    assert packed[:-81].abs().max() < 4


def test_a_written_matrix_follows_its_weights() -> None:
    """It stays between calls without gradients, and whatever changes the weights changes it."""
    module, x = PivotedHeads(6, [2, 3]), random(4, 6).float()
    with torch.no_grad():
        module.weight.normal_()
        module.pivots.copy_(torch.tensor([1, 4, 0, 2, 5]))
        first = module(x)
        kept = module._matrix()
        assert module._matrix() is kept
        assert kept[:, 3].ne(0).all()
        assert kept[0, [1, 4]].tolist() == [1, 0]
    module(x).square().sum().backward()
    assert module.weight.grad is not None
    assert module.weight.grad.ne(0).all()
    other = copy.deepcopy(module)
    with torch.no_grad():
        assert torch.equal(other(x), first)
        module.weight.mul_(2)
        twice = module(x)
        module.weight.data = module.weight.data * 2
        assert not torch.allclose(twice, first)
        assert not torch.allclose(module(x), twice)
        assert module.double()(x.double()).dtype == torch.float64
        module.load_state_dict(other.state_dict())
        torch.testing.assert_close(module(x.double()).float(), first)
    with torch.inference_mode():
        module(x.double())
    assert module(x.double().requires_grad_()).requires_grad


@pytest.mark.parametrize("name", ["llama-biased", "olmo2", "bert", "modernbert", "t5"])
def test_a_model_is_the_same_with_fewer_parameters(name: str, tmp_path: Path) -> None:
    model = small_model(name)
    material = small_material(model)
    measurement = measure_model(model, material)
    plan = make_plan(measurement, Budget(0.6))
    assert any(shape.pivoted or shape.pivoted_heads for shape in plan.layers)
    plain = tuple(replace(shape, pivoted=False, pivoted_heads=False) for shape in plan.layers)
    result = compress(model, text=material, plan=plan, measurement=measurement, time_it=False)
    smaller, usual = result.model, apply_plan(model, measurement, replace(plan, layers=plain))
    again = headwise.from_pretrained(result.save(tmp_path / "small"))
    with torch.no_grad():
        for batch in material.held_out:
            found, expected = smaller(**batch)[0], usual(**batch)[0]
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
            assert torch.equal(again(**batch)[0], found)
    sites, whole = measurement.sites, total(measurement, "parameters")
    norms = attention_parameters(model, sites) - whole  # and tables of biases, which stay
    kept = attention_parameters(smaller, sites) - norms
    assert kept < 0.97 * (attention_parameters(usual, sites) - norms)
    parts = zip(sites, plan.layers, measurement.reductions, strict=True)
    assert kept == sum(parameters(site, shape, layer.weights) for site, shape, layer in parts)
    assert 0.57 < kept / whole <= 0.6


def test_one_token_after_other_weights_were_loaded() -> None:
    model = small_model("llama-biased")
    other = copy.deepcopy(model)
    with torch.no_grad():
        for weight in other.parameters():
            weight.copy_(weight.flip(0))
    material = small_material(model)
    measured = [measure_model(each, material) for each in (model, other)]
    plans = [make_plan(each, Budget(0.6)) for each in measured]
    used, wanted = (
        apply_plan(each, known, replace(plan, layers=plans[0].layers)).eval()
        for each, known, plan in zip((model, other), measured, plans, strict=True)
    )
    orders = [
        [m.order for m in each.modules() if isinstance(m, Pivoted)] for each in (used, wanted)
    ]
    assert any(not torch.equal(a, b) for a, b in zip(*orders, strict=True))
    ids = material.held_out[0]["input_ids"][:1]

    def last_token(reader: torch.nn.Module) -> torch.Tensor:
        before = reader(input_ids=ids[:, :-1], use_cache=True).past_key_values
        return reader(input_ids=ids[:, -1:], past_key_values=before).logits

    with torch.no_grad():
        last_token(used)
        used.load_state_dict(wanted.state_dict())
        assert torch.equal(last_token(used), last_token(wanted))
