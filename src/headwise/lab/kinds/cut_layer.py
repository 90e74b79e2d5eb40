"""Runs that train a decoder, cut one of its layers afterwards, and measure what that costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.allocation.cut import Heads, check_can_be_cut, with_layer
from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.lab.run import Run
from headwise.nets import AttentionShape, DecoderShape
from headwise.training import Outcome, TextTraining

Way = Literal["dimension", "count", "nothing"]

LEAST = 1e-4
"""Increases of the loss below this, nats a token, are counted as this: they are noise."""
_TRAINING_WINDOWS = 48
_TRAINING_STEP = 10**9  # a step that no training reaches: its windows are fresh


@spec
class Reduced:
    """A decoder of `shape`, trained; then layer `layer` keeps a share of its parameters.

    `way`: "dimension" narrows all heads of the layer; "count" removes those whose removal costs
    least; "nothing" only trains (so that the weights are there).
    """

    shape: DecoderShape
    layer: int = 0
    way: Way = "nothing"
    keep: float = 1.0

    def __post_init__(self) -> None:
        check_can_be_cut(self.shape)
        require(self.way in ("dimension", "count", "nothing"), f"no way to cut is {self.way!r}")
        require(0 <= self.layer < len(self.shape.layers), f"there is no layer {self.layer}")
        require(0 < self.keep <= 1, "keep is a share, above 0 and at most 1")

    @property
    def kept(self) -> AttentionShape:
        """The layer's shape after the cut."""
        layer = self.shape.layers[self.layer]
        if self.way == "count":
            return AttentionShape(
                heads=max(1, round(self.keep * layer.heads)),
                qk_dim=layer.qk_dim,
                v_dim=layer.v_dim,
            )
        return AttentionShape(
            heads=layer.heads,
            qk_dim=max(1, round(self.keep * layer.qk_dim)),
            v_dim=max(1, round(self.keep * layer.v_dim)),
        )


@dataclass(frozen=True)
class Base:
    """A trained decoder, what its layers read, and the windows by which it is judged."""

    shape: DecoderShape
    weights: dict[str, Tensor]
    training: TextTraining
    inputs: list[Float[Tensor, "tokens width"]]
    seen: Int[Tensor, "windows length+1"]
    held_out: Int[Tensor, "windows length+1"]
    loss: float
    rankings: dict[int, list[int]] = field(default_factory=dict)

    def loss_of(self, shape: DecoderShape, weights: dict[str, Tensor], windows: Tensor) -> float:
        from headwise.training import Ensemble
        from headwise.training.text.loop import evaluate

        losses, _ = evaluate(Ensemble(shape, self.training, [weights], "cpu"), windows)
        return float(losses[0])

    def without(self, index: int, kept: Sequence[int], windows: Tensor) -> float:
        """The loss if of this layer only the `kept` heads stay."""
        heads = Heads.of(self.weights, index, self.shape.layers[index]).only(kept)
        return self.loss_of(*with_layer(self.shape, self.weights, index, heads), windows)

    def by_worth(self, index: int) -> list[int]:
        """The layer's heads; first the one whose removal alone costs most on windows seen."""
        if index not in self.rankings:
            everyone = range(self.shape.layers[index].heads)
            alone = {
                head: self.without(index, [h for h in everyone if h != head], self.seen)
                for head in everyone
                if len(everyone) > 1
            }
            self.rankings[index] = sorted(everyone, key=lambda head: -alone.get(head, 0.0))
        return self.rankings[index]


@lru_cache(maxsize=2)
def base(task: Any, shape: DecoderShape, training: TextTraining, seed: int) -> Base:
    """The trained decoder, from the disk if it is there."""
    from headwise.training import trained_weights

    weights = trained_weights(task, shape, training, seed)
    seen = task.batch(_TRAINING_WINDOWS, seed, _TRAINING_STEP)
    with torch.no_grad():
        stacked = {name: part[None] for name, part in weights.items()}
        inputs = [x.flatten(0, 2) for x in shape.layer_inputs(stacked, seen[None, :, :-1])]
    held_out = task.validation(training.validation)
    made = Base(shape, weights, training, inputs, seen, held_out, 0.0)
    return replace(made, loss=made.loss_of(shape, weights, held_out))


def cut_and_measure(
    job: Sequence[Run], on_progress: Callable[[float], None], _: Path | None
) -> list[Outcome]:
    """One outcome a run: the increase of the held-out loss, nats a token."""
    outcomes = []
    for number, run in enumerate(job):
        net: Reduced = run.net
        known = base(run.task, net.shape, run.training, run.seed)
        after = known.loss if net.way == "nothing" else _loss_after(known, net)
        increase = after - known.loss
        outcomes.append(
            Outcome(
                seed=run.seed,
                error=max(increase, LEAST),
                error_last=max(increase, LEAST),
                unit="nats a token",
                best_step=None,
                diverged=False,
                curve=(),
                engine="decoder",
                engine_reason="trained, then cut",
                params={},
                facts={"increase": increase, "loss": after},
            )
        )
        on_progress((number + 1) / len(job))
    return outcomes


def _loss_after(known: Base, net: Reduced) -> float:
    index, layer, kept = net.layer, known.shape.layers[net.layer], net.kept
    if net.way == "count":
        stay = sorted(known.by_worth(index)[: kept.heads])
        return known.without(index, stay, known.held_out)
    heads = Heads.of(known.weights, index, layer)
    narrow = heads.narrowed(known.inputs[index], kept.qk_dim, kept.v_dim)
    return known.loss_of(*with_layer(known.shape, known.weights, index, narrow), known.held_out)


def reduced_cost(run: Run) -> float:
    """Training, which one of many runs does first; a cut is a few evaluations."""
    tokens = run.training.batch * run.task.length
    steps = run.training.steps if run.net.way == "nothing" else 10
    return float(steps * tokens * run.net.shape.params()["total"])


def reduced_columns(run: Run) -> dict[str, Any]:
    net, kept = run.net, run.net.kept
    return {
        "text": run.task.name,
        "length": run.task.length,
        "layers": len(net.shape.layers),
        "width": net.shape.width,
        "layer": net.layer,
        "way": net.way,
        "keep": net.keep,
        "heads": kept.heads,
        "head_dim": kept.qk_dim,
        "steps": run.training.steps,
    }
