"""BERT-like encoders: BERT (and MiniLM, which is one), RoBERTa, XLM-RoBERTa, ELECTRA."""

from typing import Any

from torch import nn

from headwise.core.errors import require
from headwise.pretrained.adapters.base import AttentionSite, Projection, modules_named

_CLASSES = (
    "BertSelfAttention",
    "RobertaSelfAttention",
    "XLMRobertaSelfAttention",
    "ElectraSelfAttention",
)


def bert_sites(model: nn.Module) -> list[AttentionSite]:
    """The self-attention of every encoder layer."""
    config: Any = model.config
    require(
        not config.add_cross_attention,
        "a BERT-like decoder with cross-attention is not supported; encoders are",
    )
    return [
        AttentionSite(
            path=path,
            query=Projection(f"{path}.query"),
            key=Projection(f"{path}.key"),
            value=Projection(f"{path}.value"),
            output=path.removesuffix("self") + "output.dense",
            heads=module.num_attention_heads,
            kv_heads=module.num_attention_heads,
            head_dim=module.attention_head_size,
            hidden=config.hidden_size,
            scaling=module.scaling,
            rotary=False,
            causal=bool(module.is_causal),
            layer_index=index,
            attention_dropout=module.dropout.p,
        )
        for index, (path, module) in enumerate(modules_named(model, *_CLASSES))
    ]
