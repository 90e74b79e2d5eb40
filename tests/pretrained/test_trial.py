"""Cuts are tried one by one, and the curves then say what the whole model lost."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from small_models import measured, small_material, small_model

from headwise.pretrained import Budget, apply_plan, compress, make_plan
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.plan.plan_file import CompressionPlan
from headwise.pretrained.plan.shapes import full_shape
from headwise.pretrained.text.calibration import few_tokens
from headwise.pretrained.trial import least_damaging, tried


@torch.no_grad()
def own_damage(model: Any, changed: Any, measurement: Measurement, batches: list[Any]) -> float:
    compared = [
        measurement.objective.compare(model(**batch), changed(**batch), batch) for batch in batches
    ]
    return float(sum(c.damage.sum() for c in compared) / sum(c.units.sum() for c in compared))


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_a_tried_layers_curve_is_the_damage_of_cutting_it_alone(family: str) -> None:
    model, material, measurement = measured(family)
    whole = [full_shape(site) for site in measurement.sites]
    values = tuple(replace(group, v_dim=group.v_dim // 2) for group in whole[1].groups)
    layers = (whole[0], replace(whole[1], groups=values), *whole[2:])
    plan = CompressionPlan(model=measurement.identity, method="fisher", layers=layers)
    known = tried(model, measurement, plan, material.calibration)
    said = sum(curve[g.v_dim] for curve, g in zip(known.curves[1].values, values, strict=True))
    smaller = apply_plan(model, measurement, plan).eval()
    batches = few_tokens(material.calibration, 2048, 256)
    assert said == pytest.approx(own_damage(model, smaller, measurement, batches), rel=0.02)
    before, after = measurement.curves[0], known.curves[0]
    assert all((a == b).all() for a, b in zip(before.values, after.values, strict=True))


def test_compress_plans_with_what_was_tried_at_one_size() -> None:
    model, material, measurement = measured("llama")
    standard = make_plan(measurement, Budget(0.75))
    known = tried(model, measurement, standard, material.calibration)
    result = compress(model, text=material, measurement=measurement, keep=0.5, time_it=False)
    assert result.plan.layers == make_plan(known, Budget(0.5)).layers


def test_trying_leaves_the_model_as_it_was() -> None:
    model, material, measurement = measured("t5")
    kinds = [type(module) for module in model.modules()]
    plan = make_plan(measurement, Budget(0.5))
    tried(model, measurement, plan, material.calibration)
    assert kinds == [type(module) for module in model.modules()]


def test_nothing_to_cut_is_nothing_to_try() -> None:
    model, material, measurement = measured("llama")
    plan = make_plan(measurement, Budget(1.0))
    assert tried(model, measurement, plan, material.calibration) is measurement


def test_the_plan_that_does_less_on_calibration_text_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Were the corrected curves misleading, the plan made before them would stand."""
    model, material, measurement = measured("llama")
    first = make_plan(measurement, Budget(0.5))
    misled = [replace(c, values=[1e-3 / (1e-9 + v) for v in c.values]) for c in measurement.curves]
    wrong = replace(measurement, curves=misled)
    monkeypatch.setattr("headwise.pretrained.trial.tried", lambda *arguments, **options: wrong)
    result = compress(model, text=material, measurement=measurement, keep=0.5, time_it=False)
    assert result.plan.layers == first.layers


def test_a_search_plans_as_the_size_that_it_finds() -> None:
    model, material, measurement = measured("llama")
    options: dict[str, Any] = {"text": material, "measurement": measurement, "time_it": False}
    found = compress(model, max_loss=0.5, **options).plan
    assert found.budget is not None
    assert compress(model, keep=float(found.budget["fraction"]), **options).plan == found


def test_keeping_everything_tries_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, material, measurement = measured("llama")
    monkeypatch.delattr("headwise.pretrained.trial.tried")
    compress(model, text=material, measurement=measurement, keep=1.0, time_it=False)


def test_plans_that_a_few_inputs_cannot_tell_apart_stay_in_their_order() -> None:
    model, material, measurement = measured("bert")
    plans = [make_plan(measurement, Budget(share)) for share in (0.6, 0.605)]
    assert plans[0].layers != plans[1].layers
    for pair in (plans, plans[::-1]):
        assert least_damaging(model, measurement, pair, material.calibration) is pair[0]
    half = make_plan(measurement, Budget(0.3))
    assert least_damaging(model, measurement, [half, plans[0]], material.calibration) is plans[0]


def test_the_smallest_model_of_one_that_cannot_become_small() -> None:
    """One head a layer: the least share is above those that a search begins with."""
    model = small_model("llama", num_attention_heads=1, num_key_value_heads=1, head_dim=2)
    material = small_material(model)
    for options in ({}, {"uniform": True}, {"fast": True}):
        result = compress(model, text=material, max_loss=1e3, time_it=False, **options)
        assert result.passed
        assert 0 < result.evaluation.attention_parameters.ratio <= 1.2  # a bias may be new
