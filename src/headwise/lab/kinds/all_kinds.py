"""The kinds of runs there are: who does the work, what it costs, which columns describe it.

The type of a run's network decides. A new kind of experiment is one entry here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

import headwise.tasks  # noqa: F401  (a stored run can be read only where its task is known)
from headwise.core.errors import InputError, require
from headwise.lab.kinds.built import Construction, FreshSequences, build_and_measure
from headwise.lab.kinds.cut_layer import Reduced, cut_and_measure, reduced_columns, reduced_cost
from headwise.lab.kinds.watched_attention import (
    Saturation,
    saturation_columns,
    saturation_cost,
    watch_attention,
)
from headwise.lab.run import Run
from headwise.nets import AttentionNetShape, ClassTokenShape, DecoderShape, EncoderShape
from headwise.tasks.maps import largest_overlap
from headwise.training import Streaming, TextTraining, Training


@dataclass(frozen=True)
class Kind:
    """`together`: how many seeds are best done as one job; `cost`: relative, for progress bars.

    `perform` does a job: runs, a function to report progress to, and a folder where it may leave
    what it needs to go on if it is killed (None: nowhere).
    """

    training: type
    perform: Callable[[Sequence[Run], Callable[[float], None], Path | None], list[Any]]
    together: Callable[[Run], int]
    cost: Callable[[Run], float]
    columns: Callable[[Run], dict[str, Any]]


def kind_of(run: Run) -> Kind:
    """The kind of a run."""
    net, training = type(run.net).__name__, type(run.training).__name__
    kinds = _KINDS.get(type(run.net))
    if kinds is None:
        known = ", ".join(sorted(each.__name__ for each in _KINDS))
        raise InputError(f"no run has a network of type {net}; there are {known}")
    fitting = [kind for kind in kinds if isinstance(run.training, kind.training)]
    wanted = " or ".join(kind.training.__name__ for kind in kinds)
    require(bool(fitting), f"a run of {net} is described by {wanted}, not by {training}")
    return fitting[0]


def _train_class_token(
    job: Sequence[Run], on_progress: Callable[[float], None], _: Path | None
) -> list[Any]:
    from headwise.training import train

    first = job[0]
    return train(
        first.task,
        first.net,
        first.training,
        [run.seed for run in job],
        lambda fraction, _: on_progress(fraction),
    )


def _class_token_together(run: Run) -> int:
    from headwise.training.samples.choose import runs_together

    return runs_together(run.net, run.training)


def _class_token_cost(run: Run) -> float:
    """Fitted to measured times."""
    length, heads = run.task.length, run.net.layers[0].heads
    sequence = length * (heads + 2) + 100.0
    if len(run.net.layers) > 1:  # every token attends to every other, in torch
        sequence = 2000.0 + 100.0 * length + length**2 * heads
    return run.training.steps * run.training.batch * sequence


def _class_token_columns(run: Run) -> dict[str, Any]:
    layer, params = run.net.layers[0], run.net.params()
    return {
        "heads": layer.heads,
        "head_dim": layer.v_dim,
        "length": run.task.length,
        "intrinsic_dim": run.task.intrinsic_dim,
        "overlap": round(largest_overlap(run.task.features), 3),
        "token_dim": run.task.token_dim,
        "width": run.net.embed.widths[0],
        "layers": len(run.net.layers),
        "residual": run.net.residual,
        "norm": run.net.norm,
        "params": params["total"],
        "params_mlp": params["mlp"],
        **_training_columns(run),
    }


def _train_tokens(
    job: Sequence[Run], on_progress: Callable[[float], None], folder: Path | None
) -> list[Any]:
    from headwise.training import train

    first, seeds = job[0], [run.seed for run in job]
    return train(
        first.task,
        first.net,
        first.training,
        seeds,
        lambda fraction, _: on_progress(fraction),
        checkpoint=_checkpoint(first, folder),
    )


def _checkpoint(first: Run, folder: Path | None) -> Path | None:
    """Where a job leaves what it needs to go on; it is known by the job's first run."""
    return None if folder is None else folder / f"{first.key}.safetensors"


def _tokens_together(run: Run) -> int:
    from headwise.training.stream.loop import TOGETHER

    return TOGETHER


def _token_cost(run: Run) -> float:
    """Multiplications a token, its weights and its share of the attention, in all steps."""
    scores = sum(layer.heads * (8 + layer.qk_dim + layer.v_dim) for layer in run.net.attention)
    each = run.net.params()["total"] + run.task.length * scores
    return run.training.steps * (100_000 + run.training.batch * run.task.length * each)


