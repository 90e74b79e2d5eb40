"""Attention with projections q_proj, k_proj, v_proj and out_proj, positions added to the input.

Decoders (OPT, XGLM, BioGPT, GPT-Neo), encoders of sound (wav2vec 2.0, HuBERT), both towers of CLIP
and SigLIP; BART, Whisper and what is like them (encoder, decoder, and cross-attention between them,
each attention with sizes of its own).
"""

from typing import Any

from torch import nn

from headwise.pretrained.adapters.base import AttentionSite, modules_with, own_modules


def bart_sites(model: nn.Module) -> list[AttentionSite]:
    """Every attention: of the encoder, of the decoder to itself, of the decoder to the encoder.

    A decoder taken alone (`BartForCausalLM`) has the latter's weights and does not compute it.
    """
    config: Any = model.config
    pairs = bool(config.is_encoder_decoder)
    return [
        _site(path, module, index, module.scaling, _looks_back(module))
        for index, (path, module) in enumerate(_modules(model))
        if pairs or not _across(path)
    ]


def clip_sites(model: nn.Module) -> list[AttentionSite]:
    """The towers that the model has; CLIP's for text does not look ahead."""
    return [
        _site(path, module, index, module.scale, module.config.model_type == "clip_text_model")
        for index, (path, module) in enumerate(_modules(model))
    ]


def gpt_neo_sites(model: nn.Module) -> list[AttentionSite]:
    """GPT-Neo: scores are not scaled; every other layer hides what is far away, by itself."""
    return [
        _site(
            path,
            module,
            module.layer_id,
            1.0,
            True,
            attention_dropout=module.attn_dropout.p,
            output_dropout=module.resid_dropout.p,
            window_inside=module.attention_type == "local",
            sliding_window=module.config.window_size if module.attention_type == "local" else None,
        )
        for path, module in _modules(model)
    ]


def _modules(model: nn.Module) -> list[tuple[str, Any]]:
    return modules_with(model, "q_proj k_proj v_proj out_proj", "num_heads head_dim embed_dim")


def _across(path: str) -> bool:
    return path.endswith("encoder_attn")


def _looks_back(module: Any) -> bool:
    """XGLM's does not say more than that it is a decoder's."""
    return bool(getattr(module, "is_causal", getattr(module, "is_decoder", False)))


def _site(
    path: str, module: Any, index: int, scaling: float, causal: bool, **rest: Any
) -> AttentionSite:
    cross = _across(path)
    layer = getattr(module, "layer_idx", None)
    known = {
        **own_modules(path, "q_proj", "k_proj", "v_proj"),
        "output": f"{path}.out_proj",
        "heads": module.num_heads,
        "kv_heads": module.num_heads,
        "head_dim": module.head_dim,
        "hidden": module.embed_dim,
        "scaling": scaling,
        "rotary": False,
        "causal": causal and not cross,
        "layer_index": index if layer is None else layer,
        "attention_dropout": getattr(module, "dropout", 0.0),
        "cross": cross,
    }
    return AttentionSite(**(known | rest))
