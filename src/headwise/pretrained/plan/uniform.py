"""Plans in which all layers have one shape, and checkpoints that stock transformers can open.

Which shapes a stock configuration can express: Llama-like ones a number of heads (their head size
fixes RoPE's frequencies, which a reduced head no longer has); ViT a number of heads and one size
for queries, keys and values; BERT, DistilBERT and GPT-2 none, because their head size is hidden
size / heads.
"""

import copy
from typing import Any

import torch
from torch import nn

from headwise.core.errors import require
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.measurement import LayerCurves, Measurement
from headwise.pretrained.model.apply import cut_layer
from headwise.pretrained.plan.allocate import Budget, total
from headwise.pretrained.plan.baselines import resized, without
from headwise.pretrained.plan.counts import shape_cost
from headwise.pretrained.plan.plan_file import CompressionPlan
from headwise.pretrained.plan.shapes import LayerShape, full_shape

_LLAMA_LIKE = ("llama", "mistral", "qwen2")


def stock_reason(model_type: str) -> str | None:
    """Why stock transformers cannot open a uniform result of this family; None if it can."""
    if model_type in _LLAMA_LIKE or model_type == "vit":
        return None
    return (
        f"the {model_type} configuration has no head size of its own (it is hidden size / heads), "
        "so stock transformers cannot open the result; headwise.from_pretrained does"
    )


def uniform_plan(measurement: Measurement, budget: Budget) -> CompressionPlan:
    """The one shape for all layers with the least predicted damage within the budget.

    The output bias that replaces the mean of what is cut off is not counted: half of the heads
    is half of the budget.
    """
    limit = budget.fraction * total(measurement, budget.counts)
    best: tuple[float, tuple[LayerShape, ...]] | None = None
    for heads, qk_dim, v_dim in _candidates(measurement):
        shapes, damage = [], 0.0
        for site, curves in zip(measurement.sites, measurement.curves, strict=True):
            shape, loss = cut_to(site, curves, heads, qk_dim, v_dim)
            shapes.append(shape)
            damage += loss
        parts = zip(measurement.sites, shapes, measurement.reductions, strict=True)
        cost = sum(
            shape_cost(s, shape, r.weights, budget.counts, means=False) for s, shape, r in parts
        )
        if cost <= limit and (best is None or damage < best[0]):
            best = (damage, tuple(shapes))
    require(best is not None, f"no uniform shape keeps {budget.fraction:.1%} or less")
    assert best is not None
    return CompressionPlan(
        model=measurement.identity,
        method="fisher",
        layers=best[1],
        budget={"counts": budget.counts, "fraction": budget.fraction, "uniform": True},
        predicted_damage=best[0],
        seed=measurement.seed,
    )


def _candidates(measurement: Measurement) -> list[tuple[int, int, int]]:
    site = measurement.sites[0]
    family = measurement.identity["model_type"]
    counts = range(1, site.kv_heads + 1)
    dims = range(1, site.head_dim + 1)
    if family in _LLAMA_LIKE:
        return [(count, site.head_dim, site.head_dim) for count in counts]
    if family == "vit":
        return [(count, dim, dim) for count in counts for dim in dims]
    return [(site.kv_heads, q, v) for q in dims for v in dims]


def cut_to(
    site: AttentionSite, curves: LayerCurves, heads: int, qk_dim: int, v_dim: int
) -> tuple[LayerShape, float]:
    """The layer with its `heads` most valuable key groups at these sizes, and the damage."""
    removal = [float(curve[0]) for curve in curves.values]
    order = sorted(range(site.kv_heads), key=lambda group: -removal[group])
    shape = resized(full_shape(site), qk_dim, v_dim)
    gone = [head for group in order[heads:] for head in shape.groups[group].heads]
    damage = sum(removal[group] for group in order[heads:])
    for group in order[:heads]:
        damage += float(curves.queries[group][qk_dim] + curves.values[group][v_dim])
    return without(shape, tuple(gone)), damage


def stock_model(model: Any, measurement: Measurement, plan: CompressionPlan) -> Any:
    """The uniform plan's result as an ordinary model of the same class."""
    family = measurement.identity["model_type"]
    require(stock_reason(family) is None, str(stock_reason(family)))
    first = plan.layers[0]
    kept = [group for group in first.groups if group.heads]
    config = copy.deepcopy(model.config)
    config.num_attention_heads = sum(len(group.heads) for group in kept)
    config.head_dim = kept[0].qk_dim
    if family != "vit":
        config.num_key_value_heads = len(kept)
    if family == "llama":
        config.attention_bias = True
    smaller = type(model)(config)
    state = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if not any(name.startswith(site.path + ".") for site in measurement.sites)
    }
    fill = {"vit": _vit_state, "llama": _llama_state}.get(family, _whole_heads_state)
    for index, site in enumerate(measurement.sites):
        state |= fill(model, measurement, index, site, plan.layers[index])
    smaller.load_state_dict(state)
    return smaller.to(next(model.parameters()).dtype).eval()


def _llama_state(
    model: nn.Module, measurement: Measurement, index: int, site: AttentionSite, shape: LayerShape
) -> dict[str, torch.Tensor]:
    """The mean of what is cut off needs an output bias; with it come three more, which are zero."""
    state = dict(cut_layer(site, measurement.reductions[index], shape).state)
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        state.setdefault(f"{name}.bias", torch.zeros(state[f"{name}.weight"].shape[0]))
    return {f"{site.path}.{name}": tensor for name, tensor in state.items()}


def _whole_heads_state(
    model: nn.Module, measurement: Measurement, index: int, site: AttentionSite, shape: LayerShape
) -> dict[str, torch.Tensor]:
    """Only whole heads go, so the original's rows and columns are copied.

    The configurations of Mistral and Qwen2 know no output bias, so the mean of what is cut off is
    lost.
    """
    dim = site.head_dim

    def rows(heads: list[int]) -> torch.Tensor:
        return torch.cat([torch.arange(head * dim, (head + 1) * dim) for head in heads])

    queries = rows([head for group in shape.groups for head in group.heads])
    keys = rows([group for group, kept in enumerate(shape.groups) if kept.heads])
    state = {}
    for name, tensor in model.get_submodule(site.path).state_dict().items():
        if name == "o_proj.weight":
            chosen = tensor[:, queries]
        elif name.startswith("o_proj"):
            chosen = tensor
        else:
            chosen = tensor[queries if name.startswith("q_proj") else keys]
        state[f"{site.path}.{name}"] = chosen.clone()
    return state


def _vit_state(
    model: nn.Module, measurement: Measurement, index: int, site: AttentionSite, shape: LayerShape
) -> dict[str, torch.Tensor]:
    """Cut as usual; the stock module divides scores by the root of its own head size."""
    state = dict(cut_layer(site, measurement.reductions[index], shape).state)
    dim = next(group.qk_dim for group in shape.groups if group.heads)
    scale = (dim / site.head_dim) ** 0.5
    for part in ("weight", "bias"):
        if f"q_proj.{part}" in state:
            state[f"q_proj.{part}"] = state[f"q_proj.{part}"] * scale
    if "q_proj.bias" in state:
        for name in ("k_proj", "v_proj"):
            state[f"{name}.bias"] = torch.zeros(state[f"{name}.weight"].shape[0])
    return {f"{site.path}.{name}": tensor for name, tensor in state.items()}
