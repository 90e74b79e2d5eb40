"""Encoders with a module each for queries, keys and values: what every family calls them.

BERT (and MiniLM, which is one), RoBERTa, XLM-RoBERTa and ELECTRA; DistilBERT; MPNet, whose encoder
hands every layer a bias by distance; the vision transformers ViT, DeiT and DINOv2.
"""

from operator import attrgetter
from typing import Any

from torch import nn

from headwise.core.errors import require
from headwise.pretrained.adapters.base import AttentionSite, modules_named, own_modules


def bert_sites(model: nn.Module) -> list[AttentionSite]:
    """The self-attention of every encoder layer."""
    config: Any = model.config
    require(
        not config.add_cross_attention,
        "a BERT-like decoder with cross-attention is not supported; encoders are",
    )
    classes = ["BertSelfAttention", "RobertaSelfAttention", "XLMRobertaSelfAttention"]
    return _sites(
        model,
        [*classes, "ElectraSelfAttention"],
        modules="query key value ../output.dense",
        sizes="num_attention_heads attention_head_size dropout.p",
    )


def distilbert_sites(model: nn.Module) -> list[AttentionSite]:
    """The self-attention of every encoder layer."""
    modules, sizes = "q_lin k_lin v_lin out_lin", "n_heads attention_head_size dropout.p"
    return _sites(model, ["DistilBertSelfAttention"], modules, sizes)


def mpnet_sites(model: nn.Module) -> list[AttentionSite]:
    """The self-attention of every encoder layer; the encoder hands them their biases."""
    sizes = "num_attention_heads attention_head_size dropout.p"
    return _sites(model, ["MPNetSelfAttention"], "q k v o", sizes, position_bias=True)


def vit_sites(model: nn.Module) -> list[AttentionSite]:
    """The self-attention of every encoder layer."""
    classes = ["ViTAttention", "DeiTAttention", "Dinov2Attention"]
    sizes = "num_attention_heads head_dim attention_dropout"
    return _sites(model, classes, "q_proj k_proj v_proj o_proj", sizes)


def _sites(
    model: nn.Module, classes: list[str], modules: str, sizes: str, position_bias: bool = False
) -> list[AttentionSite]:
    """What these classes call their modules, for queries, keys, values and outputs (one that begins
    with "../" is below the parent), and their sizes: heads, dimension of a head, dropout.
    """
    query, key, value, output = modules.split()
    sites = []
    for index, (path, module) in enumerate(modules_named(model, *classes)):
        heads, head_dim, dropout = attrgetter(*sizes.split())(module)
        beside = path.rpartition(".")[0] + output.removeprefix("..").replace("/", ".")
        site = AttentionSite(
            **own_modules(path, query, key, value),
            output=beside if output.startswith("../") else f"{path}.{output}",
            heads=heads,
            kv_heads=heads,
            head_dim=head_dim,
            hidden=getattr(module, query).in_features,
            scaling=getattr(module, "scaling", head_dim**-0.5),
            rotary=False,
            causal=bool(getattr(module, "is_causal", False)),
            layer_index=index,
            attention_dropout=dropout,
            position_bias=position_bias,
        )
        sites.append(site)
    return sites
