"""Kind "tokens": an encoder, or one attention layer, trained on a stream that never repeats."""

from typing import Any

from headwise.lab.kinds._columns import (
    columns,
    params_columns,
    power_of,
    token_cost,
    training_columns,
)
from headwise.lab.kinds._registry import Kind, Quantity, register
from headwise.lab.kinds._training import train_job
from headwise.lab.run import Run
from headwise.nets import AttentionNetShape
from headwise.nets.encoder import EncoderShape
from headwise.training import Streaming
from headwise.training.stream.loop import TOGETHER

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
        **params_columns(run),
        **training_columns(run),
    }


TOKENS = register(
    Kind(
        name="tokens",
        error=TOKEN_ERROR,
        columns=columns(
            "dim points positions length layers heads rank v_dim rank_share modules power ffn "
            "method params params_attention steps batch rate"
        ),
        describe=_describe,
        perform=train_job,
        cost=token_cost,
        together=lambda run: TOGETHER,
        nets=(EncoderShape, AttentionNetShape),
        training=Streaming,
    )
)
