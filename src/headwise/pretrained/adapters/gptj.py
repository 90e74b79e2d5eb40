"""GPT-J and CodeGen: RoPE on a part of each head, neighbours in pairs, by angles of their own."""

from typing import Any

from torch import nn

from headwise.core.errors import require
from headwise.pretrained.adapters.base import AttentionSite, Projection, modules_named

_BLOCKS = 4  # CodeGen's matrix is of so many blocks, each with the queries, values and keys of some


def gptj_sites(model: nn.Module) -> list[AttentionSite]:
    """The attention of every decoder layer."""
    return [
        _site(path, module, [Projection(f"{path}.{part}_proj") for part in "qkv"])
        for path, module in modules_named(model, "GPTJAttention")
    ]


def codegen_sites(model: nn.Module) -> list[AttentionSite]:
    """The attention of every decoder layer; its projections are columns of one module."""
    sites = []
    for path, module in modules_named(model, "CodeGenAttention"):
        width, fused = module.embed_dim // _BLOCKS, f"{path}.qkv_proj"
        query, value, key = (
            Projection(fused, start * width, (start + 1) * width, period=3 * width)
            for start in range(3)
        )
        sites.append(_site(path, module, [query, key, value]))
    return sites


def _site(path: str, module: Any, projections: list[Projection]) -> AttentionSite:
    require(
        module.rotary_dim is not None,
        f"{type(module).__name__} without rotary_dim in its configuration is not supported",
    )
    query, key, value = projections
    return AttentionSite(
        path=path,
        query=query,
        key=key,
        value=value,
        output=f"{path}.out_proj",
        heads=module.num_attention_heads,
        kv_heads=module.num_attention_heads,
        head_dim=module.head_dim,
        hidden=module.embed_dim,
        scaling=1 / module.scale_attn,
        rotary=True,
        rotary_dim=module.rotary_dim,
        neighbours=True,
        causal=True,
        layer_index=module.layer_idx,
        attention_dropout=module.attn_dropout.p,
        output_dropout=module.resid_dropout.p,
    )
