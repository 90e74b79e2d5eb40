"""Answers that must not be given: broken weights before the work, and failed results after it."""

from inspect import signature
from typing import Any

import torch

from headwise.core.errors import InputError, require
from headwise.pretrained._evaluate import Evaluation
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.plan.allocate import total
from headwise.pretrained.plan.counts import shape_cost
from headwise.pretrained.plan.plan_file import CompressionPlan

_NEAR, _NEAR_IN_WHOLE_HEADS = 0.8, 0.4  # of the share asked for: what is not far from it


def check_model(model: Any) -> None:
    """Refuse a model whose configuration contradicts it, or with a weight that is no number."""
    paired = getattr(model.config, "is_encoder_decoder", False)
    writes = hasattr(model, "can_generate") and model.can_generate()
    require(
        not (paired and writes) or "decoder_input_ids" in signature(model.forward).parameters,
        f"config.json says is_encoder_decoder = {paired!r}, and {type(model).__name__} has no "
        "encoder: it could not write a word",
    )
    for name, parameter in model.named_parameters():
        require(
            bool(torch.isfinite(parameter.detach().sum())) or bool(parameter.isfinite().all()),
            f"the model's weight {name} has numbers that are not finite: the checkpoint is broken",
        )


def check_share(plan: CompressionPlan, measurement: Measurement) -> None:
    """Refuse a plan that keeps much less than was asked for, or more: it answers no question."""
    if plan.budget is None or "fraction" not in plan.budget:
        return
    asked, counts = float(plan.budget["fraction"]), str(plan.budget["counts"])
    parts = zip(measurement.sites, plan.layers, measurement.reductions, strict=True)
    cost = sum(shape_cost(site, shape, layer.weights, counts) for site, shape, layer in parts)
    kept = cost / total(measurement, counts)
    coarse = plan.method != "fisher" or plan.budget.get("uniform") or plan.budget.get("fast")
    least = asked * (_NEAR_IN_WHOLE_HEADS if coarse else _NEAR)
    require(
        least <= kept <= asked * 1.02 + 0.005,
        f"{asked:.1%} of the attention's {counts} were asked for and the plan keeps {kept:.1%}: "
        "the measurement found no use in what it dropped, or the model is too small for such a "
        "share; nothing is written",
    )


def ruins(evaluation: Evaluation) -> list[str]:
    """A warning for each text on which little is left of the model."""
    return [
        f"the compressed model is ruined on {verdict.text}: its damage is {verdict.damage:.4g}, "
        f"and one answer for all inputs, whatever they are, would lose {verdict.one_for_all:.4g}"
        for verdict in evaluation.verdicts
        if verdict.ruined
    ]


def check_finite(evaluation: Evaluation) -> None:
    """Refuse a compressed model whose outputs are not numbers."""
    for verdict in evaluation.verdicts:
        if not torch.isfinite(torch.tensor(verdict.damage)):
            raise InputError(
                f"the compressed model's outputs on {verdict.text} are not finite numbers; "
                "nothing is written. Keep more, or give more calibration text"
            )
