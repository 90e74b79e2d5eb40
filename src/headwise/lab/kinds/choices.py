"""Kind "choices": a ViT or a ranking encoder, judged by how many training examples it gets right.

The training error is what the head-count paper reports on real data; held-out accuracy and mean
reciprocal rank stand beside it.
"""

from typing import Any

from headwise.lab.kinds._columns import (
    attention_cost,
    columns,
    params_columns,
    training_columns,
)
from headwise.lab.kinds._registry import Kind, Quantity, register
from headwise.lab.kinds._training import train_job
from headwise.lab.run import Run
from headwise.nets import RankerShape, VisionShape
from headwise.training import ChoiceTraining
from headwise.training.choices.loop import TOGETHER, check_fits, stackable

_ERROR = Quantity.by_difference(
    "training error",
    "1 − accuracy on the training examples, without dropout, after the last step",
    unit="share",
    number=".3f",
)


def _check(run: Run) -> None:
    check_fits(run.task, run.net)
    run.task.check()


def _tokens(run: Run) -> tuple[int, int]:
    """Tokens in a sequence that the network reads, and in an example."""
    packing = getattr(run.task, "packing", "")
    if packing == "pairs":
        return run.task.tokens, run.task.length * run.task.tokens
    length = run.task.length + (packing == "candidates")
    return length, length


def _cost(run: Run) -> float:
    """Tokens read (an evaluation costs a third of a step) times what a token costs."""
    length, tokens = _tokens(run)
    each = 20_000 + run.net.params()["total"] + length * attention_cost(run.net.layers, 10)
    training = run.training
    evaluated = training.evaluations * run.task.train + run.task.held_out
    return float((training.steps * training.batch + evaluated / 3) * tokens * each)


def _describe(run: Run) -> dict[str, Any]:
    layer = run.net.layers[0]
    return {
        "data": run.task.name,
        "packing": getattr(run.task, "packing", "patches"),
        "length": run.task.length,
        "frame": getattr(run.task, "frame", None),
        "layers": len(run.net.layers),
        "heads": layer.heads,
        "head_dim": layer.qk_dim,
        "total_width": run.net.width,
        "ffn": run.net.ffn,
        **params_columns(run),
        "train_examples": run.task.train,
        "epochs": round(run.training.steps * run.training.batch / run.task.train, 2),
        **training_columns(run),
    }


CHOICES = register(
    Kind(
        name="choices",
        error=_ERROR,
        columns=columns(
            "data packing length frame layers heads head_dim total_width ffn params "
            "params_attention train_examples epochs steps batch rate"
        ),
        describe=_describe,
        perform=train_job,
        cost=_cost,
        together=lambda run: TOGETHER if stackable(run.net) else 1,
        facts=columns(
            "train_accuracy held_out_accuracy train_mrr held_out_mrr examples_per_second"
        ),
        nets=(VisionShape, RankerShape),
        training=ChoiceTraining,
        check=_check,
    )
)
