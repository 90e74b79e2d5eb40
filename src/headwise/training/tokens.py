"""Training token networks on streams: many seeds of one specification in, an outcome a seed out."""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from headwise.core.errors import require
from headwise.tasks.measure import TokenTask, score
from headwise.training.checkpoint import Checkpoint
from headwise.training.ensemble import Ensemble, TokenNetShape, stackable
from headwise.training.loop import Outcome, evaluation_segments, learning_rates, make_outcome
from headwise.training.state import TrainingState
from headwise.training.stream import Stream, validation_set
from headwise.training.streaming import Streaming

TOGETHER = 8  # more members gain nothing on a CPU
_PREDICT_ROWS = 512  # sequences in a piece of the validation set


def train_tokens(
    task: TokenTask,
    shape: TokenNetShape,
    training: Streaming,
    seeds: Sequence[int],
    on_progress: Callable[[float], None] | None = None,
    device: str = "cpu",
    checkpoint: Path | None = None,
    checkpoint_seconds: float = 60.0,
) -> list[Outcome]:
    """Train one network a seed. An outcome depends on (task, shape, training, seed) alone.

    Errors are mean squares in units of E‖f‖², so that answering zero scores 1. With a `checkpoint`
    file a training that was killed goes on where it was, to the same outcome.
    """
    require(len(seeds) > 0 and len(set(seeds)) == len(seeds), "seeds are distinct, at least one")
    require(all(seed >= 0 for seed in seeds), "a seed is a whole number, not negative")
    _check(task, shape)
    initial = [shape.initial_params(seed) for seed in seeds]
    ensemble = Ensemble(shape, training, initial, device, stackable(shape, training))
    file = Checkpoint(checkpoint, checkpoint_seconds)
    state = TrainingState(ensemble, (task, shape, training, tuple(seeds)), file)
    resumed = state.load()
    streams = [Stream(task, training.data_seed, seed, resumed * training.batch) for seed in seeds]
    validation = validation_set(task, training.validation, training.data_seed)
    rates = learning_rates(training)
    for first, last in evaluation_segments(training):
        if last <= state.evaluated:
            continue
        for step in range(max(first, resumed), last):
            batches = [stream.take(training.batch) for stream in streams]
            inputs, targets = (torch.stack(part).to(device) for part in zip(*batches, strict=True))
            loss = ensemble.step(inputs, targets, task.answers, float(rates[step]))
            state.count(loss.cpu())
            state.save_if_due()
        errors = _errors(ensemble, task, *validation, device)
        state.note(errors, (last - first) * task.scale)
        if on_progress is not None:
            on_progress(last / training.steps)
    return [
        make_outcome(seed, curve, "token ensemble", "the only engine for token networks", params)
        for seed, curve, params in zip(seeds, state.curves, ensemble.params(), strict=True)
    ]


def _errors(
    ensemble: Ensemble, task: TokenTask, inputs: Tensor, targets: Tensor, device: str
) -> list[float]:
    total: Tensor | float = 0.0
    pieces = zip(inputs.split(_PREDICT_ROWS), targets.split(_PREDICT_ROWS), strict=True)
    for piece, wanted in pieces:
        outputs = ensemble.predict(piece.unsqueeze(0).to(device)).cpu()
        total = total + score(outputs, wanted.unsqueeze(0), task).mean(-1).sum(-1)
    assert isinstance(total, Tensor)
    return [float(error) for error in total / len(inputs)]


def _check(task: TokenTask, shape: TokenNetShape) -> None:
    require(
        task.token_dim == shape.token_dim,
        f"the task's tokens have {task.token_dim} numbers, the network takes {shape.token_dim}",
    )
    require(
        task.outputs == shape.outputs,
        f"the task's answers have {task.outputs} numbers, the network's outputs {shape.outputs}",
    )
    require(
        getattr(shape, "kind", "softmax") == "softmax",
        "hardmax has no gradient: build such a network, or train one with softmax",
    )
