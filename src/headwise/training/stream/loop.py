"""Training token networks on streams: many seeds of one specification in, an outcome a seed out."""

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import require
from headwise.nets.base import TokenNetShape
from headwise.nets.compiled import computed_by
from headwise.tasks._measure import score
from headwise.tasks.protocols import TokenTask
from headwise.training.ensemble import Ensemble, stackable
from headwise.training.fits import check_token_dim
from headwise.training.outcome import Outcome, make_outcome
from headwise.training.session import Session
from headwise.training.state import TrainingState
from headwise.training.stream.data import Stream, validation_set
from headwise.training.stream.specification import Streaming

MEAN_SQUARE = "share of the target's mean square"

TOGETHER = 8  # seeds in a job; more members gain nothing on a CPU
_PREDICT_ROWS = 512  # sequences in a piece of the validation set


def train_on_stream(
    task: TokenTask, shape: TokenNetShape, training: Streaming, session: Session
) -> list[Outcome]:
    """Train one network a seed. An outcome depends on (task, shape, training, seed) alone.

    Errors are mean squares in units of E‖f‖², so that answering zero scores 1; the smallest
    counts. With a checkpoint file a training that was killed goes on where it was, to the same
    outcome.
    """
    check_fits(task, shape)
    seeds, device = session.seeds, session.device
    initial = [shape.initial_params(seed) for seed in seeds]
    together = None if stackable(shape, training) else 1
    ensemble = Ensemble(shape, training, initial, device, together)
    work = (task, shape, training, tuple(seeds))
    state = TrainingState(ensemble, work, session.file)
    taken = state.load() * training.batch
    streams = [Stream(task, training.data_seed, seed, taken) for seed in seeds]
    validation = validation_set(task, training.validation, training.data_seed)

    def step(number: int, rate: float) -> Tensor:
        batches = [stream.take(training.batch) for stream in streams]
        inputs, targets = (torch.stack(part).to(device) for part in zip(*batches, strict=True))
        return ensemble.step(inputs, targets, task.answers, rate)

    def evaluate() -> list[float]:
        return _errors(ensemble, task, *validation, device)

    state.run(training, step, evaluate, session.on_progress, loss_scale=task.scale)
    engine = "token ensemble", f"the only engine for token networks; {computed_by(device)}"
    return [
        make_outcome(seed, curve, MEAN_SQUARE, engine, params)
        for seed, curve, params in zip(seeds, state.curves, ensemble.params(), strict=True)
    ]


def check_fits(task: TokenTask, shape: TokenNetShape) -> None:
    """Refuse a task that the network cannot answer, and a network that has no gradient."""
    check_token_dim(task, shape)
    require(
        task.outputs == shape.outputs,
        f"the task's answers have {task.outputs} numbers, the network's outputs {shape.outputs}",
    )
    require(
        getattr(shape, "kind", "softmax") == "softmax",
        "hardmax has no gradient: build such a network, or train one with softmax",
    )


def _errors(
    ensemble: Ensemble,
    task: TokenTask,
    inputs: Float[Tensor, "count length token_dim"],
    targets: Float[Tensor, "count answers outputs"],
    device: str,
) -> list[float]:
    total: Tensor | float = 0.0
    pieces = zip(inputs.split(_PREDICT_ROWS), targets.split(_PREDICT_ROWS), strict=True)
    for piece, wanted in pieces:
        outputs = ensemble.predict(piece.unsqueeze(0).to(device)).cpu()
        total = total + score(outputs, wanted.unsqueeze(0), task).mean(-1).sum(-1)
    assert isinstance(total, Tensor)
    return [float(error) for error in total / len(inputs)]