def _train_text(
    job: Sequence[Run], on_progress: Callable[[float], None], folder: Path | None
) -> list[Any]:
    from headwise.training import train

    first, seeds = job[0], [run.seed for run in job]
    return train(
        first.task,
        first.net,
        first.training,
        seeds,
        lambda fraction, _: on_progress(fraction),
        checkpoint=_checkpoint(first, folder),
    )


def _text_cost(run: Run) -> float:
    """Tokens read (a third as dear where there is no way back) times what a token costs."""
    scores = sum(layer.heads * (40 + layer.qk_dim + layer.v_dim) for layer in run.net.layers)
    each = run.net.params()["total"] + run.task.length * scores
    windows = run.training.validation or run.task.tokens * run.task.held_out / run.task.length
    read = run.training.steps * run.training.batch + run.training.evaluations * windows / 3
    return read * run.task.length * each


def _text_columns(run: Run) -> dict[str, Any]:
    params = run.net.params()
    return {
        "text": run.task.name,
        "arm": f"{run.task.name}, QK-norm" if run.net.qk_norm else run.task.name,
        "length": run.task.length,
        **_decoder_columns(run.net),
        "params": params["total"],
        "params_attention": params["attention"],
        "tokens": run.training.steps * run.training.batch * run.task.length,
        **_training_columns(run),
    }


def _decoder_columns(net: DecoderShape) -> dict[str, Any]:
    return {
        "layers": len(net.layers),
        "width": net.width,
        "positions": net.positions,
        "qk_norm": net.qk_norm,
        "shape": ", ".join(f"{each.heads}×{each.qk_dim}/{each.v_dim}" for each in net.layers),
    }


def _ngram_columns(run: Run) -> dict[str, Any]:
    layer, params = run.net.layers[0], run.net.params()
    return {
        "target": run.task.target,
        "lags": len(run.task.lags),
        "dim": run.task.dim,
        "length": run.task.length,
        **_decoder_columns(run.net),
        "heads": layer.heads,
        "head_dim": layer.v_dim,
        "params": params["total"],
        "params_attention": params["attention"],
        **_training_columns(run),
    }


def _token_columns(run: Run) -> dict[str, Any]:
    layer, params = run.net.attention[0], run.net.params()
    modules = getattr(run.net, "modules", 1)
    return {
        "dim": run.task.dim,
        "points": getattr(run.task, "points", None),
        "positions": getattr(run.task, "positions", None),
        "length": run.task.length,
        "layers": len(run.net.attention),
        "heads": layer.heads,
        "rank": layer.qk_dim,
        "v_dim": layer.v_dim,
        "rank_share": layer.qk_dim / run.task.dim,
        "modules": modules,
        "power": round(2 + log(modules) / log(run.task.dim), 2),  # attention's weights: ~ dim^power
        "ffn": getattr(run.net, "ffn", 0),
        "method": "trained",
        "params": params["total"],
        "params_attention": params["attention"],
        **_training_columns(run),
    }


def _construction_cost(run: Run) -> float:
    """Scores of all heads on all sequences, and the closed form's matrix for random features."""
    fit = run.net.heads**2 * 50.0 if run.net.name.startswith("random") else 0.0
    return fit + 2.5 * run.training.sequences * run.net.heads * (run.task.dim + 10)


def _construction_columns(run: Run) -> dict[str, Any]:
    return {
        "dim": run.task.dim,
        "points": run.task.points,
        "positions": run.task.positions,
        "length": run.task.length,
        "layers": 2 if run.net.name == "vote" else 1,
        "heads": run.net.heads,
        "rank": run.task.dim if run.net.name == "full-rank" else 1,
        "method": run.net.name,
        "steps": 0,
    }


def _training_columns(run: Run) -> dict[str, Any]:
    training = run.training
    return {"steps": training.steps, "batch": training.batch, "rate": training.rate}


_TOKENS = Kind(Streaming, _train_tokens, _tokens_together, _token_cost, _token_columns)
_KINDS: dict[type, tuple[Kind, ...]] = {
    ClassTokenShape: (
        Kind(
            Training,
            _train_class_token,
            _class_token_together,
            _class_token_cost,
            _class_token_columns,
        ),
    ),
    EncoderShape: (_TOKENS,),
    AttentionNetShape: (_TOKENS,),
    DecoderShape: (
        Kind(TextTraining, _train_text, lambda run: 1, _text_cost, _text_columns),
        Kind(Streaming, _train_tokens, _tokens_together, _token_cost, _ngram_columns),
    ),
    Reduced: (Kind(TextTraining, cut_and_measure, lambda run: 1, reduced_cost, reduced_columns),),
    Saturation: (
        Kind(TextTraining, watch_attention, lambda run: 1, saturation_cost, saturation_columns),
    ),
    Construction: (
        Kind(
            FreshSequences,
            build_and_measure,
            lambda run: 1,
            _construction_cost,
            _construction_columns,
        ),
    ),
}
