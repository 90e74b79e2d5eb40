"""Attention with projections q_proj, k_proj, v_proj and out_proj, positions added to the input.

OPT (decoder), CLIP (both towers), BART and Whisper (encoder, decoder, and cross-attention between
them, each attention with sizes of its own).
"""

from typing import Any

from torch import nn

from headwise.pretrained.adapters.base import AttentionSite, modules_named, own_modules


def bart_sites(model: nn.Module) -> list[AttentionSite]:
    """Every attention: of the encoder, of the decoder to itself, of the decoder to the encoder.

    A decoder taken alone (`BartForCausalLM`) has the latter's weights and does not compute it.
    """
    config: Any = model.config
    pairs = bool(config.is_encoder_decoder)
    return [
        _site(path, module, index, module.scaling, module.is_causal)
        for index, (path, module) in enumerate(
            modules_named(model, "BartAttention", "WhisperAttention", "OPTAttention")
        )
        if pairs or not _across(path)
    ]


def clip_sites(model: nn.Module) -> list[AttentionSite]:
    """The towers that the model has; the one for text does not look ahead."""
    found = modules_named(model, "CLIPAttention")
    return [
        _site(path, module, index, module.scale, module.config.model_type == "clip_text_model")
        for index, (path, module) in enumerate(found)
    ]


def _across(path: str) -> bool:
    return path.endswith("encoder_attn")


def _site(path: str, module: Any, index: int, scaling: float, causal: bool) -> AttentionSite:
    cross = _across(path)
    layer = getattr(module, "layer_idx", None)
    return AttentionSite(
        **own_modules(path, "q_proj", "k_proj", "v_proj"),
        output=f"{path}.out_proj",
        heads=module.num_heads,
        kv_heads=module.num_heads,
        head_dim=module.head_dim,
        hidden=module.embed_dim,
        scaling=scaling,
        rotary=False,
        causal=bool(causal) and not cross,
        layer_index=index if layer is None else layer,
        attention_dropout=module.dropout,
        cross=cross,
    )
