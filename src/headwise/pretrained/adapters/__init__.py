"""Model families. `attention_sites(model)` finds every attention layer, or says why it cannot."""

from collections.abc import Callable
from typing import Any

from torch import nn

from headwise.core.errors import InputError, require
from headwise.pretrained.adapters.base import (
    AttentionSite,
    AttentionWeights,
    LinearPart,
    Projection,
    read_weights,
)
from headwise.pretrained.adapters.bert import bert_sites
from headwise.pretrained.adapters.distilbert import distilbert_sites
from headwise.pretrained.adapters.gpt2 import gpt2_sites
from headwise.pretrained.adapters.llama import llama_sites
from headwise.pretrained.adapters.vit import vit_sites

FAMILIES: dict[str, Callable[[nn.Module], list[AttentionSite]]] = {
    "bert": bert_sites,
    "distilbert": distilbert_sites,
    "gpt2": gpt2_sites,
    "llama": llama_sites,
    "mistral": llama_sites,
    "qwen2": llama_sites,
    "roberta": bert_sites,
    "vit": vit_sites,
    "xlm-roberta": bert_sites,
}


def require_supported(config: Any) -> None:
    """Refuse an architecture that no adapter describes."""
    model_type = getattr(config, "model_type", None)
    names = getattr(config, "architectures", None) or [str(model_type)]
    require(
        model_type in FAMILIES,
        f"{names[0]} (model type {model_type!r}) is not supported: headwise does not know what "
        "lies between its projections and its scores (some normalise or rotate there). "
        f"Supported model types: {', '.join(sorted(FAMILIES))}",
    )


def attention_sites(model: Any) -> list[AttentionSite]:
    """Every attention layer of the model, in order."""
    require_supported(model.config)
    if getattr(model.config, "headwise", None) is not None:
        raise InputError(
            "this model is compressed already; start from the original to choose another size"
        )
    sites = FAMILIES[model.config.model_type](model)
    require(
        bool(sites), f"{type(model).__name__} has no attention layer of its family's usual class"
    )
    return sites


__all__ = [
    "FAMILIES",
    "AttentionSite",
    "AttentionWeights",
    "LinearPart",
    "Projection",
    "attention_sites",
    "read_weights",
    "require_supported",
]
