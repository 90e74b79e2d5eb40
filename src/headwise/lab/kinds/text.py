"""Kind "text": a decoder trained on a text and judged on what was held out of it."""

from typing import Any

from headwise.lab.kinds._columns import (
    attention_cost,
    columns,
    decoder_columns,
    params_columns,
    training_columns,
)
from headwise.lab.kinds._registry import Kind, Quantity, register
from headwise.lab.kinds._training import train_job
from headwise.lab.run import Run
from headwise.nets.decoder import DecoderShape
from headwise.training import TextTraining
from headwise.training.text.company import worth_stacking

_ERROR = Quantity.by_difference(
    "held-out loss",
    "mean cross-entropy of the next token on held-out text, nats a token",
    unit="nats a token",
    number=".4f",
)


def _cost(run: Run) -> float:
    """Tokens read (an evaluation costs a third of a step) times what a token costs."""
    each = run.net.params()["total"] + run.task.length * attention_cost(run.net.layers, 40)
    windows = run.training.validation or run.task.tokens * run.task.held_out / run.task.length
    read = run.training.steps * run.training.batch + run.training.evaluations * windows / 3
    return float(read * run.task.length * each)


def _describe(run: Run) -> dict[str, Any]:
    return {
        "text": run.task.name,
        "arm": f"{run.task.name}, QK-norm" if run.net.qk_norm else run.task.name,
        "length": run.task.length,
        **decoder_columns(run.net),
        **params_columns(run),
        "tokens": run.training.steps * run.training.batch * run.task.length,
        **training_columns(run),
    }


TEXT = register(
    Kind(
        name="text",
        error=_ERROR,
        columns=columns(
            "text arm length layers width positions qk_norm shape params params_attention tokens "
            "steps batch rate"
        ),
        describe=_describe,
        perform=train_job,
        cost=_cost,
        together=lambda run: worth_stacking(run.net, run.training.batch * run.task.length),
        facts=columns("standard_error bits_per_byte tokens_per_second flops_per_token"),
        nets=(DecoderShape,),
        training=TextTraining,
    )
)
