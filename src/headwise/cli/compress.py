"""`headwise compress`: a physically smaller checkpoint, measured."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headwise.core.errors import require

if TYPE_CHECKING:
    from headwise.pretrained import Compressed


def compress(
    model: Annotated[str, typer.Argument(help="Hub id or folder.")],
    out: Annotated[Path | None, typer.Option(help="New folder for the smaller model.")] = None,
    keep: Annotated[
        float | None, typer.Option(help="Fraction of attention parameters to keep.")
    ] = None,
    kv_bytes: Annotated[
        int | None, typer.Option(help="Key–value cache to keep, bytes a token.")
    ] = None,
    max_loss: Annotated[
        float | None,
        typer.Option(
            help="Quality gate: the verdict fails above this loss. Alone: find the smallest model "
            "within it."
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(help="Apply this plan instead: of a compression, or of `headwise plan`."),
    ] = None,
    method: Annotated[
        str, typer.Option(help="fisher, or a baseline: uniform-svd, prune-heads, random.")
    ] = "fisher",
    uniform: Annotated[
        bool, typer.Option("--uniform", help="One shape for all layers (for stock transformers).")
    ] = False,
    finetune: Annotated[int, typer.Option(help="Steps of recovery on the calibration text.")] = 0,
    text: Annotated[
        Path | None, typer.Option(help="UTF-8 calibration text (ViT: a folder of images).")
    ] = None,
    eval_text: Annotated[
        Path | None, typer.Option(help="Held-out text; default: every fifth part of --text.")
    ] = None,
    tokens: Annotated[int, typer.Option(help="Calibration tokens.")] = 20_000,
    seed: Annotated[int, typer.Option(help="Seed of label sampling.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Shrink a model's attention and measure what it cost.

    Exit code 1: the model was written, but its loss is above --max-loss.
    """
    from headwise.cli.model_progress import progress_bar
    from headwise.pretrained import compress as run
    from headwise.pretrained import load_model, load_tokenizer, read_plan, save_compressed
    from headwise.pretrained.measure.measurement import measure
    from headwise.pretrained.plan.uniform import stock_reason
    from headwise.pretrained.text.material import describe, material_for

    console = Console(stderr=True)
    require(out is None or not out.exists(), f"{out} exists; choose a new folder")
    chosen = read_plan(plan) if plan else None
    original = load_model(model)
    tokenizer = None if original.config.model_type == "vit" else load_tokenizer(model)
    material = material_for(original, tokenizer, text, eval_text, tokens, seed)
    console.print(describe(material), style="dim")
    with progress_bar(console) as progress:
        measurement = measure(original, material, seed=seed, progress=progress)
        cache = None if kv_bytes is None else _cache_fraction(original, measurement, kv_bytes)
        result = run(
            original,
            material,
            keep=keep,
            cache=cache,
            max_loss=max_loss,
            plan=chosen,
            method=getattr(chosen, "method", method),
            uniform=uniform,
            finetune=finetune,
            seed=seed,
            measurement=measurement,
            progress=progress,
        )
    report = result.report() | {"model": model, "calibration": describe(material)}
    passed = max_loss is None or result.evaluation.damage <= max_loss
    report["gate"] = {"max_loss": max_loss, "passed": passed if max_loss is not None else None}
    if out is not None:
        save_compressed(result.model, out, plan=result.plan, report=report, tokenizer=tokenizer)
        report["bytes_on_disk"] = sum(file.stat().st_size for file in out.glob("*.safetensors"))
    if as_json:
        print(json.dumps(report))
    else:
        _show(console, result, report)
        if out is not None:
            reason = stock_reason(original.config.model_type) if uniform else None
            also = " or, as it is, with transformers" if uniform and reason is None else ""
            opens = f"headwise.from_pretrained({str(out)!r})"
            console.print(f"wrote {out}; open it with {opens}{also}")
            if reason is not None:
                console.print(reason)
    if not passed:
        raise typer.Exit(1)


def _cache_fraction(model: Any, measurement: Any, kv_bytes: int) -> float:
    from headwise.pretrained.plan.allocate import total

    require(measurement.sites[0].causal, "an encoder has no key–value cache; use --keep")
    element = next(model.parameters()).element_size()
    whole = element * total(measurement, "cache")
    require(
        0 < kv_bytes <= whole,
        f"--kv-bytes is {kv_bytes}; this model uses {whole:,} bytes a token",
    )
    return float(kv_bytes / whole)


def _show(console: Console, result: "Compressed", report: dict[str, Any]) -> None:
    judged = result.evaluation
    table = Table("", "original", "compressed", "ratio")

    def row(name: str, pair: Any, form: str = ",.0f") -> None:
        table.add_row(
            name, f"{pair.original:{form}}", f"{pair.compressed:{form}}", f"{pair.ratio:.3f}"
        )

    row("attention parameters", judged.attention_parameters)
    row("all parameters", judged.parameters)
    if judged.cache_bytes_per_token is not None:
        row("cache, bytes a token", judged.cache_bytes_per_token)
    row("attention FLOPs a token (256 before it)", judged.attention_flops_per_token)
    for name, pair in judged.latency_ms.items():
        row(f"ms, {name}", pair, ".2f")
    if judged.loss is not None:
        row("loss on held-out text, nats a token", judged.loss, ".4f")
    console.print(table)
    console.print(
        f"{judged.objective}: {judged.damage:+.4f} {judged.unit} on "
        f"{judged.held_out_tokens:,} held-out tokens"
    )
    sound = [c for c in result.certificates if not c.vacuous]
    if result.certificates:
        console.print(
            f"certificates: {len(sound)} of {len(result.certificates)} heads have a bound below 1 "
            "on their attention's change over the calibration inputs; the others' is vacuous"
        )
    gate = report["gate"]
    if gate["passed"] is None:
        console.print("no quality gate was set (--max-loss): judge the numbers yourself")
    else:
        verdict = "within" if gate["passed"] else "ABOVE"
        console.print(f"quality gate: {judged.damage:.4f} is {verdict} {gate['max_loss']:g}")
