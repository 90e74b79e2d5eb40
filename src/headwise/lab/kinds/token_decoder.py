"""Kind "token-decoder": a decoder of real tokens, of any variant, trained on a stream."""

from typing import Any

from headwise.core.errors import require
from headwise.lab.kinds._columns import columns, params_columns, token_cost, training_columns
from headwise.lab.kinds._registry import Kind, register
from headwise.lab.kinds._training import train_job
from headwise.lab.kinds.tokens import TOKEN_ERROR
from headwise.lab.run import Run
from headwise.nets import DecoderShape
from headwise.training import Streaming
from headwise.training.stream.loop import TOGETHER


def _describe(run: Run) -> dict[str, Any]:
    layer = run.net.layers[0]
    return {
        "model": run.net.variant.label,
        "units": run.net.variant.active(layer),
        "heads": layer.heads,
        "rank": layer.qk_dim,
        "v_dim": layer.v_dim,
        "layers": len(run.net.layers),
        "length": run.task.length,
        "dim": run.task.token_dim,
        **params_columns(run),
        **training_columns(run),
    }


def _check(run: Run) -> None:
    require(run.net.vocabulary == 0, "a token decoder takes real tokens: its vocabulary is 0")


TOKEN_DECODER = register(
    Kind(
        name="token-decoder",
        error=TOKEN_ERROR,
        columns=columns(
            "model units heads rank v_dim layers length dim params params_attention steps batch "
            "rate"
        ),
        describe=_describe,
        perform=train_job,
        cost=token_cost,
        together=lambda run: TOGETHER,
        nets=(DecoderShape,),
        training=Streaming,
        check=_check,
    )
)
