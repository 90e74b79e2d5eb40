"""A plan of `headwise plan`, applied to models that exist: every layer gets its shape."""

from pathlib import Path

import pytest
from small_models import small_material, small_model

from headwise.allocation.plan_file import AllocationPlan, read_allocation, write_allocation
from headwise.allocation.schedules import schedule
from headwise.core.errors import InputError
from headwise.nets.shape import AttentionShape
from headwise.pretrained import compress, measure_model, read_plan


def plan_of(*layers: tuple[int, int, int], width: int = 32) -> AllocationPlan:
    shapes = tuple(AttentionShape(heads=h, qk_dim=q, v_dim=v) for h, q, v in layers)
    return AllocationPlan(
        width=width, length=64, layers=shapes, budget=10**6, schedule="by hand", reasons=("a test",)
    )


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "vit"])
def test_every_layer_gets_the_plans_shape(name: str, tmp_path: Path) -> None:
    model = small_model(name)
    material = small_material(model)
    measurement = measure_model(model, material)
    group = measurement.sites[0].group_size
    wanted = plan_of((2 * group, 4, 8), (group, 8, 4))
    write_allocation(wanted, tmp_path / "plan.json")
    read = read_plan(tmp_path / "plan.json")
    assert read == wanted
    result = compress(model, text=material, plan=read, measurement=measurement, time_it=False)
    for shape, layer in zip(result.plan.layers, wanted.layers, strict=True):
        kept = [each for each in shape.groups if each.heads]
        assert sum(len(each.heads) for each in kept) == layer.heads
        assert {(each.qk_dim, each.v_dim) for each in kept} == {(layer.qk_dim, layer.v_dim)}
    removal = measurement.curves[1].values
    worth = {index: float(curve[0]) for index, curve in enumerate(removal)}
    kept_groups = [i for i, each in enumerate(result.plan.layers[1].groups) if each.heads]
    assert kept_groups == [max(worth, key=lambda index: worth[index])]
    assert result.evaluation.attention_parameters.ratio < 0.6


@pytest.mark.parametrize(
    ("name", "layers", "sentence"),
    [
        ("bert", [(4, 8, 8)], "the plan has 1 layers, the model 2"),
        ("bert", [(4, 8, 8), (5, 8, 8)], "layer 1 of the plan has heads 5, the model 4"),
        ("bert", [(4, 16, 8), (4, 8, 8)], "has qk_dim 16, the model 8"),
        ("llama", [(9, 8, 8), (4, 8, 8)], "share keys in groups of 3"),
        ("llama", [(9, 8, 8), (9, 5, 8)], "RoPE turns coordinates in pairs"),
    ],
)
def test_what_compression_cannot_do_gets_a_sentence(
    name: str, layers: list[tuple[int, int, int]], sentence: str
) -> None:
    model = small_model(name)
    material = small_material(model)
    with pytest.raises(InputError, match=sentence):
        compress(model, text=material, plan=plan_of(*layers), time_it=False)


def test_plan_files_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    layers = schedule("rising", layers=6, width=64, budget=90_000)
    plan = AllocationPlan(
        width=64, length=128, layers=layers, budget=90_000, schedule="rising", reasons=()
    )
    write_allocation(plan, path)
    assert read_allocation(path) == plan
    path.write_text(path.read_text().replace('"budget": 90000', '"budget": 900'))
    with pytest.raises(InputError, match="more than its budget of 900"):
        read_allocation(path)
    for text, sentence in (("{", "not JSON"), ("{}", "not a plan made by"), ("[1]", "not a plan")):
        path.write_text(text)
        with pytest.raises(InputError, match=sentence):
            read_allocation(path)
    with pytest.raises(InputError, match="cannot read"):
        read_allocation(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot write"):
        write_allocation(plan, tmp_path / "none" / "plan.json")
