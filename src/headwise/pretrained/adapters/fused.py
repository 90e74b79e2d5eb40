"""One module puts out queries, keys and values: Phi-3, GPT-NeoX (Pythia), ModernBERT."""

from typing import Any

from torch import nn

from headwise.pretrained.adapters.base import AttentionSite, Projection, modules_named


def phi3_sites(model: nn.Module) -> list[AttentionSite]:
    """Phi-3: all queries, then all keys, then all values."""
    config: Any = model.config
    sites = []
    for index, (path, module) in enumerate(modules_named(model, "Phi3Attention")):
        dim, fused = module.head_dim, f"{path}.qkv_proj"
        keys = config.num_attention_heads * dim
        values = keys + config.num_key_value_heads * dim
        turned = int(dim * config.rope_parameters.get("partial_rotary_factor", 1.0))
        sites.append(
            AttentionSite(
                path=path,
                query=Projection(fused, 0, keys),
                key=Projection(fused, keys, values),
                value=Projection(fused, values),
                output=f"{path}.o_proj",
                heads=config.num_attention_heads,
                kv_heads=config.num_key_value_heads,
                head_dim=dim,
                hidden=config.hidden_size,
                scaling=module.scaling,
                rotary=True,
                rotary_dim=turned,
                causal=True,
                layer_index=index,
                attention_dropout=module.attention_dropout,
                sliding_window=config.sliding_window,
            )
        )
    return sites


def gpt_neox_sites(model: nn.Module) -> list[AttentionSite]:
    """GPT-NeoX: head by head its query, key and value; RoPE on a part of each head."""
    config: Any = model.config
    sites = []
    for index, (path, module) in enumerate(modules_named(model, "GPTNeoXAttention")):
        dim, fused = module.head_size, f"{path}.query_key_value"
        query, key, value = (
            Projection(fused, part * dim, (part + 1) * dim, period=3 * dim) for part in range(3)
        )
        sites.append(
            AttentionSite(
                path=path,
                query=query,
                key=key,
                value=value,
                output=f"{path}.dense",
                heads=config.num_attention_heads,
                kv_heads=config.num_attention_heads,
                head_dim=dim,
                hidden=config.hidden_size,
                scaling=module.scaling,
                rotary=True,
                rotary_dim=module.rotary_ndims,
                causal=True,
                layer_index=index,
                attention_dropout=module.attention_dropout,
            )
        )
    return sites


def modernbert_sites(model: nn.Module) -> list[AttentionSite]:
    """ModernBERT: an encoder with RoPE, most of its layers within a window."""
    config: Any = model.config
    width = config.hidden_size
    return [
        AttentionSite(
            path=path,
            query=Projection(f"{path}.Wqkv", 0, width),
            key=Projection(f"{path}.Wqkv", width, 2 * width),
            value=Projection(f"{path}.Wqkv", 2 * width),
            output=f"{path}.Wo",
            heads=config.num_attention_heads,
            kv_heads=config.num_attention_heads,
            head_dim=module.head_dim,
            hidden=width,
            scaling=module.head_dim**-0.5,
            rotary=True,
            causal=False,
            layer_index=index,
            attention_dropout=module.attention_dropout,
            output_dropout=config.attention_dropout,
            sliding_window=module.sliding_window,
        )
        for index, (path, module) in enumerate(modules_named(model, "ModernBertAttention"))
    ]
