"""A uniform plan's result as an ordinary model, which stock transformers opens."""

import copy
from typing import Any

import torch
from torch import nn

from headwise.core.errors import require
from headwise.pretrained.adapters import FAMILIES, AttentionSite
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.model.cut import cut_layer
from headwise.pretrained.model.mode import as_exact
from headwise.pretrained.plan.plan_file import CompressionPlan
from headwise.pretrained.plan.shapes import LayerShape
from headwise.pretrained.plan.uniform import stock_reason


def stock_model(model: Any, measurement: Measurement, plan: CompressionPlan) -> Any:
    """The uniform plan's result as an ordinary model of the same class."""
    family = measurement.identity["model_type"]
    require(stock_reason(family) is None, str(stock_reason(family)))
    first = plan.layers[0]
    kept = [group for group in first.groups if group.heads]
    config = copy.deepcopy(model.config)
    config.num_attention_heads = sum(len(group.heads) for group in kept)
    config.head_dim = kept[0].qk_dim
    kind = FAMILIES[family].uniform
    if kind != "sizes":
        config.num_key_value_heads = len(kept)
    if kind == "biased heads":
        config.attention_bias = True
    smaller = type(model)(config)
    state = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if not any(name.startswith(site.path + ".") for site in measurement.sites)
    }
    ways = {"heads": _whole_heads_state, "biased heads": _biased_state, "sizes": _sized_state}
    fill = ways[str(kind)]
    for index, site in enumerate(measurement.sites):
        state |= fill(model, measurement, index, site, plan.layers[index])
    smaller.load_state_dict(state)
    if smaller.can_generate():  # where its texts end and how they are drawn
        smaller.generation_config = copy.deepcopy(model.generation_config)
    return as_exact(smaller.to(next(model.parameters()).device), model).eval()


def _biased_state(
    model: nn.Module, measurement: Measurement, index: int, site: AttentionSite, shape: LayerShape
) -> dict[str, torch.Tensor]:
    """The mean of what is cut off needs an output bias; with it come three more, which are zero."""
    state = dict(cut_layer(site, measurement.reductions[index], shape).state)
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        state.setdefault(f"{name}.bias", torch.zeros(state[f"{name}.weight"].shape[0]))
    attention = model.get_submodule(site.path).state_dict()
    state |= {name: tensor for name, tensor in attention.items() if "norm" in name}
    return {f"{site.path}.{name}": tensor for name, tensor in state.items()}


def _whole_heads_state(
    model: nn.Module, measurement: Measurement, index: int, site: AttentionSite, shape: LayerShape
) -> dict[str, torch.Tensor]:
    """Only whole heads go, so the original's rows and columns are copied.

    The configurations of Mistral, Mixtral and Qwen2 know no output bias, so the mean of what is
    cut off is lost.
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


def _sized_state(
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
