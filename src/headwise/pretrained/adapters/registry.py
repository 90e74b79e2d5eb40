"""Which model families are known, and how a user adds one.

    from headwise.pretrained import Family, register_family

    register_family("my-model", Family(sites=my_sites))

where `my_sites(model)` gives an `AttentionSite` for every attention layer, as the modules beside
this one do for theirs.
"""

from typing import Any

from headwise.core.errors import InputError, require
from headwise.pretrained.adapters.base import AttentionSite
from headwise.pretrained.adapters.families import FAMILIES, Family
from headwise.pretrained.adapters.refused import REFUSED


def register_family(model_type: str, family: Family) -> None:
    """Make a family known under its configuration's `model_type`."""
    require(model_type not in FAMILIES, f"the model type {model_type!r} is registered already")
    FAMILIES[model_type] = family


def require_supported(config: Any) -> None:
    """Refuse an architecture that no adapter describes."""
    model_type = getattr(config, "model_type", None)
    names = getattr(config, "architectures", None) or [str(model_type)]
    require(
        model_type in FAMILIES or model_type not in REFUSED,
        f"{names[0]} (model type {model_type!r}) is not supported: {REFUSED.get(str(model_type))}",
    )
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
