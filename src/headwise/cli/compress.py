"""`headwise compress`: a physically smaller checkpoint, measured."""

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from headwise.cli.ending import GATE_FAILED, REFUSED
from headwise.cli.options import pretrained
from headwise.cli.options.given import given
from headwise.cli.options.result import JsonOption, PageOption
from headwise.cli.options.where import Device, DeviceOption
from headwise.core.lines import fit

_USUAL_STEPS = 2500  # of a recovery: docs/pretrained.md has what they give


class WithUsualSteps(typer.core.TyperCommand):
    """`--finetune` may stand without a number, which typer knows of no option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """With the usual number where another option or nothing follows."""
        following = [*args, "-"][1:]
        given = []
        for word, after in zip(args, following, strict=True):
            given.append(word)
            if word == "--finetune" and re.match(r"-(\D|$)", after):
                given.append(str(_USUAL_STEPS))
        return super().parse_args(ctx, given)


def compress(
    model: pretrained.Model,
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
            help="Quality gate: nothing is written unless the damage's 95 % interval is within "
            "this. Alone: find the smallest model within it."
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(help="Apply this plan instead: of a compression, or of `headwise plan`."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="fisher, or another's: svd-llm, modegpt, taylor, uniform-svd, prune-heads, random."
        ),
    ] = "fisher",
    uniform: Annotated[
        bool, typer.Option("--uniform", help="One shape for all layers (for stock transformers).")
    ] = False,
    fast: Annotated[
        bool, typer.Option("--fast", help="One head size a layer: quicker, at some more loss.")
    ] = False,
    finetune: Annotated[
        int,
        typer.Option(
            help="Steps of training to match the original's outputs again; without a number "
            f"{_USUAL_STEPS:,}, which halved the damage to stories15M and all-MiniLM-L6-v2."
        ),
    ] = 0,
    text: pretrained.Text = None,
    eval_text: Annotated[
        Path | None,
        typer.Option(help="Held-out text (sound: folder); default: every fifth of --text."),
    ] = None,
    tokens: pretrained.Tokens = 20_000,
    report: PageOption = None,
    length: pretrained.Length = None,
    pool: pretrained.Pool = None,
    memory: pretrained.Memory = None,
    cache: pretrained.Cache = True,
    seed: pretrained.Seed = 0,
    device: DeviceOption = Device.cpu,
    as_json: JsonOption = False,
) -> None:
    """Shrink a model's attention and measure what it cost.

    Exit code 1: the damage is above --max-loss; 3: its interval reaches over --max-loss, so that
    cannot be told. Nothing was written then.
    """
    options = given(locals())
    from headwise.cli.progress import progress_bar
    from headwise.pretrained import compress as run

    with progress_bar("opening the model") as on_progress:
        result = run(**options, on_progress=on_progress)
    print(json.dumps(result.to_data()) if as_json else fit(result))
    if result.passed is False:
        raise typer.Exit(GATE_FAILED if result.gate == "above" else REFUSED)
