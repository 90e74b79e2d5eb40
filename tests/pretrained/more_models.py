"""Small models of the families that share an adapter with one of `small_models.FAMILIES`."""

from typing import Any

_LLAMA = {"hidden_size": 24, "num_hidden_layers": 1, "intermediate_size": 16, "vocab_size": 99}
_LLAMA |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
_LLAMA |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_WIDE = _LLAMA | {"head_dim": 8}
_EVEN = _LLAMA | {"hidden_size": 32}
_TWO = {"num_hidden_layers": 2}
_TYPES = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8} | _TWO
_FULL = {"layer_types": ["full_attention"] * 2} | _TWO
_EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16, "num_experts": 3}
_LOCAL = {"num_experts_per_tok": 2, "num_local_experts": 3}
_HALF = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
_BERT = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 99}
_BERT |= {"intermediate_size": 16, "max_position_embeddings": 64, "pad_token_id": 0}
_BLOOM = {"hidden_size": 24, "n_layer": 2, "n_head": 4, "vocab_size": 99}
_GPTJ = {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_inner": 16}
_GPTJ |= {"vocab_size": 99, "n_positions": 64}
_BART = {"d_model": 24, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4}
_BART |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
_BART |= {"vocab_size": 99, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1}
_BART |= {"eos_token_id": 2, "decoder_start_token_id": 2}
_T5 = {"d_model": 24, "d_kv": 6, "d_ff": 16, "num_layers": 2, "num_heads": 4, "vocab_size": 99}
_T5 |= {"decoder_start_token_id": 0}
_VIT = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4}
_VIT |= {"intermediate_size": 16, "image_size": 16, "patch_size": 4}
_TEXT = _BERT | {"projection_size": 24}
_SOUND = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
_SOUND |= {"intermediate_size": 16, "conv_dim": [8], "conv_stride": [8], "conv_kernel": [8]}
_SOUND |= {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2}
_SOUND |= {"mask_time_prob": 0.0, "layerdrop": 0.0}

