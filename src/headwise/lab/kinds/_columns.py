"""Columns that several kinds share: one title and one symbol for each, whatever the kind."""

from collections.abc import Iterable
from math import log
from pathlib import Path
from typing import Any

from headwise.lab.kinds._registry import Column
from headwise.lab.run import Run
from headwise.nets.decoder import DecoderShape

_COLUMNS = {
    column.name: column
    for column in (
        Column("arm", "text and QK-norm"),
        Column("batch", "batch", "sequences"),
        Column("between", "between the layers"),
        Column("bits_per_byte", "held-out loss", "bits a byte"),
        Column("bound", "certified bound of the shift", "total variation"),
        Column("data", "data"),
        Column("dim", "dimension d", symbol="d"),
        Column("epochs", "passes over the examples"),
        Column("examples_per_second", "training speed", "examples a second"),
        Column("excess", "largest shift minus its bound", "total variation"),
        Column("expected", "error that theory expects"),
        Column("ffn", "width of the feed-forward network"),
        Column("flops_per_token", "work of a training step", "operations a token"),
        Column("frame", "side of the frame", "pixels"),
        Column("head_dim", "dimension of a head"),
        Column("heads", "attention heads h", symbol="h"),
        Column("held_out_accuracy", "held-out accuracy"),
        Column("held_out_mrr", "held-out MRR"),
        Column("intrinsic_dim", "intrinsic dimension D", symbol="D"),
        Column("keep", "share of the layer's parameters kept"),
        Column("lags", "tokens that the answer depends on"),
        Column("layer", "layer"),
        Column("layers", "layers L", symbol="L"),
        Column("length", "sequence length T", "tokens", symbol="T"),
        Column("loss", "held-out loss after the cut", "nats a token"),
        Column("method", "how the weights were made"),
        Column("model", "attention or model"),
        Column("modules", "attention modules w", symbol="w"),
        Column("norm", "layer norm"),
        Column("overlap", "largest overlap of two directions"),
        Column("packing", "packing"),
        Column("params", "parameters"),
        Column("params_attention", "attention parameters"),
        Column("params_mlp", "parameters of the feed-forward networks"),
        Column("points", "points N", symbol="N"),
        Column("positions", "positions"),
        Column("power", "attention parameters ~ d^p, p"),
        Column("qk_norm", "QK-norm"),
        Column("rank", "rank r of a head", symbol="r"),
        Column("rank_share", "rank of a head / dimension"),
        Column("rate", "learning rate"),
        Column("recipe", "training"),
        Column("residual", "residual connection"),
        Column("samples", "training sequences"),
        Column("shape", "heads × qk_dim / v_dim by layer"),
        Column("shift", "mean shift of attention rows", "total variation"),
        Column("standard_error", "standard error of the error"),
        Column("start", "initial weights"),
        Column("steps", "training steps"),
        Column("target", "target"),
        Column("text", "text"),
        Column("token_dim", "numbers in a token"),
        Column("tokens", "tokens trained on"),
        Column("tokens_per_second", "training speed", "tokens a second"),
        Column("total_width", "total width", symbol="E"),
        Column("train_accuracy", "training accuracy"),
        Column("train_examples", "training examples"),
        Column("train_mrr", "training MRR"),
        Column("units", "active heads, channels or numbers of state", symbol="units"),
        Column("v_dim", "value dimension of a head"),
        Column("way", "parameters removed by"),
        Column("weights", "weights"),
        Column("what", "what is watched"),
        Column("width", "hidden width N"),
    )
}


def columns(names: str) -> tuple[Column, ...]:
    """The shared columns of these names, which spaces separate."""
    return tuple(_COLUMNS[name] for name in names.split())


def training_columns(run: Run) -> dict[str, Any]:
    """Steps, batch and rate of a run that trains."""
    training = run.training
    return {"steps": training.steps, "batch": training.batch, "rate": training.rate}


def params_columns(run: Run) -> dict[str, int]:
    """Parameters, of all and of the attention."""
    params = run.net.params()
    return {"params": params["total"], "params_attention": params["attention"]}


def decoder_columns(net: DecoderShape) -> dict[str, Any]:
    """Size and shape of a decoder."""
    return {
        "layers": len(net.layers),
        "width": net.width,
        "positions": net.positions,
        "qk_norm": net.qk_norm,
        "shape": ", ".join(f"{each.heads}×{each.qk_dim}/{each.v_dim}" for each in net.layers),
    }


def power_of(modules: int, dim: int) -> float:
    """p where w modules have about dim^p attention parameters."""
    return round(2 + log(modules) / log(dim), 2)


def token_cost(run: Run) -> float:
    """Multiplications a token, its weights and its share of the attention, in all steps."""
    scores = attention_cost(run.net.attention_layers, 8)
    each = run.net.params()["total"] + run.task.length * scores
    return float(run.training.steps * (100_000 + run.training.batch * run.task.length * each))


def attention_cost(layers: Iterable[Any], fixed: int) -> int:
    """Multiplications for one score of every head; `fixed` stands for mask and softmax."""
    return sum(layer.heads * (fixed + layer.qk_dim + layer.v_dim) for layer in layers)


def checkpoint_of(run: Run, folder: Path | None) -> Path | None:
    """Where a job leaves what it needs to go on; it is known by the job's first run."""
    return None if folder is None else folder / f"{run.key}.safetensors"
