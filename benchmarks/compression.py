"""Compression of real models by every method, in one run: damage at three sizes, cost, speed.

    python benchmarks/fetch_models.py DIR
    python benchmarks/compression.py --models DIR [--only NAME] [--json FILE]

Each model is calibrated on one text and judged on held-out parts of it. Damage is what `headwise
compress` reports: KL from the original a token (decoders), 1 − cosine of embeddings (encoders).
Both denominators are given: what is kept of the attention's parameters, and of the whole model's.
One thread unless OMP_NUM_THREADS says otherwise.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

import headwise
from headwise.core.errors import InputError
from headwise.pretrained import (
    Budget,
    load_model,
    load_tokenizer,
    make_plan,
    measure_model,
    text_material,
)

TEXTS = {"stories15M": "stories.txt", "all-MiniLM-L6-v2": "wiki.txt", "SmolLM2-135M": "wiki.txt"}
METHODS = ("fisher", "fast", "svd-llm", "modegpt", "taylor", "prune-heads", "uniform-svd", "random")
OURS = ("fisher", "fast")
FRACTIONS = (0.9, 0.75, 0.5)
BARS = {0.75: 1 / 4, 0.5: 1 / 2}  # of the best peer's damage


def judge(
    folder: Path, name: str, tokens: int, length: int | None, results: list[dict[str, Any]]
) -> None:
    model, tokenizer = load_model(folder / name), load_tokenizer(folder / name)
    material = text_material(model, tokenizer, folder / TEXTS[name], tokens=tokens, length=length)
    start = time.perf_counter()
    measurement = measure_model(model, material)
    longest = max(batch["input_ids"].shape[1] for batch in material.held_out)
    print(
        f"# {name}: {measurement.tokens:,} tokens of {TEXTS[name]} measured in "
        f"{time.perf_counter() - start:.0f} s; judged at length {longest}"
    )
    print(
        f"{'method':>13}{'asked':>7}{'attention':>11}{'model':>8}{'damage':>10}{'loss':>9}  tokens"
    )
    for fraction in FRACTIONS:
        damages = {}
        for method in METHODS:
            try:
                fast = method == "fast"
                plan = make_plan(
                    measurement, Budget(fraction), "fisher" if fast else method, fast=fast
                )
            except InputError as error:
                print(f"{method:>13}{fraction:>7.0%}  {error}")
                continue
            result = headwise.compress(
                model, text=material, plan=plan, measurement=measurement, time_it=False
            )
            judged = result.evaluation
            damages[method] = judged.damage
            loss = judged.loss
            rise = "" if loss is None else f"{loss.compressed - loss.original:+.4f}"
            print(
                f"{method:>13}{fraction:>7.0%}{judged.attention_parameters.ratio:>11.3f}"
                f"{judged.parameters.ratio:>8.3f}{judged.damage:>10.5f}{rise:>9}"
                f"  {judged.held_out_tokens:,}",
                flush=True,
            )
            results.append(
                {"model": name, "method": method, "fraction": fraction, "damage": judged.damage}
                | {"attention_kept": judged.attention_parameters.ratio}
                | {"model_kept": judged.parameters.ratio, "length": longest}
                | {"tokens": judged.held_out_tokens, "rise": rise}
            )
        best = min((each for each in damages if each not in OURS), key=lambda each: damages[each])
        share = damages["fisher"] / damages[best]
        bar = BARS.get(fraction)
        verdict = "" if bar is None else f" (bar {bar:.2f}) {'met' if share <= bar else 'MISSED'}"
        print(f"{'':>13}{fraction:>7.0%}  fisher / best peer ({best}): {share:.3f}{verdict}")


def command(folder: Path, name: str, *arguments: str) -> dict[str, Any]:
    """Seconds and peak memory of a command-line run, in a process of its own."""
    code = "import sys; from headwise.cli import main; main(sys.argv[1:])"
    text = str(folder / TEXTS[name])
    start = time.perf_counter()
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            code,
            arguments[0],
            str(folder / name),
            "--text",
            text,
            *arguments[1:],
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds, peak = time.perf_counter() - start, usage.ru_maxrss * 1024
    busy = usage.ru_utime + usage.ru_stime
    print(
        f"{arguments[0]} {name}: {seconds:.0f} s ({busy:.0f} s of CPU), "
        f"peak {peak / 2**20:,.0f} MB, exit {status}"
    )
    return {"command": arguments[0], "model": name, "seconds": seconds} | {
        "cpu_seconds": busy,
        "peak_bytes": peak,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=sorted(TEXTS), help="one of the models")
    parser.add_argument("--tokens", type=int, default=20_000, help="to calibrate on")
    parser.add_argument("--length", type=int, help="of the longest inputs")
    parser.add_argument("--commands", action="store_true", help="also time the command line")
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    for name in [options.only] if options.only else TEXTS:
        judge(options.models, name, options.tokens, options.length, results)
        if options.commands:
            results.append(command(options.models, name, "inspect", "--json"))
            results.append(command(options.models, name, "compress", "--keep", "0.6", "--json"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"threads: {torch.get_num_threads()}; own peak {peak} MB")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
