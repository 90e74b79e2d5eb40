"""Kind "token-decoder": a decoder of real tokens, of any variant, trained on a stream."""

from typing import Any

from headwise.core.errors import require
from headwise.lab.kinds._registry import register
from headwise.lab.kinds._training import streamed_kind
from headwise.lab.kinds.tokens import TOKEN_ERROR
from headwise.lab.run import Run
from headwise.nets import DecoderShape


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
    }


def _check(run: Run) -> None:
    require(run.net.vocabulary == 0, "a token decoder takes real tokens: its vocabulary is 0")


TOKEN_DECODER = register(
    streamed_kind(
        "token-decoder",
        TOKEN_ERROR,
        "model units heads rank v_dim layers length dim",
        _describe,
        nets=(DecoderShape,),
        check=_check,
    )
)
