"""Compression of real models by every method, in one run: damage at three sizes, cost, speed.

    python benchmarks/pretrained/fetch_models.py DIR
    python benchmarks/pretrained/compression.py --models DIR [--only NAME] [--keep F ...]

Each model is calibrated on one text and judged on held-out parts of it. With --json a run that was
stopped goes on from its file. Damage is what `headwise
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
from functools import partial
from pathlib import Path
from typing import Any

import torch

from headwise.core.errors import InputError
from headwise.core.files import write_file
from headwise.pretrained import (
    apply_plan,
    load_model,
    load_tokenizer,
    measure_model,
    text_material,
)
from headwise.pretrained._evaluate import attention_parameters
from headwise.pretrained.plan.goal import Goal
from headwise.pretrained.text.calibration import few_tokens, token_count
from headwise.pretrained.text.limits import longest_input
from headwise.pretrained.trial import corrected

TEXTS = {"stories15M": "stories.txt", "all-MiniLM-L6-v2": "wiki.txt", "SmolLM2-135M": "wiki.txt"}
METHODS = ("fisher", "fast", "svd-llm", "modegpt", "taylor", "prune-heads", "uniform-svd", "random")
OURS = ("fisher", "fast")
FRACTIONS = (0.9, 0.75, 0.5)
BARS = {0.75: 1 / 4, 0.5: 1 / 2}  # of the best peer's damage


class Rows:
    """Results so far; a run that was stopped goes on from its file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = []
        if path is not None and path.exists():
            self.rows = json.loads(path.read_text("utf-8"))

    def find(self, **key: Any) -> dict[str, Any] | None:
        return next((row for row in self.rows if key.items() <= row.items()), None)

    def add(self, row: dict[str, Any]) -> dict[str, Any]:
        self.rows.append(row)
        if self.path is not None:
            write_file(self.path, json.dumps(self.rows, indent=1) + "\n")
        return row


class Judge:
    """One model, its measurement and its own predictions on the held-out text, computed once."""

    def __init__(
        self, folder: Path, name: str, tokens: int, length: int | None, judged: int | None
    ) -> None:
        self.model, tokenizer = load_model(folder / name), load_tokenizer(folder / name)
        text = folder / TEXTS[name]
        if length is not None:
            length = min(length, longest_input(self.model, tokenizer) or length)
        material = text_material(self.model, tokenizer, text, tokens=tokens, length=length)
        self.measurement = measure_model(self.model, material)
        self.calibration, self.batches = material.calibration, material.held_out
        if judged is not None:
            self.batches = few_tokens(self.batches, judged, 2048)
        self.length = max(batch["input_ids"].shape[1] for batch in self.batches)
        self.tokens = token_count(self.batches)
        self.original: list[Any] = []

    @torch.no_grad()
    def row(self, method: str, fraction: float) -> dict[str, Any]:
        kind = "fisher" if method in OURS else method
        goal = Goal(keep=fraction, method=kind, fast=method == "fast")
        measurement = self.measurement
        try:
            if goal.cuts_by_curves:  # as `compress` does
                standard = partial(goal.standard_plan, self.model)
                text = self.calibration
                measurement = corrected(self.model, measurement, standard, text, cache=True)
            plan = goal.plan_for(self.model, measurement)
        except InputError as error:
            return {"refused": str(error)}
        smaller = apply_plan(self.model, measurement, plan).eval()
        self.original = self.original or [self.model(**batch) for batch in self.batches]
        sums = torch.zeros(4, dtype=torch.float64)
        for batch, original in zip(self.batches, self.original, strict=True):
            compared = self.measurement.objective.compare(original, smaller(**batch), batch)
            losses = torch.zeros(2, 1) if compared.losses is None else compared.losses
            parts = [compared.damage.sum(), compared.units.sum(), *losses.sum(1)]
            sums += torch.stack(parts).double()
        damage, units, before, after = sums.tolist()
        both = (self.model, smaller)
        kept = [attention_parameters(each, self.measurement.sites) for each in both]
        whole = [sum(parameter.numel() for parameter in each.parameters()) for each in both]
        row = {"damage": damage / units, "attention_kept": kept[1] / kept[0]}
        row["model_kept"] = whole[1] / whole[0]
        return row if before == 0 else row | {"rise": (after - before) / units}


def compare(folder: Path, name: str, options: argparse.Namespace, rows: Rows) -> None:
    start = time.perf_counter()
    tokens = options.tokens
    judge = Judge(folder, name, tokens, options.length, options.judged)
    print(
        f"# {name}: {judge.measurement.tokens:,} tokens of {TEXTS[name]} measured in "
        f"{time.perf_counter() - start:.0f} s; judged on {judge.tokens:,} at length {judge.length}"
    )
    print(f"{'method':>13}{'asked':>7}{'attention':>11}{'model':>8}{'damage':>10}{'loss':>9}")
    for fraction in options.keep:
        damages = {}
        for method in options.methods:
            key = {"model": name, "method": method, "fraction": fraction, "tokens": tokens}
            key |= {"length": judge.length, "judged": judge.tokens}
            row = rows.find(**key) or rows.add(key | judge.row(method, fraction))
            if "refused" in row:
                print(f"{method:>13}{fraction:>7.0%}  {row['refused']}")
                continue
            damages[method] = row["damage"]
            rise = f"{row['rise']:+.4f}" if "rise" in row else ""
            print(
                f"{method:>13}{fraction:>7.0%}{row['attention_kept']:>11.3f}"
                f"{row['model_kept']:>8.3f}{row['damage']:>10.5f}{rise:>9}",
                flush=True,
            )
        others = [each for each in damages if each not in OURS]
        if "fisher" not in damages or not others:
            continue
        best = min(others, key=lambda each: damages[each])
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
    parser.add_argument("--json", type=Path, help="results; what is in it is not done again")
    parser.add_argument("--only", choices=sorted(TEXTS), help="one of the models")
    parser.add_argument("--tokens", type=int, default=20_000, help="to calibrate on")
    parser.add_argument(
        "--length", type=int, help="of the longest inputs, where a model takes so many"
    )
    parser.add_argument("--judged", type=int, help="tokens to judge by; default: half of --tokens")
    parser.add_argument("--keep", type=float, nargs="+", default=FRACTIONS, help="fractions")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--commands", action="store_true", help="also time the command line")
    options = parser.parse_args()
    rows = Rows(options.json)
    for name in [options.only] if options.only else TEXTS:
        compare(options.models, name, options, rows)
        if options.commands:
            rows.add(command(options.models, name, "inspect", "--json"))
            rows.add(command(options.models, name, "compress", "--keep", "0.6", "--json"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"threads: {torch.get_num_threads()}; own peak {peak} MB")


if __name__ == "__main__":
    main()
