"""What kinds that train have in common: one call of `train` for the seeds of a job."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headwise.core.device import chosen_device
from headwise.core.progress import OnProgress
from headwise.lab.kinds._columns import (
    checkpoint_of,
    columns,
    params_columns,
    token_cost,
    training_columns,
)
from headwise.lab.kinds._registry import Kind, Quantity
from headwise.lab.run import Run
from headwise.training import Outcome, Streaming, train
from headwise.training.stream.loop import TOGETHER


def train_job(job: Sequence[Run], on_progress: OnProgress, folder: Path | None) -> list[Outcome]:
    """Train the networks of a job, which differ in their seed alone, as one program."""
    first, seeds = job[0], [run.seed for run in job]
    return train(
        first.task,
        first.net,
        first.training,
        seeds,
        on_progress,
        device=chosen_device(),
        checkpoint=checkpoint_of(first, folder),
    )


def streamed_kind(
    name: str,
    error: Quantity,
    described_by: str,
    describe: Callable[[Run], Mapping[str, Any]],
    nets: tuple[type, ...],
    check: Callable[[Run], None] = lambda run: None,
) -> Kind:
    """A kind of networks that answer token by token, trained on a stream.

    `described_by` names the shared columns that `describe` fills, spaces between them; those of
    parameters and training come by themselves.
    """

    def described(run: Run) -> dict[str, Any]:
        return {**describe(run), **params_columns(run), **training_columns(run)}

    return Kind(
        name=name,
        error=error,
        columns=columns(f"{described_by} params params_attention steps batch rate"),
        describe=described,
        perform=train_job,
        cost=token_cost,
        together=lambda run: TOGETHER,
        nets=nets,
        training=Streaming,
        check=check,
    )
