"""Kind "ngram": a decoder trained on a stream of vectors whose answer depends on a few lags."""

from typing import Any

from headwise.lab.kinds._columns import decoder_columns
from headwise.lab.kinds._registry import Quantity, register
from headwise.lab.kinds._training import streamed_kind
from headwise.lab.run import Run
from headwise.nets.decoder import DecoderShape

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
    }


NGRAM = register(
    streamed_kind(
        "ngram",
        _ERROR,
        "target lags dim length layers width positions qk_norm shape heads head_dim",
        _describe,
        nets=(DecoderShape,),
    )
)
