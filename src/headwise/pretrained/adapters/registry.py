"""Which model families are known, and how a user adds one.

    from headwise.pretrained import Family, register_family

    register_family("my-model", Family(sites=my_sites))

where `my_sites(model)` gives an `AttentionSite` for every attention layer, as the modules beside
this one do for theirs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from torch import nn

from headwise.core.errors import InputError, require
from headwise.pretrained.adapters.bart import bart_sites, clip_sites
from headwise.pretrained.adapters.base import AttentionSite
from headwise.pretrained.adapters.encoders import (
    bert_sites,
    distilbert_sites,
    mpnet_sites,
    vit_sites,
)
from headwise.pretrained.adapters.fused import gpt_neox_sites, modernbert_sites, phi3_sites
from headwise.pretrained.adapters.gpt2 import gpt2_sites
from headwise.pretrained.adapters.llama import llama_sites
from headwise.pretrained.adapters.t5 import t5_sites


@dataclass(frozen=True, kw_only=True)
class Family:
    """One kind of model: where its attention lives, what it reads, what its configuration can say.

    `uniform` is what a stock configuration can express when all layers have one shape: a number of
    "heads", a number of heads and their "sizes", or nothing (None) because the head size is fixed.
    `reads`: "text pairs" are one text for the encoder and one for the decoder; of a model that
    reads "batches" (sound, pictures with captions) the user gives them, as a `Material`.
    """

    sites: Callable[[nn.Module], list[AttentionSite]]
    reads: Literal["text", "text pairs", "images", "batches"] = "text"
    uniform: Literal["heads", "sizes"] | None = None


FAMILIES: dict[str, Family] = {
    "bart": Family(sites=bart_sites, reads="text pairs"),
    "bert": Family(sites=bert_sites),
    "clip": Family(sites=clip_sites, reads="batches"),
    "clip_text_model": Family(sites=clip_sites),
    "clip_vision_model": Family(sites=clip_sites, reads="images"),
    "deit": Family(sites=vit_sites, reads="images", uniform="sizes"),
    "dinov2": Family(sites=vit_sites, reads="images", uniform="sizes"),
    "distilbert": Family(sites=distilbert_sites),
    "electra": Family(sites=bert_sites),
    "gemma2": Family(sites=llama_sites, uniform="heads"),
    "gemma3_text": Family(sites=llama_sites, uniform="heads"),
    "gpt2": Family(sites=gpt2_sites),
    "gpt_neox": Family(sites=gpt_neox_sites),
    "llama": Family(sites=llama_sites, uniform="heads"),
    "mistral": Family(sites=llama_sites, uniform="heads"),
    "mixtral": Family(sites=llama_sites, uniform="heads"),
    "modernbert": Family(sites=modernbert_sites),
    "mpnet": Family(sites=mpnet_sites),
    "olmo2": Family(sites=llama_sites),
    "opt": Family(sites=bart_sites),
    "phi": Family(sites=llama_sites),
    "phi3": Family(sites=phi3_sites),
    "qwen2": Family(sites=llama_sites, uniform="heads"),
    "qwen3": Family(sites=llama_sites, uniform="heads"),
    "roberta": Family(sites=bert_sites),
    "smollm3": Family(sites=llama_sites, uniform="heads"),
    "stablelm": Family(sites=llama_sites),
    "t5": Family(sites=t5_sites, reads="text pairs"),
    "vit": Family(sites=vit_sites, reads="images", uniform="sizes"),
    "whisper": Family(sites=bart_sites, reads="batches"),
    "xlm-roberta": Family(sites=bert_sites),
}
"""By transformers' `model_type`."""


def register_family(model_type: str, family: Family) -> None:
    """Make a family known under its configuration's `model_type`."""
    require(model_type not in FAMILIES, f"the model type {model_type!r} is registered already")
    FAMILIES[model_type] = family


def require_supported(config: Any) -> None:
    """Refuse an architecture that no adapter describes."""
    model_type = getattr(config, "model_type", None)
    names = getattr(config, "architectures", None) or [str(model_type)]
    require(
        model_type in FAMILIES,
        f"{names[0]} (model type {model_type!r}) is not supported: headwise does not know where "
        "its attention lives and what lies between its projections and its scores (a norm, RoPE, "
        "a cap, a bias). To add it without a fork, write a function that gives an AttentionSite "
        f"for every attention layer and call register_family({model_type!r}, Family(sites=...)); "
        f"docs/adapters.md shows how. Supported model types: {', '.join(sorted(FAMILIES))}",
    )


def family_of(model: Any) -> Family:
    """The family of a loaded model."""
    require_supported(model.config)
    return FAMILIES[model.config.model_type]


def attention_sites(model: Any) -> list[AttentionSite]:
    """Every attention layer of the model, in order."""
    sites_of = family_of(model).sites
    if getattr(model.config, "headwise", None) is not None:
        raise InputError(
            "this model is compressed already; start from the original to choose another size"
        )
    sites = sites_of(model)
    require(
        bool(sites), f"{type(model).__name__} has no attention layer of its family's usual class"
    )
    return sites
