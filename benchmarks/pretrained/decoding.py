"""Tokens a second with a filled cache: stock attention against reduced, side by side.

    python benchmarks/pretrained/decoding.py [--json FILE] [--rounds N]

Speed depends on shapes and not on what weights say, so the models are random ones of two shapes:
SmolLM2-135M's (30 layers × 576, 9 query and 3 key heads of 64) and 8 layers × 1024 with 16 heads.
All layers of the reduced ones have heads half as wide, which is half of the cache, as `--fast`
makes them. A prefill takes 1,024 tokens. One thread, its own CPU time; rounds alternate, medians.
"""

import argparse
import copy
import json
import time
from pathlib import Path
from typing import Any

import torch
import transformers

from headwise.pretrained import attention_sites
from headwise.pretrained.model.apply import install
from headwise.pretrained.model.saving import record_layouts
from headwise.pretrained.plan.shapes import GroupShape, LayerLayout, LayerShape, full_shape
from headwise.pretrained.speed import filled_cache

SHAPES = {
    "SmolLM2-135M": {
        "hidden_size": 576, "num_hidden_layers": 30, "num_attention_heads": 9,
        "num_key_value_heads": 3, "intermediate_size": 1536,
    },
    "8 × 1024": {
        "hidden_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 16,
        "num_key_value_heads": 16, "intermediate_size": 2816,
    },
}  # fmt: skip
PLACES = ((1, 32), (8, 2048), (8, 4096))
BARS = {
    ("SmolLM2-135M", 1, 32): 1 / 1.02, ("SmolLM2-135M", 8, 2048): 1.35,
    ("SmolLM2-135M", 8, 4096): 2.0, ("8 × 1024", 1, 32): 1 / 1.02,
    ("8 × 1024", 8, 2048): 2.0, ("8 × 1024", 8, 4096): 2.0,
}  # fmt: skip


def halved(model: Any) -> Any:
    """The model with all heads half as wide, its weights random."""
    smaller = copy.deepcopy(model)
    layouts = []
    for site in attention_sites(model):
        half = site.head_dim // 2
        groups = tuple(
            GroupShape(heads=group.heads, qk_dim=half, v_dim=half)
            for group in full_shape(site).groups
        )
        layout = LayerLayout(shape=LayerShape(groups=groups, fused=True), biases=("output",))
        module = install(smaller, site, layout)
        columns = module.kinds[0].rotary_columns
        pairs = torch.cat([torch.arange(0, half, 2), torch.arange(half, 2 * half, 2)])
        columns.copy_(pairs.expand_as(columns))
        layouts.append(layout)
    record_layouts(smaller, layouts)
    return smaller.eval()


@torch.no_grad()
def step(model: Any, cache: Any, batch: int) -> float:
    """Seconds for one more token."""
    ids = torch.zeros(batch, 1, dtype=torch.long)
    start = time.process_time()
    model(input_ids=ids, past_key_values=cache, use_cache=True)
    return time.process_time() - start


@torch.no_grad()
def prefill(model: Any, length: int) -> float:
    ids = torch.zeros(1, length, dtype=torch.long)
    start = time.process_time()
    model(input_ids=ids, logits_to_keep=1)
    return time.process_time() - start


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def compare(name: str, rounds: int) -> list[dict[str, Any]]:
    options = SHAPES[name] | {"vocab_size": 4096, "max_position_embeddings": 8192}
    stock = transformers.LlamaForCausalLM(transformers.LlamaConfig(**options)).eval()
    reduced = halved(stock)
    rows = []
    for batch, context in PLACES:
        caches = [filled_cache(model, batch, context) for model in (stock, reduced)]
        times: list[list[float]] = [[], []]
        for index in range(rounds + 1):
            for which, model in enumerate((stock, reduced)):
                seconds = step(model, caches[which], batch)
                if index:
                    times[which].append(seconds)
        before, after = (median(each) for each in times)
        bar = BARS[name, batch, context]
        said = "met" if before / after >= bar else "MISSED"
        print(
            f"{name:>14}  decode, batch {batch} × context {context:>5}: {1000 * before:7.1f} → "
            f"{1000 * after:7.1f} ms, {before / after:.2f}× (bar {bar:.2f}×) {said}",
            flush=True,
        )
        rows.append({"shape": name, "batch": batch, "context": context, "bar": bar})
        rows[-1] |= {"before": before, "after": after}
    pairs = [(prefill(stock, 1024), prefill(reduced, 1024)) for _ in range(max(3, rounds // 3))]
    before, after = (median([pair[i] for pair in pairs[1:]]) for i in (0, 1))
    print(f"{name:>14}  prefill of 1,024: {before / after:.2f}× (bar 1.10×)", flush=True)
    rows.append({"shape": name, "prefill": 1024, "before": before, "after": after, "bar": 1.1})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=sorted(SHAPES))
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = [
        row
        for name in ([options.only] if options.only else SHAPES)
        for row in compare(name, options.rounds)
    ]
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
