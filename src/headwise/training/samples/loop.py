"""Training on sequences in memory: many seeds of one specification in, one outcome a seed out."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.nets.pooled import SequenceNetShape
from headwise.tasks.protocols import SequenceTask
from headwise.training.fits import check_token_dim
from headwise.training.outcome import Outcome, make_outcome
from headwise.training.samples import data
from headwise.training.samples.choose import make_engine
from headwise.training.samples.engine import Dataset
from headwise.training.samples.specification import Training
from headwise.training.samples.stacked import lanes, member_loss
from headwise.training.schedule import evaluation_segments, learning_rates
from headwise.training.session import Session

VARIANCE, NATS = "share of the target's variance", "nats a sequence"

_FRESH_FLOATS = 1 << 24  # largest block of fresh inputs held at once


def train_on_samples(
    task: SequenceTask, shape: SequenceNetShape, training: Training, session: Session
) -> list[Outcome]:
    """Train one network a seed. An outcome depends on (task, shape, training, seed) alone.

    Errors are relative to the variance of the target, or, for classes, cross-entropies in nats;
    the smallest counts. Progress is reported after every evaluation.
    """
    check_fits(task, shape)
    seeds = session.seeds
    # The seeds of a block have distinct lanes in a stack; see stacked.py.
    block = lanes(shape)
    blocks = [list(group) for _, group in groupby(sorted(seeds), lambda seed: seed // block)]
    found: dict[int, Outcome] = {}
    for index, together in enumerate(blocks):
        for fraction, outcomes in _train_block(task, shape, training, together, session.device):
            found |= {outcome.seed: outcome for outcome in outcomes}
            done = (index + fraction) / len(blocks)
            session.on_progress(done, f"training, {len(found)} of {len(seeds)} seeds done")
    return [found[seed] for seed in seeds]


def check_fits(task: SequenceTask, shape: SequenceNetShape) -> None:
    """Refuse a task that the network cannot read."""
    check_token_dim(task, shape)


def _train_block(
    task: SequenceTask,
    shape: SequenceNetShape,
    training: Training,
    seeds: Sequence[int],
    device: str,
) -> Iterator[tuple[float, list[Outcome]]]:
    """Yields the finished fraction after every evaluation, and with the last the outcomes."""
    samples = training.samples or max(training.validation, 8192)  # a stream's scale needs a sample
    train_set, validation, scale = data.load(
        task, samples, training.validation, training.data_seed, training.loss
    )
    initial = [shape.initial_params(seed) for seed in seeds]
    engine, reason = make_engine(shape, training, initial, seeds, device)

    rates = learning_rates(training)
    curves: list[list[tuple[int, float, float]]] = [[] for _ in seeds]
    for first, last in evaluation_segments(training):
        losses = [
            engine.advance(chunk, order, rates[start:stop])
            for start, stop, chunk, order in _chunks(
                task, training, scale, train_set, seeds, first, last
            )
        ]
        errors = validation_error(engine.predict(validation.inputs), validation, training.loss)
        means = np.concatenate(losses, axis=1).mean(axis=1)
        for curve, error, loss in zip(curves, errors, means, strict=True):
            curve.append((last, float(error), float(loss)))
        if last < training.steps:
            yield last / training.steps, []
    unit = VARIANCE if training.loss == "mse" else NATS
    yield (
        1.0,
        [
            make_outcome(seed, curve, unit, (engine.name, reason), scale.fold_into(shape, params))
            for seed, curve, params in zip(seeds, curves, engine.params(), strict=True)
        ],
    )


def validation_error(
    outputs: Float[Tensor, "members count outputs"], validation: Dataset, loss: str
) -> Float[np.ndarray, " members"]:
    """NMSE for regression; for classification the cross-entropy in nats."""
    targets = validation.targets.double()
    error = member_loss(outputs.double(), targets.unsqueeze(0), loss)
    if loss == "mse":
        error = error / targets.var(0, correction=0).mean()
    return error.numpy()


def _chunks(
    task: SequenceTask,
    training: Training,
    scale: data.DataScale,
    train_set: Dataset,
    seeds: Sequence[int],
    first: int,
    last: int,
) -> Iterator[tuple[int, int, Dataset, Int[np.ndarray, "members steps batch"]]]:
    """The data of a segment in pieces that fit in memory, with each member's rows."""
    if training.samples:
        order = [data.epoch_order(training.samples, training.batch, s, first, last) for s in seeds]
        yield first, last, train_set, np.stack(order)
        return
    # A block of a stream covers a fixed range of steps, so that its data depend on nothing else.
    floats_a_step = training.batch * task.length * task.token_dim
    block_steps = max(1, _FRESH_FLOATS // (floats_a_step * 16))
    for block in range(first // block_steps, (last - 1) // block_steps + 1):
        start, stop = max(first, block * block_steps), min(last, (block + 1) * block_steps)
        count = block_steps * training.batch
        parts = [data.fresh(task, scale, count, training.data_seed, s, block) for s in seeds]
        rows = np.arange(len(seeds) * count).reshape(len(seeds), block_steps, training.batch)
        offset = block * block_steps
        yield start, stop, _join(parts), rows[:, start - offset : stop - offset]


def _join(parts: list[Dataset]) -> Dataset:
    return Dataset(
        torch.cat([part.inputs for part in parts]), torch.cat([part.targets for part in parts])
    )
