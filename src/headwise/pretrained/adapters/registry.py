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
from headwise.pretrained.adapters.base import AttentionSite
from headwise.pretrained.adapters.bert import bert_sites
from headwise.pretrained.adapters.distilbert import distilbert_sites
from headwise.pretrained.adapters.gpt2 import gpt2_sites
from headwise.pretrained.adapters.llama import llama_sites
from headwise.pretrained.adapters.vit import vit_sites


@dataclass(frozen=True, kw_only=True)
class Family:
    """One kind of model: where its attention lives, what it reads, what its configuration can say.

    `uniform` is what a stock configuration can express when all layers have one shape: a number of
    "heads", a number of heads and their "sizes", or nothing (None) because the head size is fixed.
    """

    sites: Callable[[nn.Module], list[AttentionSite]]
    reads: Literal["text", "images"] = "text"
    uniform: Literal["heads", "sizes"] | None = None


FAMILIES: dict[str, Family] = {
    "bert": Family(sites=bert_sites),
    "distilbert": Family(sites=distilbert_sites),
    "gpt2": Family(sites=gpt2_sites),
    "llama": Family(sites=llama_sites, uniform="heads"),
    "mistral": Family(sites=llama_sites, uniform="heads"),
    "qwen2": Family(sites=llama_sites, uniform="heads"),
    "roberta": Family(sites=bert_sites),
    "vit": Family(sites=vit_sites, reads="images", uniform="sizes"),
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
        f"{names[0]} (model type {model_type!r}) is not supported: headwise does not know what "
        "lies between its projections and its scores (some normalise or rotate there). "
        f"Supported model types: {', '.join(sorted(FAMILIES))}",
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
