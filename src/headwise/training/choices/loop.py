"""Training networks that choose: many seeds of one specification in, an outcome a seed out.

On a CPU narrow networks are stacked, wide ones are computed one after the other: four ViTs of
width 16 ran 1.6 times as fast stacked, of width 32 1.3 times, of width 64 and more no faster
(AVX2, one thread). Whether they are stacked depends on the shape alone, and a lone member of such a
shape is stacked with its double: torch computes a batch of one on another path than larger ones,
which agree to the last bit. So a member's outcome does not depend on its neighbours. On another
device all are stacked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from headwise.core.errors import require
from headwise.nets import RankerShape, VisionShape
from headwise.tasks.images import Images
from headwise.tasks.protocols import ChoiceTask
from headwise.tasks.text_ranking import TextRanking
from headwise.training.choices.data import dropout, rows_of_step
from headwise.training.choices.specification import ChoiceTraining
from headwise.training.ensemble import Ensemble
from headwise.training.fits import check_token_dim
from headwise.training.outcome import Outcome, make_outcome
from headwise.training.session import Session
from headwise.training.state import TrainingState

ChoosingShape = VisionShape | RankerShape

WRONG = "share"  # of training examples that are answered wrongly
TOGETHER = 8  # seeds in a job of stacked networks

_NARROW = 32  # networks of up to this width are stacked on a CPU
_VECTOR = 16  # floats; see `training.ensemble`
_NUMBERS_AT_ONCE = 1 << 22  # bounds the examples that are evaluated at once


def train_on_choices(
    task: ChoiceTask, shape: ChoosingShape, training: ChoiceTraining, session: Session
) -> list[Outcome]:
    """Train one network a seed. An outcome depends on (task, shape, training, seed) alone.

    Errors are the share of wrong answers on the training examples; the one after the last step
    counts. With a checkpoint file a training that was killed goes on where it was.
    """
    check_fits(task, shape)
    task.check()
    seeds, device = session.seeds, session.device
    stacked = device != "cpu" or stackable(shape)
    seeds = [*seeds, *seeds] if stacked and len(seeds) == 1 else seeds
    initial = [shape.initial_params(seed) for seed in seeds]
    ensemble = Ensemble(shape, training, initial, device, None if stacked else 1)
    work = (task, shape, training, tuple(seeds))
    state = TrainingState(ensemble, work, session.file)
    state.load()
    scored: list[Scores] = []

    def step(number: int, rate: float) -> Tensor:
        rows = [rows_of_step(task.train, training.batch, seed, number) for seed in seeds]
        inputs, answers = zip(*(task.examples(each) for each in rows), strict=True)
        batch = torch.stack(inputs).to(device), torch.stack(answers).to(device)

        def loss_of(leaves: Mapping[str, Tensor], members: slice) -> Tensor:
            drop = dropout(shape.dropout, seeds[members], number, device)
            return nats(shape.forward(leaves, batch[0][members], drop), batch[1][members]).mean(1)

        return ensemble.descend(loss_of, rate, training.clip)

    def errors() -> list[float]:
        scored[:] = evaluate(ensemble, task, False, device)
        return [1 - score.accuracy for score in scored]

    state.run(training, step, errors, session.on_progress)
    speed = len(seeds) * training.steps * training.batch / state.seconds
    held_out = evaluate(ensemble, task, True, device)
    made = [
        _outcome(seed, curve, params, seen, unseen, speed)
        for seed, curve, params, seen, unseen in zip(
            seeds, state.curves, ensemble.params(), scored, held_out, strict=True
        )
    ]
    return made[: len(session.seeds)]


@dataclass(frozen=True)
class Scores:
    """Means over examples: right first answers, 1/rank of the right answer, cross-entropy."""

    accuracy: float
    mrr: float
    loss: float


def evaluate(
    ensemble: Ensemble, task: ChoiceTask, held_out: bool, device: str = "cpu"
) -> list[Scores]:
    """Every member's scores on all examples of a split."""
    count = task.held_out if held_out else task.train
    first, _ = task.examples(np.arange(1), held_out)
    rows = max(1, min(512, _NUMBERS_AT_ONCE // first.numel()))
    ranks, losses = [], []
    for start in range(0, count, rows):
        piece = np.arange(start, min(start + rows, count))
        inputs, answers = task.examples(piece, held_out)
        logits = ensemble.predict(inputs.unsqueeze(0).to(device)).cpu()
        ranks.append(rank_of(logits, answers.unsqueeze(0)))
        losses.append(nats(logits, answers.unsqueeze(0).expand(len(logits), -1)))
    return [
        Scores(float((rank == 1).double().mean()), float((1 / rank).mean()), float(loss.mean()))
        for rank, loss in zip(torch.cat(ranks, 1).double(), torch.cat(losses, 1), strict=True)
    ]


def rank_of(
    logits: Float[Tensor, "members batch choices"], answers: Int[Tensor, "#members batch"]
) -> Int[Tensor, "members batch"]:
    """The right answer's rank; whoever ties with it, or is no number, counts as before it."""
    right = logits.gather(2, answers.expand(len(logits), -1).unsqueeze(2))
    return (~(logits < right)).sum(2)


def nats(
    logits: Float[Tensor, "members batch choices"], answers: Int[Tensor, "members batch"]
) -> Float[Tensor, "members batch"]:
    """Cross-entropy of every example."""
    flat = functional.cross_entropy(logits.flatten(0, 1), answers.flatten(), reduction="none")
    return flat.unflatten(0, answers.shape)


def stackable(shape: ChoosingShape) -> bool:
    """Is the network narrow, and does every matrix start on a vector boundary?"""
    matrices = [size for name, size in shape.parameter_shapes().items() if _is_matrix(name, size)]
    return shape.width <= _NARROW and all(prod(size) % _VECTOR == 0 for size in matrices)


def _is_matrix(name: str, size: tuple[int, ...]) -> bool:
    return len(size) == 2 and not name.startswith("readout")  # the last in memory


def check_fits(task: ChoiceTask, shape: ChoosingShape) -> None:
    """Refuse a network that does not take the task's examples."""
    if isinstance(shape, VisionShape):
        require(isinstance(task, Images), "a VisionShape learns from images, such as Images")
        assert isinstance(task, Images)
        takes, given = (shape.patches, shape.outputs), (task.patches, task.classes)
        require(
            takes == given,
            f"the images have {given[0]} patches and {given[1]} classes; the network takes "
            f"{takes[0]} and has {takes[1]}",
        )
    else:
        require(isinstance(task, TextRanking), "a RankerShape learns from TextRanking")
        assert isinstance(task, TextRanking)
        require(
            task.packing == shape.packing,
            f"the task is packed as {task.packing}, the network reads {shape.packing}",
        )
    check_token_dim(task, shape)


def _outcome(
    seed: int,
    curve: Sequence[tuple[int, float, float]],
    params: dict[str, Tensor],
    seen: Scores,
    unseen: Scores,
    speed: float,
) -> Outcome:
    """The score is the last evaluation: choosing the best one would be choosing by the score."""
    engine = "choosing ensemble", "the only engine for networks that choose"
    made = make_outcome(seed, curve, WRONG, engine, params)
    facts = {
        "train_accuracy": seen.accuracy,
        "train_mrr": seen.mrr,
        "held_out_accuracy": unseen.accuracy,
        "held_out_mrr": unseen.mrr,
        "examples_per_second": speed,
    }
    return replace(made, error=made.error_last, best_step=curve[-1][0], facts=facts)
