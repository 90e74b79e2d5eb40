"""Llama-like decoders (Llama, Mistral, Qwen2): RoPE before the scores, grouped queries."""

from typing import Any

from torch import nn

from headwise.pretrained.adapters.base import AttentionSite, Projection, modules_named

_CLASSES = ("LlamaAttention", "MistralAttention", "Qwen2Attention")


def llama_sites(model: nn.Module) -> list[AttentionSite]:
    """The attention of every decoder layer, key heads shared by groups of query heads."""
    config: Any = model.config
    found = [pair for name in _CLASSES for pair in modules_named(model, name)]
    return [
        AttentionSite(
            path=path,
            query=Projection(f"{path}.q_proj"),
            key=Projection(f"{path}.k_proj"),
            value=Projection(f"{path}.v_proj"),
            output=f"{path}.o_proj",
            heads=config.num_attention_heads,
            kv_heads=config.num_key_value_heads,
            head_dim=module.head_dim,
            hidden=config.hidden_size,
            scaling=module.scaling,
            rotary=True,
            causal=True,
            layer_index=index,
            attention_dropout=module.attention_dropout,
            sliding_window=_sliding_window(config, module),
        )
        for index, (path, module) in enumerate(found)
    ]


def _sliding_window(config: Any, module: Any) -> int | None:
    """Mistral's window is the configuration's; Qwen2's differs by layer; Llama has none."""
    name = type(module).__name__
    if name == "LlamaAttention":
        return None
    window = config.sliding_window if name == "MistralAttention" else module.sliding_window
    return None if window is None else int(window)
