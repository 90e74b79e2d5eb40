"""Classes and configurations beside each family's usual ones: heads, biases, windows, positions.

`CLASSES` are (family, class or None for the family's usual one, changes of its configuration); see
`odd_models --classes`.
"""

from typing import Any

from odd_checkpoints import WEIGHTS, Case

_ROPE = {"rope_theta": 1e4}
_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16} | _ROPE
_LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
_LLAMA3 |= {"original_max_position_embeddings": 32} | _ROPE
_QUARTER = {"rope_type": "default", "partial_rotary_factor": 0.25} | _ROPE
_EIGHT = {"num_attention_heads": 8, "num_key_value_heads": 1}
_LABELS = {"num_labels": 3}
_SEVERAL = {"problem_type": "multi_label_classification"} | _LABELS

CLASSES: tuple[tuple[str, str | None, dict[str, Any]], ...] = (
    ("llama", None, {"rope_parameters": _YARN, "hidden_size": 40} | _EIGHT),
    ("llama", None, {"rope_parameters": _LLAMA3, "head_dim": 4, "tie_word_embeddings": True}),
    ("llama", "LlamaForTokenClassification", _LABELS),
    ("llama", "LlamaForQuestionAnswering", {}),
    ("llama", "LlamaForSequenceClassification", {"num_labels": 1, "attention_bias": True}),
    ("llama", "LlamaModel", {"mlp_bias": True}),
    ("mistral", "MistralForSequenceClassification", _SEVERAL),
    ("mistral", None, {"sliding_window": None, "num_key_value_heads": 9, "head_dim": 12}),
    ("qwen2", None, {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1}),
    ("qwen3", "Qwen3Model", {"num_attention_heads": 6, "num_key_value_heads": 1, "head_dim": 16}),
    ("qwen3", None, {"attention_bias": True, "tie_word_embeddings": True}),
    ("gemma2", "Gemma2ForSequenceClassification", {"attn_logit_softcapping": None} | _LABELS),
    ("gemma2", None, {"query_pre_attn_scalar": 30, "sliding_window": 4, "attention_bias": True}),
    ("gemma3", "Gemma3TextModel", {"sliding_window": 5}),
    ("olmo2", None, {"num_attention_heads": 4, "num_key_value_heads": 2, "attention_bias": True}),
    ("smollm3", None, {"no_rope_layers": [0, 0], "num_key_value_heads": 1}),
    ("mixtral", "MixtralForTokenClassification", {"sliding_window": 7} | _LABELS),
    ("phi", None, {"rope_parameters": _QUARTER, "num_key_value_heads": 4}),
    ("phi", "PhiForSequenceClassification", {"num_labels": 1}),
    ("phi", None, {"qk_layernorm": True}),
    ("phi3", None, {"rope_parameters": {**_QUARTER, "partial_rotary_factor": 0.5}}),
    ("stablelm", None, {"use_qkv_bias": True, "use_parallel_residual": True}),
    ("stablelm", None, {"qk_layernorm": True}),
    ("gpt-neox", None, {"use_parallel_residual": False, "attention_bias": False}),
    ("gpt-neox", "GPTNeoXForQuestionAnswering", {}),
    ("gpt2", "GPT2ForSequenceClassification", _LABELS),
    ("gpt2", None, {"scale_attn_by_inverse_layer_idx": True, "reorder_and_upcast_attn": True}),
    ("gpt2", "GPT2DoubleHeadsModel", {}),
    ("opt", None, {"do_layer_norm_before": False, "word_embed_proj_dim": 16}),
    ("opt", "OPTForSequenceClassification", {"enable_bias": False} | _LABELS),
    ("bert", "BertLMHeadModel", {"is_decoder": True}),
    ("bert", "BertForNextSentencePrediction", {}),
    ("bert", "BertForMultipleChoice", {}),
    ("bert", "BertForPreTraining", {}),
    ("bert", "BertForSequenceClassification", _SEVERAL),
    ("roberta", "RobertaForTokenClassification", _LABELS),
    ("roberta", "RobertaForCausalLM", {"is_decoder": True}),
    ("electra", "ElectraForPreTraining", {}),
    ("electra", "ElectraForQuestionAnswering", {"num_labels": 2}),
    ("modernbert", "ModernBertForSequenceClassification", {"classifier_pooling": "mean"} | _LABELS),
    ("modernbert", "ModernBertForTokenClassification", {"attention_bias": True} | _LABELS),
    ("mpnet", "MPNetForSequenceClassification", {"num_labels": 1}),
    ("distilbert", "DistilBertForTokenClassification", _LABELS),
    ("t5", "T5EncoderModel", {"feed_forward_proj": "gated-gelu"}),
    ("t5", None, {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "d_kv": 5}),
    ("t5", "T5ForSequenceClassification", {"eos_token_id": 3} | _LABELS),
    ("bart", "BartForCausalLM", {"is_encoder_decoder": False}),
    ("bart", "BartModel", {"encoder_attention_heads": 8, "decoder_attention_heads": 1}),
    ("bart", "BartForSequenceClassification", {"eos_token_id": 3} | _LABELS),
    ("vit", None, {"qkv_bias": False}),
    ("vit", "ViTForMaskedImageModeling", {}),
    ("dinov2", "Dinov2ForImageClassification", {"use_swiglu_ffn": True} | _LABELS),
    ("deit", "DeiTForImageClassificationWithTeacher", _LABELS),
    ("clip-vision", "CLIPVisionModelWithProjection", {}),
    ("clip-text", "CLIPTextModelWithProjection", {}),
)


def listed(number: int) -> Case:
    """The number-th of them, with the weights whose turn it is."""
    family, head, changes = CLASSES[number]
    weights = [kind for kind in WEIGHTS if kind not in ("nan", "infinite")]
    return Case(
        number=number,
        family=family,
        head=head,
        changes=tuple(sorted(changes.items())),
        weights=weights[number % len(weights)],
        dtype="float32",
        shards=False,
    )
