"""Decoders with RoPE and a projection each for queries, keys and values; grouped queries.

Llama, Mistral, Mixtral (its experts stay as they are), Qwen2; with a norm on queries and keys
Qwen3, Gemma 3 and OLMo 2; with capped scores Gemma 2; with layers that do not turn SmolLM3; with
RoPE on a part of each head Phi and StableLM.
"""

from typing import Any

from torch import nn

from headwise.core.errors import require
from headwise.pretrained.adapters.base import AttentionSite, QKNorm, modules_named, own_modules

_CLASSES = (
    "LlamaAttention",
    "MistralAttention",
    "MixtralAttention",
    "Qwen2Attention",
    "Qwen3Attention",
    "Gemma2Attention",
    "Gemma3Attention",
    "Olmo2Attention",
    "SmolLM3Attention",
    "PhiAttention",
    "StableLmAttention",
)


def llama_sites(model: nn.Module) -> list[AttentionSite]:
    """The attention of every decoder layer, key heads shared by groups of query heads."""
    config: Any = model.config
    return [
        AttentionSite(
            **own_modules(path, "q_proj", "k_proj", "v_proj"),
            output=f"{path}.o_proj" if hasattr(module, "o_proj") else f"{path}.dense",
            heads=config.num_attention_heads,
            kv_heads=config.num_key_value_heads,
            head_dim=module.head_dim,
            hidden=config.hidden_size,
            scaling=module.scaling,
            rotary=bool(getattr(module, "use_rope", True)),
            causal=bool(module.is_causal),
            layer_index=index,
            attention_dropout=module.attention_dropout,
            sliding_window=_sliding_window(config, module),
            rotary_dim=getattr(module, "rotary_ndims", None),
            norm=_norm(path, module),
            soft_cap=getattr(module, "attn_logit_softcapping", None),
        )
        for index, (path, module) in enumerate(modules_named(model, *_CLASSES))
    ]


def _sliding_window(config: Any, module: Any) -> int | None:
    """Mistral's and Mixtral's is the configuration's; others' differs by layer, if there is one."""
    if type(module).__name__ in ("MistralAttention", "MixtralAttention"):
        return config.sliding_window
    return getattr(module, "sliding_window", None)


def _norm(path: str, module: Any) -> QKNorm | None:
    require(
        not getattr(module, "qk_layernorm", False),
        f"{type(module).__name__} with qk_layernorm is not supported: it normalises queries and "
        "keys before turning a part of them",
    )
    if not hasattr(module, "q_norm"):
        return None
    name = type(module).__name__
    return QKNorm(
        query=f"{path}.q_norm",
        key=f"{path}.k_norm",
        whole_layer=name == "Olmo2Attention",
        heads_first=name == "Gemma3Attention",
    )
