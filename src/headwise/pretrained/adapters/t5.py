"""A bias on the scores that depends on the distance: T5 and MPNet."""

from typing import Any

from torch import nn

from headwise.pretrained.adapters.base import AttentionSite, Projection, modules_named


def t5_sites(model: nn.Module) -> list[AttentionSite]:
    """Encoder, decoder and cross-attention; the first layer of a stack makes its biases."""
    return [
        _site(
            path,
            module,
            heads=module.n_heads,
            head_dim=module.key_value_proj_dim,
            hidden=module.d_model,
            scaling=module.scaling,
            causal=bool(module.is_causal),
            layer_index=index if module.layer_idx is None else module.layer_idx,
            attention_dropout=module.dropout,
            cross=path.endswith("EncDecAttention"),
        )
        for index, (path, module) in enumerate(modules_named(model, "T5Attention"))
    ]


def mpnet_sites(model: nn.Module) -> list[AttentionSite]:
    """The self-attention of every encoder layer; the encoder hands them their biases."""
    return [
        _site(
            path,
            module,
            heads=module.num_attention_heads,
            head_dim=module.attention_head_size,
            hidden=module.q.in_features,
            scaling=module.attention_head_size**-0.5,
            causal=False,
            layer_index=index,
            attention_dropout=module.dropout.p,
        )
        for index, (path, module) in enumerate(modules_named(model, "MPNetSelfAttention"))
    ]


def _site(path: str, module: Any, *, heads: int, **rest: Any) -> AttentionSite:
    return AttentionSite(
        path=path,
        query=Projection(f"{path}.q"),
        key=Projection(f"{path}.k"),
        value=Projection(f"{path}.v"),
        output=f"{path}.o",
        heads=heads,
        kv_heads=heads,
        rotary=False,
        position_bias=True,
        **rest,
    )
