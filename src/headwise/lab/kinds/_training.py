"""What kinds that train have in common: one call of `train` for the seeds of a job."""

from collections.abc import Sequence
from pathlib import Path

from headwise.core.device import chosen_device
from headwise.core.progress import OnProgress
from headwise.lab.kinds._columns import checkpoint_of
from headwise.lab.run import Run
from headwise.training import Outcome, train


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
