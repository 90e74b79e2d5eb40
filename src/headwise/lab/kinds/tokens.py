"""Kind "tokens": an encoder, or one attention layer, trained on a stream that never repeats."""

from typing import Any

from headwise.lab.kinds._columns import power_of
from headwise.lab.kinds._registry import Quantity, register
from headwise.lab.kinds._training import streamed_kind
from headwise.lab.run import Run
from headwise.nets import AttentionNetShape
from headwise.nets.encoder import EncoderShape

TOKEN_ERROR = Quantity(
    name="mean-square error",
    meaning="E‖target − output‖² on fresh sequences; answering zero scores 1",
    unit="share of the target's mean square",
)


def _describe(run: Run) -> dict[str, Any]:
    layer, modules = run.net.attention_layers[0], getattr(run.net, "modules", 1)
    return {
        "dim": run.task.dim,
        "points": getattr(run.task, "points", None),
        "positions": getattr(run.task, "positions", None),
        "length": run.task.length,
        "layers": len(run.net.attention_layers),
        "heads": layer.heads,
        "rank": layer.qk_dim,
        "v_dim": layer.v_dim,
        "rank_share": layer.qk_dim / run.task.dim,
        "modules": modules,
        "power": power_of(modules, run.task.dim),
        "ffn": getattr(run.net, "ffn", 0),
        "method": "trained",
    }


TOKENS = register(
    streamed_kind(
        "tokens",
        TOKEN_ERROR,
        "dim points positions length layers heads rank v_dim rank_share modules power ffn method",
        _describe,
        nets=(EncoderShape, AttentionNetShape),
    )
)
