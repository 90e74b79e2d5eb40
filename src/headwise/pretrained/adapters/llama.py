"""Decoders with RoPE and a projection each for queries, keys and values; grouped queries.

Llama and what is like it: a module with q_proj, k_proj, v_proj and o_proj (Phi's is dense), whose
attributes say the rest. Of a mixture of experts (Mixtral) the experts stay as they are. An
encoder is built alike (EuroBERT).
"""

from typing import Any

from torch import nn

from headwise.core.errors import require
from headwise.pretrained.adapters.base import AttentionSite, QKNorm, modules_with, own_modules

_NEIGHBOURS = ("CohereAttention", "Cohere2Attention", "GlmAttention", "Glm4Attention",
               "HeliumAttention", "Ernie4_5Attention")  # fmt: skip
"""RoPE turns coordinates 2i and 2i + 1 together; Cohere's angles are in that order as well."""

_HEADS_FIRST = ("Gemma3Attention", "ApertusAttention", "Exaone4Attention")
"""Their norms on queries and keys see (batch, heads, tokens, size)."""


def llama_sites(model: nn.Module) -> list[AttentionSite]:
    """The attention of every layer, key heads shared by groups of query heads."""
    found = modules_with(model, "q_proj k_proj v_proj", "head_dim scaling attention_dropout")
    return [_site(path, module, index) for index, (path, module) in enumerate(found)]


def _site(path: str, module: Any, index: int) -> AttentionSite:
    config, name = module.config, type(module).__name__
    clip = getattr(config, "clip_qkv", None)
    require(
        clip is None,
        f"{name} clips what its projections put out at ±{clip} (clip_qkv), which no reduced layer "
        "can do",
    )
    window = _sliding_window(config, module, index)
    return AttentionSite(
        **own_modules(path, "q_proj", "k_proj", "v_proj"),
        output=f"{path}.o_proj" if hasattr(module, "o_proj") else f"{path}.dense",
        heads=config.num_attention_heads,
        kv_heads=getattr(config, "num_key_value_heads", None) or config.num_attention_heads,
        head_dim=module.head_dim,
        hidden=config.hidden_size,
        scaling=module.scaling,
        rotary=_turns(module, window),
        causal=bool(module.is_causal),
        layer_index=index,
        attention_dropout=module.attention_dropout,
        output_dropout=getattr(module, "residual_dropout", 0.0),
        sliding_window=window,
        rotary_dim=_rotary_dim(config, module),
        neighbours=name in _NEIGHBOURS,
        neighbour_angles=name.startswith("Cohere"),
        norm=_norm(path, module),
        soft_cap=getattr(module, "attn_logit_softcapping", None),
    )


def _sliding_window(config: Any, module: Any, index: int) -> int | None:
    """The layer's or the configuration's, in all layers or in those that this names."""
    window: int | None = getattr(module, "sliding_window", getattr(config, "sliding_window", None))
    kinds = getattr(config, "layer_types", None)
    return window if kinds is None or kinds[index] == "sliding_attention" else None


def _turns(module: Any, window: int | None) -> bool:
    """SmolLM3 says which layers turn; Cohere 2 and EXAONE 4 turn within windows only."""
    if type(module).__name__ == "Cohere2Attention":
        return window is not None
    if type(module).__name__ == "Exaone4Attention":
        return window is not None or module.sliding_window is None
    return bool(getattr(module, "use_rope", True))


def _rotary_dim(config: Any, module: Any) -> int:
    share = (getattr(config, "rope_parameters", None) or {}).get("partial_rotary_factor", 1.0)
    return int(getattr(module, "rotary_ndims", int(module.head_dim * share)))


def _norm(path: str, module: Any) -> QKNorm | None:
    name = type(module).__name__
    require(
        not getattr(module, "qk_layernorm", False),
        f"{name} with qk_layernorm is not supported: it normalises queries and keys before turning "
        "a part of them",
    )
    require(
        not (name.startswith("Cohere") and hasattr(module, "q_norm")),
        f"{name} with use_qk_norm is not supported: each head is normalised with weights of its "
        "own",
    )
    if not hasattr(module, "q_norm"):
        return None
    width = getattr(module.q_norm, "weight", module.q_proj.weight).shape[0]
    return QKNorm(
        query=f"{path}.q_norm",
        key=f"{path}.k_norm",
        whole_layer=width != module.head_dim,
        heads_first=name in _HEADS_FIRST,
    )
