"""A trained decoder from which measurements start: its weights, and what its layers read."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.allocation.cut import Heads, with_layer
from headwise.core.progress import OnProgress
from headwise.lab.run import Run
from headwise.nets.decoder import DecoderShape
from headwise.training import Ensemble, TextTraining, trained_weights
from headwise.training.text.loop import evaluate

_TRAINING_WINDOWS = 48
_TRAINING_STEP = 10**9  # a step that no training reaches: its windows are fresh


@dataclass(frozen=True)
class TrainedDecoder:
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
        """The mean loss of these weights on these windows, nats a token."""
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


def train_first(run: Run, on_progress: OnProgress) -> None:
    """Train the run's decoder if its weights are not kept yet, and say how far that is."""
    trained_weights(run.task, run.net, run.training, run.seed, on_progress)


@lru_cache(maxsize=2)
def trained_decoder(
    task: Any, shape: DecoderShape, training: TextTraining, seed: int
) -> TrainedDecoder:
    """The trained decoder, from the disk if it is there."""
    weights = trained_weights(task, shape, training, seed)
    seen = task.batch(_TRAINING_WINDOWS, seed, _TRAINING_STEP)
    inputs = layer_inputs(shape, weights, seen[:, :-1])
    held_out = task.validation(training.validation)
    made = TrainedDecoder(shape, weights, training, inputs, seen, held_out, 0.0)
    return replace(made, loss=made.loss_of(shape, weights, held_out))


def layer_inputs(
    shape: DecoderShape, params: dict[str, Tensor], tokens: Int[Tensor, "windows length"]
) -> list[Float[Tensor, "tokens width"]]:
    """What every layer's attention reads."""
    with torch.no_grad():
        stacked = {name: part[None] for name, part in params.items()}
        return [x.flatten(0, 2) for x in shape.layer_inputs(stacked, tokens[None])]
