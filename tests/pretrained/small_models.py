"""Small random models of every family, and random calibration data for them."""

from typing import Any

import torch
import transformers
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
from headwise.pretrained.text.calibration import default_text

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

FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertConfig", "BertModel", _BERT),
    "bert-masked": ("BertConfig", "BertForMaskedLM", _BERT),
    "roberta": ("RobertaConfig", "RobertaModel", _BERT),
    "distilbert": (
        "DistilBertConfig",
        "DistilBertModel",
        {
            "dim": 32,
            "n_layers": 2,
            "n_heads": 4,
            "hidden_dim": 48,
            "vocab_size": 99,
            "max_position_embeddings": 64,
        },
    ),
    "gpt2": (
        "GPT2Config",
        "GPT2LMHeadModel",
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 99, "n_positions": 64},
    ),
    "llama": ("LlamaConfig", "LlamaForCausalLM", _LLAMA),
    "llama-biased": ("LlamaConfig", "LlamaForCausalLM", _LLAMA | {"attention_bias": True}),
    "mistral": ("MistralConfig", "MistralForCausalLM", _LLAMA | {"sliding_window": 8}),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", _LLAMA),
    "vit": (
        "ViTConfig",
        "ViTModel",
        {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 48,
        }
        | {"image_size": 16, "patch_size": 4},
    ),
    "vit-classifier": (
        "ViTConfig",
        "ViTForImageClassification",
        {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 48,
        }
        | {"image_size": 16, "patch_size": 4, "num_labels": 5},
    ),
}


def small_model(family: str, **changes: Any) -> Any:
    """A model whose every parameter, biases included, is far from its usual initial value."""
    config_name, model_name, options = FAMILIES[family]
    config = getattr(transformers, config_name)(**options | changes)
    model = getattr(transformers, model_name)(config).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            scale = 1.5 / parameter.shape[-1] ** 0.5 if parameter.ndim > 1 else 0.3
            norm = parameter.ndim == 1 and "norm" in name.lower() and name.endswith("weight")
            parameter.copy_(noise * scale + (1.0 if norm else 0.0))
    return model


def small_material(model: Any, seed: int = 0) -> Material:
    generator = torch.Generator().manual_seed(seed)
    if model.config.model_type == "vit":
        batches = [
            {"pixel_values": torch.randn(4, 3, 16, 16, generator=generator)} for _ in range(10)
        ]
    else:
        batches = [
            {"input_ids": torch.randint(4, 99, (4, length), generator=generator)}
            for length in (16, 24, 32, 16, 24, 32, 16, 24, 32, 16)
        ]
    return Material(batches[:8], batches[8:], "random tokens")


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
    words = sorted(set(default_text().split()))[:90]
    vocabulary = {"[UNK]": 0, "[PAD]": 1} | {word: i + 2 for i, word in enumerate(words)}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="[UNK]", pad_token="[PAD]"
    )
