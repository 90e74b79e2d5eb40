"""Kind "ngram": a decoder trained on a stream of vectors whose answer depends on a few lags."""

from typing import Any

from headwise.lab.kinds._columns import (
    columns,
    decoder_columns,
    params_columns,
    token_cost,
    training_columns,
)
from headwise.lab.kinds._registry import Kind, Quantity, register
from headwise.lab.kinds._training import train_job
from headwise.lab.run import Run
from headwise.nets.decoder import DecoderShape
from headwise.training import Streaming
from headwise.training.stream.loop import TOGETHER

_ERROR = Quantity(
    name="relative mean-square error",
    meaning="E‖target − output‖² / E‖target‖² on fresh sequences; answering zero scores 1",
    unit="share of the target's mean square",
)


def _describe(run: Run) -> dict[str, Any]:
    layer = run.net.layers[0]
    return {
        "target": run.task.target,
        "lags": len(run.task.lags),
        "dim": run.task.dim,
        "length": run.task.length,
        **decoder_columns(run.net),
        "heads": layer.heads,
        "head_dim": layer.v_dim,
        **params_columns(run),
        **training_columns(run),
    }


NGRAM = register(
    Kind(
        name="ngram",
        error=_ERROR,
        columns=columns(
            "target lags dim length layers width positions qk_norm shape heads head_dim params "
            "params_attention steps batch rate"
        ),
        describe=_describe,
        perform=train_job,
        cost=token_cost,
        together=lambda run: TOGETHER,
        nets=(DecoderShape,),
        training=Streaming,
    )
)
