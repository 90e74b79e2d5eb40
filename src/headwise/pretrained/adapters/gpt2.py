"""GPT-2: one Conv1D puts out queries, keys and values side by side."""

from typing import Any

from torch import nn

from headwise.core.errors import require
from headwise.pretrained.adapters.base import AttentionSite, Projection, modules_named


def gpt2_sites(model: nn.Module) -> list[AttentionSite]:
    """The attention of every decoder layer; its projections are columns of one module."""
    config: Any = model.config
    require(
        not config.add_cross_attention,
        "GPT-2 with cross-attention is not supported; the plain decoder is",
    )
    sites = []
    for index, (path, module) in enumerate(modules_named(model, "GPT2Attention")):
        dim = module.embed_dim
        fused = f"{path}.c_attn"
        sites.append(
            AttentionSite(
                path=path,
                query=Projection(fused, 0, dim),
                key=Projection(fused, dim, 2 * dim),
                value=Projection(fused, 2 * dim, 3 * dim),
                output=f"{path}.c_proj",
                heads=module.num_heads,
                kv_heads=module.num_heads,
                head_dim=module.head_dim,
                hidden=dim,
                scaling=module.scaling,
                rotary=False,
                causal=True,
                layer_index=index,
                attention_dropout=module.attn_dropout.p,
                output_dropout=module.resid_dropout.p,
            )
        )
    return sites
