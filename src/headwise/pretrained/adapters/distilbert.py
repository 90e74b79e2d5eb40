"""DistilBERT."""

from torch import nn

from headwise.pretrained.adapters.base import AttentionSite, Projection, modules_named


def distilbert_sites(model: nn.Module) -> list[AttentionSite]:
    """The self-attention of every encoder layer."""
    return [
        AttentionSite(
            path=path,
            query=Projection(f"{path}.q_lin"),
            key=Projection(f"{path}.k_lin"),
            value=Projection(f"{path}.v_lin"),
            output=f"{path}.out_lin",
            heads=module.n_heads,
            kv_heads=module.n_heads,
            head_dim=module.attention_head_size,
            hidden=module.dim,
            scaling=module.scaling,
            rotary=False,
            causal=False,
            layer_index=index,
            attention_dropout=module.dropout.p,
        )
        for index, (path, module) in enumerate(modules_named(model, "DistilBertSelfAttention"))
    ]
