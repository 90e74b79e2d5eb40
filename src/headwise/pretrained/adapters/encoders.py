"""Encoders with a module each for queries, keys and values: what every family calls them.

BERT (and MiniLM, which is one) and what is like it; ESM, which turns; DistilBERT; MPNet, whose
encoder hands every layer a bias by distance; the vision transformers ViT, DeiT, DINOv2 and what is
like them, and DINOv3, which turns.
"""

from operator import attrgetter
from typing import Any

from torch import nn

from headwise.core.errors import require
from headwise.pretrained.adapters.base import AttentionSite, modules_with, own_modules

_BERT_SIZES = "num_attention_heads attention_head_size"


def bert_sites(model: nn.Module) -> list[AttentionSite]:
    """The self-attention of every encoder layer."""
    config: Any = model.config
    require(
        not getattr(config, "add_cross_attention", False),
        "a BERT-like decoder with cross-attention is not supported; encoders are",
    )
    return _sites(model, "query key value ../output.dense", f"{_BERT_SIZES} dropout.p")


def esm_sites(model: nn.Module) -> list[AttentionSite]:
    """The self-attention of every encoder layer of a model of proteins; most of them turn."""
    config: Any = model.config
    require(
        not config.add_cross_attention and not config.is_folding_model,
        "of ESM encoders are supported; not those with cross-attention or that fold",
    )
    turns = config.position_embedding_type == "rotary"
    modules, dim = (
        "query key value ../output.dense",
        config.hidden_size // (config.num_attention_heads),
    )
    rest = {"rotary": turns, "scaling": dim**-0.5}
    return _sites(model, modules, f"{_BERT_SIZES} dropout", **rest)


def distilbert_sites(model: nn.Module) -> list[AttentionSite]:
    """The self-attention of every encoder layer."""
    return _sites(model, "q_lin k_lin v_lin out_lin", "n_heads attention_head_size dropout.p")


def mpnet_sites(model: nn.Module) -> list[AttentionSite]:
    """The self-attention of every encoder layer; the encoder hands them their biases."""
    return _sites(model, "q k v o", f"{_BERT_SIZES} dropout.p", position_bias=True)


def vit_sites(model: nn.Module) -> list[AttentionSite]:
    """The self-attention of every encoder layer."""
    sizes = "num_attention_heads head_dim attention_dropout"
    return _sites(model, "q_proj k_proj v_proj o_proj", sizes)


def dinov3_sites(model: nn.Module) -> list[AttentionSite]:
    """The self-attention of every encoder layer; patches turn by their place in the image."""
    sizes = "num_heads head_dim dropout"
    return _sites(model, "q_proj k_proj v_proj o_proj", sizes, rotary=True)


def _sites(model: nn.Module, modules: str, sizes: str, **rest: Any) -> list[AttentionSite]:
    """What a family calls its modules, for queries, keys, values and outputs (one that begins with
    "../" is below the parent), and their sizes: heads, dimension of a head, dropout.
    """
    query, key, value, output = modules.split()
    sites = []
    for index, (path, module) in enumerate(modules_with(model, f"{query} {key} {value}")):
        heads, head_dim, dropout = attrgetter(*sizes.split())(module)
        beside = path.rpartition(".")[0] + output.removeprefix("..").replace("/", ".")
        known = {
            **own_modules(path, query, key, value),
            "output": beside if output.startswith("../") else f"{path}.{output}",
            "heads": heads,
            "kv_heads": heads,
            "head_dim": head_dim,
            "hidden": getattr(module, query).in_features,
            "scaling": getattr(module, "scaling", head_dim**-0.5),
            "rotary": False,
            "causal": bool(getattr(module, "is_causal", False)),
            "layer_index": index,
            "attention_dropout": dropout,
        }
        sites.append(AttentionSite(**(known | rest)))
    return sites
