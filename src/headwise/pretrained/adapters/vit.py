"""Vision transformers: ViT, DeiT, DINOv2."""

from torch import nn

from headwise.pretrained.adapters.base import AttentionSite, Projection, modules_named


def vit_sites(model: nn.Module) -> list[AttentionSite]:
    """The self-attention of every encoder layer."""
    found = modules_named(model, "ViTAttention", "DeiTAttention", "Dinov2Attention")
    return [
        AttentionSite(
            path=path,
            query=Projection(f"{path}.q_proj"),
            key=Projection(f"{path}.k_proj"),
            value=Projection(f"{path}.v_proj"),
            output=f"{path}.o_proj",
            heads=module.num_attention_heads,
            kv_heads=module.num_attention_heads,
            head_dim=module.head_dim,
            hidden=module.q_proj.in_features,
            scaling=module.scaling,
            rotary=False,
            causal=False,
            layer_index=index,
            attention_dropout=module.attention_dropout,
        )
        for index, (path, module) in enumerate(found)
    ]
