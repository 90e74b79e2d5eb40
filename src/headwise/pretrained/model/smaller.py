"""A copy of a model with its attention cut to a plan."""

import copy
from typing import Any

from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.model.apply import replace_attention
from headwise.pretrained.model.cut import cut_layer
from headwise.pretrained.model.mode import rounded
from headwise.pretrained.model.saving import record_layouts
from headwise.pretrained.model.stock import stock_model
from headwise.pretrained.plan.make import reductions_of
from headwise.pretrained.plan.plan_file import CompressionPlan, check_plan
from headwise.pretrained.plan.uniform import opens_in_stock


def smaller_model(model: Any, measurement: Measurement, plan: CompressionPlan) -> Any:
    """The plan applied; as an ordinary model of its class where that can express it."""
    return (stock_model if opens_in_stock(plan) else apply_plan)(model, measurement, plan)


def apply_plan(model: Any, measurement: Measurement, plan: CompressionPlan) -> Any:
    """A copy of the model with its attention cut to the plan."""
    check_plan(plan, measurement.identity, measurement.sites)
    smaller = copy.deepcopy(model)
    layouts = []
    reductions = reductions_of(measurement, plan.method)
    for site, layer, shape in zip(measurement.sites, reductions, plan.layers, strict=True):
        cut = cut_layer(site, layer, shape)
        replace_attention(smaller, site, cut)
        layouts.append(cut.layout)
    record_layouts(smaller, layouts)
    return rounded(smaller)
