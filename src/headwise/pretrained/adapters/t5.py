"""T5, mT5, UMT5: encoder, decoder and cross-attention, with a bias by distance."""

from torch import nn

from headwise.pretrained.adapters.base import AttentionSite, modules_with, own_modules


def t5_sites(model: nn.Module) -> list[AttentionSite]:
    """Every attention; the first layer of a stack makes its biases, in UMT5 every layer."""
    return [
        AttentionSite(
            **own_modules(path, "q", "k", "v"),
            output=f"{path}.o",
            heads=module.n_heads,
            kv_heads=module.n_heads,
            head_dim=module.key_value_proj_dim,
            hidden=module.d_model,
            scaling=module.scaling,
            rotary=False,
            causal=bool(module.is_causal),
            layer_index=index if module.layer_idx is None else module.layer_idx,
            attention_dropout=module.dropout,
            position_bias=True,
            cross=path.endswith("EncDecAttention"),
        )
        for index, (path, module) in enumerate(modules_with(model, "q k v o", "compute_bias"))
    ]
