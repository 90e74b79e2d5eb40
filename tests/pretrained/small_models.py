"""Small random models of every family, and random calibration data for them."""

from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import torch
import transformers
from more_models import COUSINS
from tokenizers import Tokenizer, models, pre_tokenizers

from headwise.pretrained import (
    Budget,
    Compressed,
    Material,
    Measurement,
    compress,
    make_plan,
    measure_model,
)
from headwise.pretrained.adapters import family_of
from headwise.pretrained.text.calibration import packaged_text

torch.set_num_threads(1)

_BERT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
_BERT |= {"vocab_size": 99, "max_position_embeddings": 64}
_LLAMA = {"hidden_size": 36, "num_hidden_layers": 2, "intermediate_size": 48, "vocab_size": 99}
_LLAMA |= {
    "max_position_embeddings": 64,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "head_dim": 8,
}

_VIT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_VIT |= {"intermediate_size": 48, "image_size": 16, "patch_size": 4}
_PARTIAL = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
_PARTIAL["rope_parameters"]["partial_rotary_factor"] = 0.5
_BART = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4}
_BART |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}
_BART |= {"vocab_size": 99}
_CLIP_TEXT = _BERT | {"eos_token_id": 98, "projection_dim": 16}
_CLIP = {"text_config": _CLIP_TEXT, "vision_config": _VIT | {"hidden_size": 24}}
_DISTILBERT = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "vocab_size": 99}
_DISTILBERT |= {"max_position_embeddings": 64}
_GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 99, "n_positions": 64}
_T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
_T5 |= {"vocab_size": 99, "decoder_start_token_id": 0}
_OPT = _BERT | {"ffn_dim": 48, "word_embed_proj_dim": 32}
_KEYS = {"num_key_value_heads": 2}
_NARROW = {"sliding_window": 8}

FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bart": ("BartConfig", "BartForConditionalGeneration", _BART),
    "bert": ("BertConfig", "BertModel", _BERT),
    "bert-masked": ("BertConfig", "BertForMaskedLM", _BERT),
    "clip": ("CLIPConfig", "CLIPModel", _CLIP),
    "clip-text": ("CLIPTextConfig", "CLIPTextModel", _CLIP_TEXT),
    "clip-vision": ("CLIPVisionConfig", "CLIPVisionModel", _VIT),
    "deit": ("DeiTConfig", "DeiTForImageClassification", _VIT | {"num_labels": 5}),
    "dinov2": ("Dinov2Config", "Dinov2Model", _VIT),
    "distilbert": ("DistilBertConfig", "DistilBertModel", _DISTILBERT),
    "electra": ("ElectraConfig", "ElectraModel", _BERT | {"embedding_size": 16}),
    "gemma2": (
        "Gemma2Config",
        "Gemma2ForCausalLM",
        _LLAMA | _NARROW | {"attn_logit_softcapping": 3.0, "query_pre_attn_scalar": 8},
    ),
    "gemma3": (
        "Gemma3TextConfig",
        "Gemma3ForCausalLM",
        _LLAMA | _NARROW | {"layer_types": ["sliding_attention", "full_attention"]},
    ),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", _GPT2),
    "gpt-neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", _BERT | _PARTIAL),
    "llama": ("LlamaConfig", "LlamaForCausalLM", _LLAMA),
    "llama-biased": ("LlamaConfig", "LlamaForCausalLM", _LLAMA | {"attention_bias": True}),
    "mistral": ("MistralConfig", "MistralForCausalLM", _LLAMA | _NARROW),
    "mixtral": (
        "MixtralConfig",
        "MixtralForCausalLM",
        _LLAMA | {"num_local_experts": 3, "num_experts_per_tok": 2},
    ),
    "modernbert": (
        "ModernBertConfig",
        "ModernBertModel",
        _BERT
        | {"local_attention": 12, "global_attn_every_n_layers": 2, "pad_token_id": 0}
        | {"bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2},
    ),
    "mpnet": ("MPNetConfig", "MPNetModel", _BERT),
    "olmo2": ("Olmo2Config", "Olmo2ForCausalLM", _LLAMA),
    "opt": ("OPTConfig", "OPTForCausalLM", _OPT),
    "phi": ("PhiConfig", "PhiForCausalLM", _BERT | _PARTIAL | _KEYS),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", _LLAMA | {"pad_token_id": 0}),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", _LLAMA),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", _LLAMA),
    "roberta": ("RobertaConfig", "RobertaModel", _BERT),
    "smollm3": (
        "SmolLM3Config",
        "SmolLM3ForCausalLM",
        _LLAMA
        | {"no_rope_layers": [1, 0], "pad_token_id": 0, "eos_token_id": 1}
        | {"bos_token_id": 2},
    ),
    "stablelm": ("StableLmConfig", "StableLmForCausalLM", _BERT | _PARTIAL | _KEYS),
    "t5": ("T5Config", "T5ForConditionalGeneration", _T5),
    "vit": ("ViTConfig", "ViTModel", _VIT),
    "vit-classifier": ("ViTConfig", "ViTForImageClassification", _VIT | {"num_labels": 5}),
    "whisper": (
        "WhisperConfig",
        "WhisperForConditionalGeneration",
        _BART
        | {"num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 64}
        | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3},
    ),
}

