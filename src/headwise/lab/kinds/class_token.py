"""Kind "class-token": a class-token network trained on a fixed set or stream of sequences."""

from typing import Any

from headwise.lab.kinds._columns import columns, training_columns
from headwise.lab.kinds._registry import Kind, Quantity, register
from headwise.lab.kinds._training import train_job
from headwise.lab.run import Run
from headwise.nets import ClassTokenShape
from headwise.tasks.maps import largest_overlap
from headwise.training import Training
from headwise.training.samples.choose import runs_together

_ERROR = Quantity(
    name="NMSE",
    meaning="mean squared validation error / variance of the target",
    unit="share of the target's variance",
)


def _cost(run: Run) -> float:
    """Fitted to measured times."""
    length, heads = run.task.length, run.net.layers[0].heads
    sequence = length * (heads + 2) + 100.0
    if len(run.net.layers) > 1:  # every token attends to every other, in torch
        sequence = 2000.0 + 100.0 * length + length**2 * heads
    return float(run.training.steps * run.training.batch * sequence)


def _describe(run: Run) -> dict[str, Any]:
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
        "between": _between(run.net),
        "recipe": _recipe(run),
        "params": params["total"],
        "params_mlp": params["mlp"],
        **training_columns(run),
        "samples": run.training.samples,
        "start": run.net.start,
    }


def _between(net: ClassTokenShape) -> str:
    """What lies between attention layers, in words."""
    named = {"residual": net.residual, "feed-forward": net.between > 0}
    blocks = " and ".join(name for name, there in named.items() if there) or "attention only"
    return f"{blocks}, class token waits" if net.class_token_waits else blocks


def _recipe(run: Run) -> str:
    """Steps, data and initial weights, in words."""
    training = run.training
    data = f"{training.samples:,} sequences" if training.samples else "fresh sequences"
    return f"{training.steps:,} steps, {data}, {run.net.start} start"


CLASS_TOKEN = register(
    Kind(
        name="class-token",
        error=_ERROR,
        columns=columns(
            "heads head_dim length intrinsic_dim overlap token_dim width layers residual norm "
            "between recipe params params_mlp steps batch rate samples start"
        ),
        describe=_describe,
        perform=train_job,
        cost=_cost,
        together=lambda run: runs_together(run.net, run.training),
        nets=(ClassTokenShape,),
        training=Training,
    )
)
