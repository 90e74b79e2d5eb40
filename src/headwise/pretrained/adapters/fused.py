"""One module puts out queries, keys and values: Phi-3, GPT-NeoX (Pythia), ModernBERT, Falcon,
GPT-BigCode (StarCoder), BLOOM.
"""

from typing import Any

from torch import nn

from headwise.core.errors import require
from headwise.pretrained.adapters.base import AttentionSite, Projection, modules_named


def phi3_sites(model: nn.Module) -> list[AttentionSite]:
    """Phi-3: all queries, then all keys, then all values; RoPE on a part of each head or all."""
    config: Any = model.config
    share = config.rope_parameters.get("partial_rotary_factor", 1.0)
    sites = []
    for index, (path, module) in enumerate(modules_named(model, "Phi3Attention")):
        dim = module.head_dim
        keys = config.num_attention_heads * dim
        values = keys + config.num_key_value_heads * dim
        site = _site(
            config,
            module,
            projections=_side_by_side(f"{path}.qkv_proj", keys, values),
            path=path,
            output=f"{path}.o_proj",
            kv_heads=config.num_key_value_heads,
            causal=True,
            layer_index=index,
            rotary_dim=int(dim * share),
            sliding_window=config.sliding_window,
        )
        sites.append(site)
    return sites


def gpt_neox_sites(model: nn.Module) -> list[AttentionSite]:
    """GPT-NeoX: head by head its query, key and value; RoPE on a part of each head."""
    sites = []
    for index, (path, module) in enumerate(modules_named(model, "GPTNeoXAttention")):
        parts = _by_group(f"{path}.query_key_value", module.head_size, 1)
        rest = {"causal": True, "layer_index": index, "rotary_dim": module.rotary_ndims}
        out = f"{path}.dense"
        sites.append(_site(model.config, module, parts, path=path, output=out, **rest))
    return sites


def falcon_sites(model: nn.Module) -> list[AttentionSite]:
    """Falcon: by group of query heads, or all queries and then one key and one value."""
    config: Any = model.config
    require(
        not config.alibi,
        "Falcon with ALiBi is not supported: its biases come mixed into the mask; Falcon with RoPE "
        "is",
    )
    sites = []
    for path, module in modules_named(model, "FalconAttention"):
        fused, dim = f"{path}.query_key_value", module.head_dim
        if config.new_decoder_architecture:
            keys, one = config.num_kv_heads, False
        else:
            keys, one = (1 if config.multi_query else module.num_heads), config.multi_query
        width = config.hidden_size
        parts = (
            _side_by_side(fused, width, width + dim)
            if one
            else _by_group(fused, dim, module.num_heads // keys)
        )
        rest = {"causal": True, "layer_index": module.layer_idx, "kv_heads": keys}
        # Without ALiBi Falcon does not drop attention weights out.
        rest |= {"path": path, "output": f"{path}.dense", "attention_dropout": 0.0}
        sites.append(_site(config, module, parts, **rest))
    return sites


def gpt_bigcode_sites(model: nn.Module) -> list[AttentionSite]:
    """GPT-BigCode: all queries and then one key and one value, or head by head."""
    config: Any = model.config
    require(
        not config.add_cross_attention,
        "GPT-BigCode with cross-attention is not supported; the plain decoder is",
    )
    sites = []
    for path, module in modules_named(model, "GPTBigCodeAttention"):
        fused, dim, width = f"{path}.c_attn", module.head_dim, module.embed_dim
        parts = (
            _side_by_side(fused, width, width + dim)
            if module.multi_query
            else _by_group(fused, dim, 1)
        )
        rest = {"path": path, "output": f"{path}.c_proj", "rotary": False, "causal": True}
        rest |= {"kv_heads": module.kv_heads, "layer_index": module.layer_idx}
        rest |= {"attention_dropout": module.attn_pdrop}
        rest |= {"output_dropout": module.resid_dropout.p}
        sites.append(_site(config, module, parts, **rest))
    return sites


def bloom_sites(model: nn.Module) -> list[AttentionSite]:
    """BLOOM: head by head its query, key and value; ALiBi."""
    config: Any = model.config
    require(
        config.pretraining_tp <= 1 or not config.slow_but_exact,
        "BLOOM with slow_but_exact is not supported; set it to false",
    )
    sites = []
    for path, module in modules_named(model, "BloomAttention"):
        parts = _by_group(f"{path}.query_key_value", module.head_dim, 1)
        rest = {"path": path, "output": f"{path}.dense", "rotary": False, "causal": True}
        rest |= {"layer_index": module.layer_idx, "position_bias": True}
        rest |= {"attention_dropout": module.attention_dropout.p}
        rest |= {"output_dropout": module.hidden_dropout}
        sites.append(_site(config, module, parts, **rest))
    return sites


def modernbert_sites(model: nn.Module) -> list[AttentionSite]:
    """ModernBERT: an encoder with RoPE, most of its layers within a window."""
    config: Any = model.config
    width = config.hidden_size
    return [
        _site(
            config,
            module,
            _side_by_side(f"{path}.Wqkv", width, 2 * width),
            path=path,
            output=f"{path}.Wo",
            causal=False,
            layer_index=index,
            output_dropout=config.attention_dropout,
            sliding_window=module.sliding_window,
        )
        for index, (path, module) in enumerate(modules_named(model, "ModernBertAttention"))
    ]


def _by_group(fused: str, dim: int, queries: int) -> list[Projection]:
    """So many queries, their key and their value, before those of the next group."""
    bounds = [(0, queries), (queries, queries + 1), (queries + 1, queries + 2)]
    period = (queries + 2) * dim
    return [Projection(fused, a * dim, b * dim, period=period) for a, b in bounds]


def _side_by_side(fused: str, keys: int, values: int) -> list[Projection]:
    """All queries, then from column `keys` all keys, then from column `values` all values."""
    return [Projection(fused, 0, keys), Projection(fused, keys, values), Projection(fused, values)]


def _site(config: Any, module: Any, projections: list[Projection], **rest: Any) -> AttentionSite:
    """What the configuration and the module say in all of these families."""
    dim = module.head_size if hasattr(module, "head_size") else module.head_dim
    known = {
        **dict(zip(("query", "key", "value"), projections, strict=True)),
        "heads": config.num_attention_heads,
        "kv_heads": config.num_attention_heads,
        "head_dim": dim,
        "hidden": config.hidden_size,
        "scaling": getattr(module, "scaling", dim**-0.5),
        "attention_dropout": getattr(module, "attention_dropout", 0.0),
        "rotary": True,
    }
    return AttentionSite(**(known | rest))
