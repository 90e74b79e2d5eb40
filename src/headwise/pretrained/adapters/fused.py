"""One module puts out queries, keys and values: Phi-3, GPT-NeoX (Pythia), ModernBERT."""

from typing import Any

from torch import nn

from headwise.pretrained.adapters.base import AttentionSite, Projection, modules_named


def phi3_sites(model: nn.Module) -> list[AttentionSite]:
    """Phi-3: all queries, then all keys, then all values; RoPE on a part of each head or all."""
    config: Any = model.config
    share = config.rope_parameters.get("partial_rotary_factor", 1.0)
    sites = []
    for index, (path, module) in enumerate(modules_named(model, "Phi3Attention")):
        dim = module.head_dim
        keys = config.num_attention_heads * dim
        values = keys + config.num_key_value_heads * dim
        site = _site(
            config,
            module,
            projections=_side_by_side(f"{path}.qkv_proj", keys, values),
            path=path,
            output=f"{path}.o_proj",
            kv_heads=config.num_key_value_heads,
            causal=True,
            layer_index=index,
            rotary_dim=int(dim * share),
            sliding_window=config.sliding_window,
        )
        sites.append(site)
    return sites


def gpt_neox_sites(model: nn.Module) -> list[AttentionSite]:
    """GPT-NeoX: head by head its query, key and value; RoPE on a part of each head."""
    sites = []
    for index, (path, module) in enumerate(modules_named(model, "GPTNeoXAttention")):
        dim, fused = module.head_size, f"{path}.query_key_value"
        bounds = [(part * dim, (part + 1) * dim) for part in range(3)]
        parts = [Projection(fused, *bound, period=3 * dim) for bound in bounds]
        rest = {"causal": True, "layer_index": index, "rotary_dim": module.rotary_ndims}
        out = f"{path}.dense"
        sites.append(_site(model.config, module, parts, path=path, output=out, **rest))
    return sites


def modernbert_sites(model: nn.Module) -> list[AttentionSite]:
    """ModernBERT: an encoder with RoPE, most of its layers within a window."""
    config: Any = model.config
    width = config.hidden_size
    return [
        _site(
            config,
            module,
            _side_by_side(f"{path}.Wqkv", width, 2 * width),
            path=path,
            output=f"{path}.Wo",
            causal=False,
            layer_index=index,
            output_dropout=config.attention_dropout,
            sliding_window=module.sliding_window,
        )
        for index, (path, module) in enumerate(modules_named(model, "ModernBertAttention"))
    ]


def _side_by_side(fused: str, keys: int, values: int) -> list[Projection]:
    """All queries, then from column `keys` all keys, then from column `values` all values."""
    return [Projection(fused, 0, keys), Projection(fused, keys, values), Projection(fused, values)]


def _site(config: Any, module: Any, projections: list[Projection], **rest: Any) -> AttentionSite:
    """What the configuration and the module say in all of these families."""
    dim = module.head_size if hasattr(module, "head_size") else module.head_dim
    known = {
        **dict(zip(("query", "key", "value"), projections, strict=True)),
        "heads": config.num_attention_heads,
        "kv_heads": config.num_attention_heads,
        "head_dim": dim,
        "hidden": config.hidden_size,
        "scaling": getattr(module, "scaling", dim**-0.5),
        "attention_dropout": module.attention_dropout,
        "rotary": True,
    }
    return AttentionSite(**(known | rest))
