"""Kind "pooled": a network that pools a sequence, by heads of a variant or otherwise, trained."""

from dataclasses import replace
from typing import Any

from headwise.lab.kinds._columns import columns, params_columns, training_columns
from headwise.lab.kinds._registry import register
from headwise.lab.kinds.class_token import CLASS_TOKEN
from headwise.lab.run import Run
from headwise.nets import PooledShape
from headwise.training.samples.choose import runs_together

_COSTS = {"GRU": 14.0, "convolution": 10.0, "state space": 10.0, "linear": 6.0}
"""Of a member, against a stack of heads, roughly."""


def _cost(run: Run) -> float:
    """Relative to the kernel's, fitted to measured times."""
    length, units = run.task.length, run.net.units
    sequence = length * (units + 2) + 100.0
    if runs_together(run.net, run.training) > 1:  # stacked torch
        sequence = 8 * sequence * _COSTS.get(run.net.pooling.model, 2.0) / 2
    return float(run.training.steps * run.training.batch * sequence)


def _describe(run: Run) -> dict[str, Any]:
    layers = run.net.attention_layers
    return {
        "model": run.net.pooling.model,
        "units": run.net.units,
        "heads": layers[0].heads if layers else None,
        "head_dim": layers[0].v_dim if layers else None,
        "length": run.task.length,
        "intrinsic_dim": run.task.intrinsic_dim,
        "positions": "relevant" if run.task.subsets else "irrelevant",
        "width": run.net.embed.widths[0],
        **params_columns(run),
        **training_columns(run),
    }


POOLED = register(
    replace(
        CLASS_TOKEN,
        name="pooled",
        columns=columns(
            "model units heads head_dim length intrinsic_dim positions width params "
            "params_attention steps batch rate"
        ),
        describe=_describe,
        cost=_cost,
        nets=(PooledShape,),
        home="",
    )
)
