"""Shapes of odd checkpoints: changes of a family's configuration, by what it calls its sizes."""

import random
from typing import Any


def odd_shape(options: dict[str, Any], family: str, rng: random.Random) -> dict[str, Any]:
    """Numbers of heads, sizes and layers that divide one another as little as they may."""
    layers = rng.choice((1, 2, 3, 5))
    heads = rng.choice((1, 3, 5, 7))
    if "num_key_value_heads" in options:
        changes = _grouped(family, options, rng)
    elif "rotary_dim" in options:  # CodeGen's heads come in fours
        return {"n_head": 4, "n_embd": 4 * rng.choice((4, 8, 12)), "n_layer": layers}
    elif "n_head" in options:
        width = {"bloom": "hidden_size"}.get(family, "n_embd")
        return {"n_head": heads, width: heads * rng.choice((3, 5, 8, 11)), "n_layer": layers}
    elif "d_kv" in options:
        heads = rng.choice((1, 3, 5))
        return {"num_heads": heads, "d_kv": rng.choice((3, 5, 8)), "num_layers": min(layers, 3)}
    elif "encoder_attention_heads" in options:
        pair = {"encoder_attention_heads": rng.choice((1, 3, 5)), "d_model": 30}
        return pair | {"decoder_attention_heads": rng.choice((1, 2, 5))}
    elif "attention_heads" in options:
        width = heads * rng.choice((4, 6, 10))
        return {"attention_heads": heads, "d_model": width, "num_layers": layers}
    elif "attention_types" in options:
        return {"num_heads": heads, "hidden_size": heads * rng.choice((3, 4, 7, 11))}
    elif family == "distilbert":
        heads = rng.choice((1, 3, 5))
        return {"n_heads": heads, "dim": heads * rng.choice((4, 7, 9)), "n_layers": layers}
    else:
        even = 4 if family in ("gpt-neox", "modernbert", "esm", "dinov3") else 1
        width = heads * even * rng.choice((2, 3)) if even > 1 else heads * rng.choice((3, 4, 7, 11))
        changes = {"num_attention_heads": heads, "hidden_size": width}
        if family == "opt":
            changes["word_embed_proj_dim"] = width
        if "projection_size" in options:
            changes["projection_size"] = width
    by_layer = {"no_rope_layers", "layer_types"}
    return changes if by_layer & options.keys() else changes | {"num_hidden_layers": layers}


def _grouped(family: str, options: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Query heads in groups; where half of a head turns, a quarter of it is a whole number."""
    heads, keys = rng.choice(((9, 3), (5, 5), (7, 1), (6, 2), (1, 1), (3, 3), (8, 4)))
    changes = {"num_attention_heads": heads, "num_key_value_heads": keys}
    if "num_kv_heads" in options:
        changes["num_kv_heads"] = keys
    half = family in ("glm", "glm4", "nemotron")
    if "head_dim" in options and family != "helium":
        sizes = (4, 8, 12, 16, 20) if half else (2, 4, 6, 8, 10, 16, 20)
        changes |= {"head_dim": rng.choice(sizes), "hidden_size": heads * rng.choice((4, 6, 10))}
    else:
        size = rng.choice((4, 8, 12))
        changes["hidden_size"] = heads * size
        if "head_dim" in options:
            changes["head_dim"] = size
    if family == "llama-biased" or family == "llama":
        changes["tie_word_embeddings"] = rng.random() < 0.5
    return changes
