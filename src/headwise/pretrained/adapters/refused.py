"""Families that people have and that no adapter can describe exactly, each with the reason."""

_LATENT = "its queries, keys and values come out of shared latent vectors through norms (latent "
_LATENT += "attention), which four linear maps a layer cannot say"
_SINKS = "every head has a learnt sink beside its scores, so that attention weights do not sum to "
_SINKS += "one, on which the reduction of values relies"
_STATES = "most of its layers are recurrent and not attention"
_WINDOWS = "its attention is within windows of an image that move and merge from layer to layer; a "
_WINDOWS += "site describes one sequence"
_DISENTANGLED = (
    "its scores have terms between contents and positions (disentangled attention), for "
)
_DISENTANGLED += "which keys and queries are projected twice"
_SPARSE = "its attention is sparse by blocks or has global tokens with projections of their own"
_MASKED = "it masks patches at random in every run, so that two runs cannot be compared"
_ONE_MATRIX = "its checkpoints hold queries, keys and values as one matrix that transformers takes "
_ONE_MATRIX += "apart while loading, which it cannot do with reduced ones"
_TOWERS = (
    "it is a model of text and one of images in one checkpoint; headwise opens its text model "
)
_TOWERS += "alone: save that as a checkpoint of its own first"
_GATED = "what a head's distances add to its scores depends on its input through a gate"

REFUSED: dict[str, str] = {
    "albert": "all layers are one module, which adds its input and normalises inside, so that "
    "headwise can neither give layers sizes of their own nor replace the attention alone",
    "big_bird": _SPARSE,
    "bitnet": "it normalises the heads' outputs together before they are mixed",
    "deberta": _DISENTANGLED,
    "deberta-v2": _DISENTANGLED,
    "deepseek_v2": _LATENT,
    "deepseek_v3": _LATENT,
    "falcon_mamba": _STATES,
    "gpt_oss": _SINKS,
    "gemma3": _TOWERS,
    "gte": _ONE_MATRIX,
    "jamba": _STATES,
    "led": _SPARSE,
    "llava": _TOWERS,
    "longformer": _SPARSE,
    "longt5": _SPARSE,
    "mamba": _STATES,
    "mamba2": _STATES,
    "mpt": "its mask says what to hide where all others say what to see, and it may clip what its "
    "projections put out",
    "nomic_bert": _ONE_MATRIX,
    "persimmon": "it normalises queries and keys before turning a part of them",
    "qwen2_vl": _TOWERS,
    "swin": _WINDOWS,
    "swinv2": _WINDOWS,
    "vit_mae": _MASKED,
    "wavlm": _GATED,
    "xlnet": "its scores have a term of their own for positions, with projections of their own",
}
"""By `model_type`; what `not supported:` is followed by."""