MODELS = FAMILIES | COUSINS


def far_from_zero(model: Any) -> Any:
    """The model with new matrices, all their entries of a size that matters."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=1.5 / parameter.shape[-1] ** 0.5)
    return model


def small_model(family: str, **changes: Any) -> Any:
    """A model whose every parameter, biases included, is far from its usual initial value."""
    config_name, model_name, options = MODELS[family]
    config = getattr(transformers, config_name)(**options | changes)
    model = getattr(transformers, model_name)(config).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in (model._keys_to_ignore_on_save or ()):  # Marian's positions, never saved
                continue
            noise = torch.randn(parameter.shape, generator=generator)
            scale = 1.5 / parameter.shape[-1] ** 0.5 if parameter.ndim > 1 else 0.3
            norm = parameter.ndim == 1 and "norm" in name.lower() and name.endswith("weight")
            parameter.copy_(noise * scale + (1.0 if norm else 0.0))
    return model


def small_material(model: Any, seed: int = 0) -> Material:
    generator = torch.Generator().manual_seed(seed)
    batches = []
    for length in (16, 24, 32, 16, 24, 32, 16, 24, 32, 16):
        ids = torch.randint(4, 98, (4, length), generator=generator)
        noise = torch.randn(4, 3, 16, 16, generator=generator)
        reads = family_of(model).reads
        if reads == "images":
            batches.append({"pixel_values": noise})
        elif reads == "text pairs":
            batches.append({"input_ids": ids, "decoder_input_ids": ids.flip(1)[:, :12]})
        elif reads in ("sound", "batches"):
            batches.append(_other_inputs(model.config.model_type, ids, noise))
        else:
            batches.append({"input_ids": ids})
    return Material(batches[:8], batches[8:], "random tokens")


def _other_inputs(kind: str, ids: torch.Tensor, noise: torch.Tensor) -> dict[str, torch.Tensor]:
    """Of models that read neither text nor images alone."""
    if kind == "whisper":
        return {
            "input_features": noise.flatten(1)[:, :256].view(4, 8, 32),
            "decoder_input_ids": ids,
        }
    if kind == "audio-spectrogram-transformer":
        return {"input_values": noise.flatten(1)[:, :128].view(4, 16, 8)}
    if kind in ("wav2vec2", "hubert"):
        return {"input_values": noise.flatten(1)}
    if kind == "siglip2":
        patches = {"pixel_values": noise.view(4, 16, 48)}
        patches |= {"pixel_attention_mask": torch.ones(4, 16, dtype=torch.long)}
        return patches | {"spatial_shapes": torch.full((4, 2), 4), "input_ids": ids}
    return {"input_ids": ids, "pixel_values": noise}


class Measured(NamedTuple):
    """A small model, its material and what measuring it found; tests leave all of it as it is."""

    model: Any
    material: Material
    measurement: Measurement


@cache
def measured(family: str) -> Measured:
    """Measured once for all tests."""
    model = small_model(family)
    material = small_material(model)
    return Measured(model, material, measure_model(model, material))


def shrunk(
    model: Any,
    material: Material,
    counts: str,
    fraction: float,
    measurement: Measurement | None = None,
) -> Compressed:
    """The model at a fraction of its "parameters" or of its "cache", which encoders have too."""
    measurement = measurement or measure_model(model, material)
    plan = make_plan(measurement, Budget(fraction, counts))
    return compress(model, text=material, plan=plan, measurement=measurement, time_it=False)


def word_tokenizer() -> Any:
    """A tokenizer of whole words, most of them unknown."""
    words = sorted(set(packaged_text("held_out").split()))[:90]
    vocabulary = {"[UNK]": 0, "[PAD]": 1} | {word: i + 2 for i, word in enumerate(words)}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="[UNK]", pad_token="[PAD]"
    )


def common_words() -> Any:
    """A tokenizer that knows the ninety most common words, and a mask."""
    words = [word for word, _ in Counter(packaged_text("held_out").split()).most_common(90)]
    known = {"[UNK]": 0, "[PAD]": 1, "[MASK]": 2} | {word: i + 3 for i, word in enumerate(words)}
    core = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="[PAD]", mask_token="[MASK]"
    )
