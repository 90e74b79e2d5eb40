"""How far a training of an ensemble is, so that it can go on in another process."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from headwise.core.progress import OnProgress
from headwise.core.spec import spec_hash
from headwise.training.checkpoint import Checkpoint
from headwise.training.ensemble import Ensemble
from headwise.training.schedule import RateSchedule, evaluation_segments, learning_rates

_PROGRESS_STEPS = 10


class TrainingState:
    """All that, with the specification, decides how a training of an ensemble goes on.

    `work` is that specification, seeds included: a checkpoint of other work is not taken.
    """

    def __init__(self, ensemble: Ensemble, work: tuple[Any, ...], file: Checkpoint) -> None:
        self._ensemble, self._file, self._work = ensemble, file, work
        members = len(work[-1])
        self.done = 0
        self.curves: list[list[tuple[int, float, float]]] = [[] for _ in range(members)]
        self._losses = torch.zeros(members, dtype=torch.float64)  # since the last evaluation
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Spent on this training, by this process and by those before it."""
        return time.perf_counter() - self._started

    @property
    def evaluated(self) -> int:
        """The step of the last evaluation."""
        return self.curves[0][-1][0] if self.curves[0] else 0

    def run(
        self,
        training: RateSchedule,
        step: Callable[[int, float], Tensor],
        evaluate: Callable[[], Sequence[float]],
        on_progress: OnProgress,
        loss_scale: float = 1.0,
    ) -> None:
        """Train to the end from where it is, with evaluations and checkpoints.

        `step` takes a step of a given number and learning rate and returns the members' losses,
        which the curves hold in units of `loss_scale`; `evaluate` gives their errors.
        """
        rates, resumed = learning_rates(training), self.done
        for first, last in evaluation_segments(training):
            if last <= self.evaluated:
                continue
            for number in range(max(first, resumed), last):
                self._losses += step(number, float(rates[number])).cpu()
                self.done += 1
                if self.done % _PROGRESS_STEPS == 0:
                    doing = f"training, step {self.done:,} of {training.steps:,}"
                    on_progress(self.done / training.steps, doing)
                self.save_if_due()
            self._note(evaluate(), (last - first) * loss_scale)
        on_progress(1.0, "trained")

    def _note(self, errors: Sequence[float], steps: float) -> None:
        """An evaluation, `steps` steps after the one before; losses are divided by that."""
        for curve, error, loss in zip(self.curves, errors, self._losses / steps, strict=True):
            curve.append((self.done, error, float(loss)))
        self._losses = torch.zeros_like(self._losses)

    def save_if_due(self) -> None:
        """Write the checkpoint if it is time for one."""
        if self._file.due():
            numbers = {"done": self.done, "curves": self.curves, "seconds": self.seconds}
            tensors = {**self._ensemble.state(), "losses": self._losses}
            self._file.save(tensors, {"of": spec_hash(self._work), **numbers})

    def load(self) -> int:
        """Take over what was saved of this very work, if anything was; the steps done."""
        saved = self._file.load()
        if saved is None or saved[1]["of"] != spec_hash(self._work):
            return 0
        tensors, numbers = saved
        self._losses = tensors.pop("losses")
        self._ensemble.restore(tensors)
        self.done, self.curves = numbers["done"], numbers["curves"]
        self._started -= numbers["seconds"]
        return self.done