COUSINS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "apertus": ("ApertusConfig", "ApertusForCausalLM", _WIDE),
    "arcee": ("ArceeConfig", "ArceeForCausalLM", _WIDE),
    "ast": (
        "ASTConfig",
        "ASTForAudioClassification",
        _VIT | {"max_length": 16, "num_mel_bins": 8, "frequency_stride": 4, "time_stride": 4},
    ),
    "biogpt": ("BioGptConfig", "BioGptForCausalLM", _BERT),
    "blenderbot": ("BlenderbotConfig", "BlenderbotForConditionalGeneration", _BART),
    "blenderbot-small": (
        "BlenderbotSmallConfig",
        "BlenderbotSmallForConditionalGeneration",
        _BART,
    ),
    "bloom": ("BloomConfig", "BloomForCausalLM", _BLOOM),
    "camembert": ("CamembertConfig", "CamembertForMaskedLM", _BERT),
    "codegen": ("CodeGenConfig", "CodeGenForCausalLM", _GPTJ),
    "cohere": ("CohereConfig", "CohereForCausalLM", _WIDE),
    "cohere2": ("Cohere2Config", "Cohere2ForCausalLM", _WIDE | _TYPES),
    "data2vec-text": ("Data2VecTextConfig", "Data2VecTextModel", _BERT),
    "dinov2-registers": ("Dinov2WithRegistersConfig", "Dinov2WithRegistersModel", _VIT),
    "dinov3": ("DINOv3ViTConfig", "DINOv3ViTModel", _VIT | {"hidden_size": 32}),
    "ernie": ("ErnieConfig", "ErnieModel", _BERT),
    "ernie4.5": ("Ernie4_5Config", "Ernie4_5ForCausalLM", _WIDE),
    "esm": (
        "EsmConfig",
        "EsmForMaskedLM",
        _BERT | {"position_embedding_type": "rotary", "mask_token_id": 3, "hidden_size": 32},
    ),
    "eurobert": ("EuroBertConfig", "EuroBertForMaskedLM", _WIDE),
    "exaone4": ("Exaone4Config", "Exaone4ForCausalLM", _EVEN | {"sliding_window": None, **_FULL}),
    "falcon": (
        "FalconConfig",
        "FalconForCausalLM",
        _EVEN | _TWO | {"num_kv_heads": 2, "new_decoder_architecture": True, "alibi": False},
    ),
    "falcon-one-key": (
        "FalconConfig",
        "FalconForCausalLM",
        _EVEN | _TWO | {"multi_query": True, "alibi": False},
    ),
    "falcon-by-head": (
        "FalconConfig",
        "FalconForCausalLM",
        _EVEN | _TWO | {"multi_query": False, "alibi": False, "bias": True},
    ),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", _WIDE | _TWO),
    "glm": ("GlmConfig", "GlmForCausalLM", _WIDE | {"attention_bias": True}),
    "glm4": ("Glm4Config", "Glm4ForCausalLM", _WIDE),
    "gpt-bigcode": ("GPTBigCodeConfig", "GPTBigCodeForCausalLM", _BERT | _TWO | {"n_inner": 16}),
    "gpt-bigcode-by-head": (
        "GPTBigCodeConfig",
        "GPTBigCodeForCausalLM",
        _BERT | _TWO | {"n_inner": 16, "multi_query": False},
    ),
    "gpt-neo": (
        "GPTNeoConfig",
        "GPTNeoForCausalLM",
        {"hidden_size": 24, "num_layers": 2, "num_heads": 4, "intermediate_size": 16}
        | {"vocab_size": 99, "max_position_embeddings": 64, "window_size": 8}
        | {"attention_types": [[["global", "local"], 1]]},
    ),
    "gptj": ("GPTJConfig", "GPTJForCausalLM", _GPTJ),
    "granite": ("GraniteConfig", "GraniteForCausalLM", _LLAMA | {"attention_multiplier": 0.3}),
    "granitemoe": (
        "GraniteMoeConfig",
        "GraniteMoeForCausalLM",
        _LLAMA | _TWO | _LOCAL | {"attention_multiplier": 0.3},
    ),
    "helium": ("HeliumConfig", "HeliumForCausalLM", _EVEN | {"head_dim": 8}),
    "hubert": ("HubertConfig", "HubertModel", _SOUND),
    "layoutlm": ("LayoutLMConfig", "LayoutLMForTokenClassification", _BERT),
    "m2m-100": ("M2M100Config", "M2M100ForConditionalGeneration", _BART),
    "marian": ("MarianConfig", "MarianMTModel", _BART),
    "mbart": ("MBartConfig", "MBartForConditionalGeneration", _BART),
    "megatron-bert": ("MegatronBertConfig", "MegatronBertModel", _BERT),
    "ministral": ("MinistralConfig", "MinistralForCausalLM", _WIDE | _TYPES),
    "mt5": ("MT5Config", "MT5ForConditionalGeneration", _T5),
    "nemotron": ("NemotronConfig", "NemotronForCausalLM", _WIDE | {"rope_parameters": _HALF}),
    "olmo": ("OlmoConfig", "OlmoForCausalLM", _LLAMA),
    "olmo3": ("Olmo3Config", "Olmo3ForCausalLM", _LLAMA | _TYPES),
    "olmoe": ("OlmoeConfig", "OlmoeForCausalLM", _LLAMA | _EXPERTS),
    "pegasus": ("PegasusConfig", "PegasusForConditionalGeneration", _BART),
    "phimoe": ("PhimoeConfig", "PhimoeForCausalLM", _LLAMA | _LOCAL | {"sliding_window": 8}),
    "plbart": ("PLBartConfig", "PLBartForConditionalGeneration", _BART),
    "qwen2-moe": (
        "Qwen2MoeConfig",
        "Qwen2MoeForCausalLM",
        _LLAMA | _EXPERTS | {"shared_expert_intermediate_size": 16},
    ),
    "qwen3-moe": ("Qwen3MoeConfig", "Qwen3MoeForCausalLM", _WIDE | _EXPERTS),
    "seed-oss": ("SeedOssConfig", "SeedOssForCausalLM", _WIDE | {"attention_bias": True}),
    "siglip": ("SiglipConfig", "SiglipModel", {"text_config": _TEXT, "vision_config": _VIT}),
    "siglip-text": ("SiglipTextConfig", "SiglipTextModel", _TEXT),
    "siglip-vision": ("SiglipVisionConfig", "SiglipVisionModel", _VIT),
    "siglip2": (
        "Siglip2Config",
        "Siglip2Model",
        {"text_config": _TEXT, "vision_config": _VIT | {"num_patches": 16}},
    ),
    "starcoder2": ("Starcoder2Config", "Starcoder2ForCausalLM", _LLAMA | {"sliding_window": 8}),
    "umt5": ("UMT5Config", "UMT5ForConditionalGeneration", _T5),
    "vit-msn": ("ViTMSNConfig", "ViTMSNForImageClassification", _VIT | {"num_labels": 3}),
    "wav2vec2": ("Wav2Vec2Config", "Wav2Vec2ForCTC", _SOUND | {"vocab_size": 12}),
    "xglm": (
        "XGLMConfig",
        "XGLMForCausalLM",
        {"d_model": 24, "num_layers": 2, "attention_heads": 4, "ffn_dim": 16, "vocab_size": 99},
    ),
    "xlm-roberta-xl": ("XLMRobertaXLConfig", "XLMRobertaXLModel", _BERT),
}
