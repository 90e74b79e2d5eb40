"""Tokens a second with a filled cache: stock attention against reduced, side by side.

    python benchmarks/pretrained/decoding.py [--json FILE] [--rounds N]
    python benchmarks/pretrained/decoding.py --plans MODEL [--text FILE] [--tokens N]

Speed depends on shapes and not on what weights say, so the models are random ones of two shapes:
SmolLM2-135M's (30 layers × 576, 9 query and 3 key heads of 64) and 8 layers × 1024 with 16 heads.
All layers of the reduced ones have heads half as wide, which is half of the cache, as `--fast`
makes them. A prefill takes 1,024 tokens. One thread, its own CPU time; rounds alternate. Medians,
so that the copy a reduced cache makes once in 64 tokens or more is not in them.

`--plans` times a real model's plans at 50 % instead, of parameters and of cache, before their cuts
are tried: some thousand tokens of calibration settle their shapes.
"""

import argparse
import copy
import json
import time
from pathlib import Path
from typing import Any

import torch
import transformers

from headwise.pretrained import (
    Budget,
    apply_plan,
    attention_sites,
    load_model,
    load_tokenizer,
    make_plan,
    measure_model,
    text_material,
)
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
        assert columns is not None, "both shapes turn queries and keys"
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


def decoded(models: tuple[Any, Any], batch: int, context: int, rounds: int) -> list[float]:
    """Both models' seconds for one more token, in turns."""
    caches = [filled_cache(model, batch, context) for model in models]
    times: list[list[float]] = [[], []]
    for index in range(rounds + 1):
        for which, model in enumerate(models):
            seconds = step(model, caches[which], batch)
            if index:
                times[which].append(seconds)
    return [median(each) for each in times]


def prefilled(models: tuple[Any, Any], rounds: int) -> list[float]:
    """Both models' seconds for 1,024 tokens."""
    pairs = [[prefill(model, 1024) for model in models] for _ in range(max(3, rounds // 3))]
    return [median([pair[i] for pair in pairs[1:]]) for i in (0, 1)]


def compare(name: str, rounds: int) -> list[dict[str, Any]]:
    options = SHAPES[name] | {"vocab_size": 4096, "max_position_embeddings": 8192}
    stock = transformers.LlamaForCausalLM(transformers.LlamaConfig(**options)).eval()
    reduced = halved(stock)
    rows = []
    for batch, context in PLACES:
        before, after = decoded((stock, reduced), batch, context, rounds)
        bar = BARS[name, batch, context]
        said = "met" if before / after >= bar else "MISSED"
        print(
            f"{name:>14}  decode, batch {batch} × context {context:>5}: {1000 * before:7.1f} → "
            f"{1000 * after:7.1f} ms, {before / after:.2f}× (bar {bar:.2f}×) {said}",
            flush=True,
        )
        rows.append({"shape": name, "batch": batch, "context": context, "bar": bar})
        rows[-1] |= {"before": before, "after": after}
    before, after = prefilled((stock, reduced), rounds)
    print(f"{name:>14}  prefill of 1,024: {before / after:.2f}× (bar 1.10×)", flush=True)
    rows.append({"shape": name, "prefill": 1024, "before": before, "after": after, "bar": 1.1})
    return rows


def plans(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A model's own plans at 50 %: a short context, many rounds; a long one; a prefill."""
    model, tokenizer = load_model(options.plans), load_tokenizer(options.plans)
    material = text_material(model, tokenizer, options.text, tokens=options.tokens)
    measurement = measure_model(model, material)
    rows = []
    for counts in ("parameters", "cache"):
        for fast in (False, True):
            plan = make_plan(measurement, Budget(0.5, counts), fast=fast)
            both = (model.eval(), apply_plan(model, measurement, plan).eval())
            found = {
                "one token, context 32": decoded(both, 1, 32, 5 * options.rounds),
                "batch 8 × 2,048": decoded(both, 8, 2048, options.rounds),
                "batch 8 × 4,096": decoded(both, 8, 4096, options.rounds),
                "prefill of 1,024": prefilled(both, options.rounds),
            }
            said = ", ".join(
                f"{name} {before / after:.2f}×" for name, (before, after) in found.items()
            )
            print(f"half of the {counts}{', --fast' if fast else ''}: {said}", flush=True)
            rows.append({"counts": counts, "fast": fast, "seconds": found})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=sorted(SHAPES))
    parser.add_argument("--plans", help="a model, to time its plans at 50 %%")
    parser.add_argument("--text", help="to calibrate it on")
    parser.add_argument("--tokens", type=int, default=4000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = [options.only] if options.only else list(SHAPES)
    if options.plans:
        results = plans(options)
    else:
        results = [row for name in names for row in compare(name, options.rounds)]
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
