"""Training: many seeds of one specification in, one outcome a seed out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import cos, isfinite, pi
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.core.errors import require
from headwise.nets.initial import initial_params
from headwise.nets.shape import ClassTokenShape
from headwise.training import data
from headwise.training.choose import make_engine
from headwise.training.engine import Dataset
from headwise.training.stacked import lanes, member_loss
from headwise.training.training import Training

_FRESH_FLOATS = 1 << 24  # largest block of fresh inputs held at once


class RateSchedule(Protocol):
    """The part of a training's specification that says how long and how fast."""

    @property
    def steps(self) -> int: ...

    @property
    def rate(self) -> float: ...

    @property
    def warmup(self) -> float: ...

    @property
    def evaluations(self) -> int: ...


@dataclass(frozen=True)
class Outcome:
    """What came of one seed.

    `error` is the smallest validation error relative to the variance of the target (None if no
    evaluation was finite), `error_last` the one after the last step; `curve` holds (step,
    validation NMSE, mean training loss since the evaluation before). `params` are for raw data.
    `facts` are other numbers worth keeping, by name.
    """

    seed: int
    error: float | None
    error_last: float | None
    best_step: int | None
    diverged: bool
    curve: tuple[tuple[int, float | None, float | None], ...]
    engine: str
    engine_reason: str
    params: dict[str, Tensor]
    facts: Mapping[str, float] = field(default_factory=dict)
    unit: str = ""


def train(
    task: data.Task,
    shape: ClassTokenShape,
    training: Training,
    seeds: Sequence[int],
    on_progress: Callable[[float], None] | None = None,
    device: str = "cpu",
) -> list[Outcome]:
    """Train one network a seed. An outcome depends on (task, shape, training, seed) alone.

    `on_progress` is called with the finished fraction after every evaluation.
    """
    require(len(seeds) > 0 and len(set(seeds)) == len(seeds), "seeds are distinct, at least one")
    require(all(seed >= 0 for seed in seeds), "a seed is a whole number, not negative")
    require(
        task.token_dim == shape.token_dim,
        f"the task's tokens have {task.token_dim} numbers, the network takes {shape.token_dim}",
    )
    # The seeds of a block have distinct lanes in a stack; see stacked.py.
    block = lanes(shape)
    blocks = [list(group) for _, group in groupby(sorted(seeds), lambda seed: seed // block)]
    found: dict[int, Outcome] = {}
    for index, together in enumerate(blocks):
        for fraction, outcomes in _train_block(task, shape, training, together, device):
            found |= {outcome.seed: outcome for outcome in outcomes}
            if on_progress is not None:
                on_progress((index + fraction) / len(blocks))
    return [found[seed] for seed in seeds]


def _train_block(
    task: data.Task, shape: ClassTokenShape, training: Training, seeds: Sequence[int], device: str
) -> Iterator[tuple[float, list[Outcome]]]:
    """Yields the finished fraction after every evaluation, and with the last the outcomes."""
    samples = training.samples or max(training.validation, 8192)  # a stream's scale needs a sample
    train_set, validation, scale = data.load(
        task, samples, training.validation, training.data_seed, training.loss
    )
    initial = [initial_params(shape, seed) for seed in seeds]
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
            curve.append((last, error, loss))
        if last < training.steps:
            yield last / training.steps, []
    yield (
        1.0,
        [
            make_outcome(seed, curve, engine.name, reason, scale.fold_into(shape, params))
            for seed, curve, params in zip(seeds, curves, engine.params(), strict=True)
        ],
    )


def learning_rates(training: RateSchedule) -> Float[np.ndarray, " steps"]:
    """Linear warm-up to `rate`, then half a cosine down to zero."""
    warm = round(training.warmup * training.steps)
    steps = training.steps
    return np.array(
        [
            training.rate
            * (
                (step + 1) / warm
                if step < warm
                else (1 + cos(pi * (step - warm) / (steps - warm))) / 2
            )
            for step in range(steps)
        ]
    )


def evaluation_segments(training: RateSchedule) -> Iterator[tuple[int, int]]:
    """Step ranges [first, last) after each of which the networks are evaluated."""
    count = min(training.evaluations, training.steps)
    ends = [round(training.steps * (index + 1) / count) for index in range(count)]
    return iter(zip([0, *ends], ends, strict=False))


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
    task: data.Task,
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


def make_outcome(
    seed: int,
    measured: Sequence[tuple[int, float, float]],
    engine: str,
    reason: str,
    params: dict[str, Tensor],
) -> Outcome:
    """The outcome of a run that measured (step, error, mean loss); what is not finite is None."""
    curve = [(step, _finite(error), _finite(loss)) for step, error, loss in measured]
    finite = [(error, step) for step, error, _ in curve if error is not None]
    best, best_step = min(finite) if finite else (None, None)
    last = curve[-1]
    return Outcome(
        seed=seed,
        error=best,
        error_last=last[1],
        best_step=best_step,
        diverged=last[1] is None or last[2] is None,
        curve=tuple(curve),
        engine=engine,
        engine_reason=reason,
        params=params,
    )


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None
