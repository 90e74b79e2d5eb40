"""Compression of two real models, all in one run: quality, baselines, size, time, memory, speed.

    python benchmarks/fetch_models.py DIR
    python benchmarks/compression.py --models DIR [--json FILE]

stories15M is calibrated on four fifths of the stories and judged on the others; all-MiniLM-L6-v2
the same way on lines of Wikipedia. One thread unless OMP_NUM_THREADS says otherwise.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import headwise
from headwise.pretrained import (
    Budget,
    Material,
    Measurement,
    load_model,
    load_tokenizer,
    make_plan,
    measure_model,
    text_material,
)

BARS = {
    ("stories15M", "parameters"): {0.9: 0.02, 0.75: 0.08, 0.5: 0.28},
    ("stories15M", "cache"): {0.75: 0.09, 0.5: 0.40},
    ("all-MiniLM-L6-v2", "parameters"): {0.9: 0.002, 0.75: 0.011, 0.5: 0.08},
}
TEXTS = {"stories15M": "stories.txt", "all-MiniLM-L6-v2": "wiki.txt"}
BASELINES = {"uniform-svd": 10, "prune-heads": 4, "random": None}


def row(*cells: Any) -> None:
    print(
        "".join(
            f"{cell:>{width}}" for cell, width in zip(cells, (18, 13, 12, 7, 11, 26), strict=True)
        )
    )


def judge(folder: Path, name: str, results: list[dict[str, Any]]) -> None:
    model, tokenizer = load_model(folder / name), load_tokenizer(folder / name)
    material = text_material(model, tokenizer, folder / TEXTS[name])
    start = time.perf_counter()
    measurement = measure_model(model, material)
    print(
        f"# {name}: measured {measurement.tokens:,} tokens in {time.perf_counter() - start:.0f} s"
    )

    def run(method: str, counts: str, fraction: float, bar: str, limit: float | None) -> float:
        plan = make_plan(measurement, Budget(fraction, counts), method)
        result = headwise.compress(
            model, text=material, plan=plan, measurement=measurement, time_it=False
        )
        damage = result.evaluation.damage
        verdict = "" if limit is None else ("  met" if damage <= limit else "  MISSED")
        row(name, method, counts, f"{fraction:.0%}", f"{damage:.4f}", bar + verdict)
        kept = result.evaluation.attention_parameters.ratio
        results.append(
            {"model": name, "method": method, "counts": counts, "fraction": fraction}
            | {"damage": damage, "bar": limit, "parameters_kept": kept}
        )
        return damage

    for counts in ("parameters", "cache"):
        for fraction, limit in BARS.get((name, counts), {}).items():
            damage = run("fisher", counts, fraction, f"≤ {limit}", limit)
            if (counts, fraction) == ("parameters", 0.75):
                ours = damage
    for method, factor in BASELINES.items():
        damage = run(method, "parameters", 0.75, "", None)
        ratio = damage / ours
        verdict = "" if factor is None else ("met" if ratio >= factor else "MISSED")
        print(f"{'':>18}ours is {ratio:.1f}× lower (bar: {factor or '-'}×)  {verdict}")
        results[-1]["ratio_to_ours"] = ratio
    half(folder, name, model, tokenizer, material, measurement, results)


def half(
    folder: Path,
    name: str,
    model: Any,
    tokenizer: Any,
    material: Material,
    measurement: Measurement,
    results: list[dict[str, Any]],
) -> None:
    """The model at 50 %: disk, speed, and whether it comes back bit for bit."""
    result = headwise.compress(
        model, text=material, tokenizer=tokenizer, keep=0.5, measurement=measurement
    )
    with tempfile.TemporaryDirectory() as temporary:
        saved = result.save(Path(temporary) / "half")
        sizes = [
            sum(file.stat().st_size for file in place.glob("*.safetensors"))
            for place in (folder / name, saved)
        ]
        again = headwise.from_pretrained(saved)
        batch = material.held_out[0]
        with torch.no_grad():
            same = torch.equal(result.model(**batch)[0], again(**batch)[0])
    print(f"{name} at 50 %: {sizes[0]:,} → {sizes[1]:,} bytes on disk; reloaded equal: {same}")
    for what, pair in result.evaluation.latency_ms.items():
        print(f"  {what}: {pair.original:.2f} → {pair.compressed:.2f} ms ({pair.ratio:.3f})")
    entry = {"model": name, "bytes": sizes, "reloaded_equal": same}
    results.append(entry | {"latency_ms": result.evaluation.to_data()["latency_ms"]})


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
    model_bytes = (folder / name / "model.safetensors").stat().st_size
    limit = 3 * model_bytes + 2**30
    print(
        f"{arguments[0]} {name}: {seconds:.0f} s (bar 180; {busy:.0f} s of CPU), "
        f"peak {peak / 2**20:,.0f} MB (bar {limit / 2**20:,.0f}), exit {status}"
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
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    row("model", "method", "budget", "kept", "loss", "bar")
    for name in [options.only] if options.only else TEXTS:
        judge(options.models, name, results)
        results.append(command(options.models, name, "inspect", "--json"))
        results.append(command(options.models, name, "compress", "--keep", "0.6", "--json"))
    print(
        f"threads: {torch.get_num_threads()}; own peak {resource.getrusage(0).ru_maxrss >> 10} MB"
    )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
