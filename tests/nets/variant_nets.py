"""Small networks of every variant of attention, and what they compute by the variants' formulas."""

from dataclasses import replace
from math import log, sqrt

import numpy as np
import torch
from torch import Tensor

from headwise.nets import AttentionShape, DecoderShape, PooledShape
from headwise.nets.variants import find_variant

HEADS, RANK, SIZE, LENGTH = 4, 6, 5, 9
LAYER = AttentionShape(heads=HEADS, qk_dim=RANK, v_dim=SIZE)
EVERY = [
    "plain", "grouped:2", "grouped:1", "talking", "banded:2", "banded", "window:3", "top-k:3",
    "mixture:1:2", "mixture:0:2", "gated", "differential", "linear",
]  # fmt: skip


def class_token_net(variant: str, seed: int = 0) -> tuple[PooledShape, dict[str, Tensor]]:
    """A network with dimensions that differ from each other, and weights that all matter."""
    plain = PooledShape.of_heads(token_dim=3, heads=HEADS, width=7)
    pooling = replace(plain.pooling, layer=LAYER, variant=variant)
    shape = replace(plain, embed_dim=11, pooling=pooling)
    return shape, drawn(shape.parameter_shapes(), seed)


def drawn(shapes: dict[str, tuple[int, ...]], seed: int) -> dict[str, Tensor]:
    """Gaussian weights with an axis for one member, in double precision."""
    rng = np.random.default_rng(seed)
    return {
        name: torch.from_numpy(0.7 * rng.standard_normal((1, *size)))
        for name, size in shapes.items()
    }


def decoder(variant: str, **more: object) -> DecoderShape:
    return DecoderShape(
        vocabulary=0, token_dim=3, outputs=2, width=12, layers=(LAYER, LAYER), ffn=10,
        length=LENGTH + 2, attention=variant, **more,
    )  # fmt: skip


def reduced(params: dict[str, Tensor], names: list[str]) -> dict[str, Tensor]:
    """The parameters at which a variant is plain attention with the maps that plain heads have."""
    params = dict(params)
    for name in names:
        for square in ("talk_scores", "talk_weights"):
            if f"{name}.{square}" in params:
                heads = params[f"{name}.{square}"].shape[1]
                params[f"{name}.{square}"] = torch.eye(heads).double()[None]
        for router in ("route", "share", "balance"):
            if f"{name}.{router}.weight" in params:
                params[f"{name}.{router}.weight"] *= 0
        if f"{name}.lambda" in params:  # λ = e^0 − e^b + λ_init = 0
            start = 0.8 - 0.6 * np.exp(-0.3 * int(name.split(".")[1]))
            vectors = torch.zeros_like(params[f"{name}.lambda"])
            vectors[0, 2, 0], vectors[0, 3, 0] = log(1 + start), 1.0
            params[f"{name}.lambda"] = vectors
    return params


def _up(vector: Tensor) -> Tensor:
    """elu + 1."""
    return torch.where(vector > 0, vector + 1, vector.exp())


def by_the_formula(
    variant: str, params: dict[str, Tensor], name: str, stream: Tensor, asking: Tensor,
    distance: Tensor, longest: int,
) -> Tensor:  # fmt: skip
    """The heads' outputs for one sequence (tokens, width), head by head and query by query.

    Written from the papers' formulas: `params` are one member's; keys at a negative distance are
    not there for causal attention (NaN), and the class token's own distance is −1.
    """
    kind = find_variant(variant)
    maps = dict(zip(("query", "key", "value"), kind.maps(LAYER), strict=True))

    def project(part: str, tokens: Tensor) -> list[Tensor]:
        rows = {"query": RANK, "key": RANK, "value": SIZE}[part]
        if f"{name}.qkv.weight" in params:
            starts = [0, maps["query"] * RANK, (maps["query"] + maps["key"]) * RANK]
            start = starts[("query", "key", "value").index(part)]
            whole = params[f"{name}.qkv.weight"][start : start + maps[part] * rows]
            made = tokens @ whole.T
        else:
            made = tokens @ params[f"{name}.{part}.weight"].T + params[f"{name}.{part}.bias"]
        return [made[:, i * rows : (i + 1) * rows] for i in range(maps[part])]

    queries, keys, values = (
        project("query", asking),
        project("key", stream),
        project("value", stream),
    )
    title, outputs = variant.split(":")[0], torch.zeros(HEADS, len(asking), SIZE).double()
    for place in range(len(asking)):
        far = distance[place]
        raw = []
        for i, query in enumerate(queries):
            key = keys[i * len(keys) // len(queries)]
            scores = torch.stack([query[place] @ k for k in key]) / sqrt(RANK)
            if title == "linear":
                scores = torch.stack([_up(query[place] / sqrt(RANK)) @ _up(k) for k in key])
            raw.append(scores)
        if title == "talking":
            mix = params[f"{name}.talk_scores"]
            raw = [sum(mix[i, j] * raw[j] for j in range(HEADS)) for i in range(HEADS)]
        weights = []
        for i, scores in enumerate(raw):
            seen = ~torch.isnan(far)
            if title == "banded":
                bands = kind.bands or len(raw)
                low, high = (b * longest / bands for b in (i % bands, i % bands + 1))
                seen &= (far == -1) | ((low <= far) & (far < high))
            if title == "window":
                seen &= far < kind.size
            if title == "top-k" and int(seen.sum()) > kind.kept:
                least = sorted(float(s) for s, s_in in zip(scores, seen, strict=True) if s_in)
                seen &= scores >= least[-kind.kept]
            shares = (scores if title == "linear" else scores.exp()) * seen
            weights.append(shares / shares.sum() if bool(seen.any()) else shares * 0)
        if title == "talking":
            mix = params[f"{name}.talk_weights"]
            weights = [sum(mix[i, j] * weights[j] for j in range(HEADS)) for i in range(HEADS)]
        if title == "differential":
            q1, k1, q2, k2 = params[f"{name}.lambda"]
            depth = int(name.split(".")[1]) + 1
            factor = (q1 @ k1).exp() - (q2 @ k2).exp() + 0.8 - 0.6 * np.exp(-0.3 * (depth - 1))
            weights = [weights[i] - factor * weights[i + HEADS] for i in range(HEADS)]
        gates = torch.ones(HEADS).double()
        if title == "mixture":
            chances = (params[f"{name}.route.weight"] @ asking[place]).softmax(0)
            best = set(chances.topk(kind.routed).indices.tolist())
            total = sum(chances[i] for i in best)
            routed = [kind.routed * chances[i] / total * (i in best) for i in range(len(chances))]
            gates = torch.stack([torch.as_tensor(each) for each in routed])
            if kind.shared:
                shares = (params[f"{name}.share.weight"] @ asking[place]).softmax(0)
                first, second = 2 * (params[f"{name}.balance.weight"] @ asking[place]).softmax(0)
                gates = torch.cat([first * kind.shared * shares, second * gates])
        for i in range(HEADS):
            value = values[i * len(values) // HEADS]
            made = gates[i] * sum(w * v for w, v in zip(weights[i], value, strict=True))
            if title == "gated":
                rows = params[f"{name}.gate.weight"][i * SIZE : (i + 1) * SIZE]
                made = made * (1 / (1 + (-(rows @ asking[place])).exp()))
            outputs[i, place] = made
    return outputs
