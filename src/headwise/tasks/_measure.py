"""How well does anything answer a task? A mean over fresh sequences, with its standard error."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import require
from headwise.tasks.protocols import TokenTask

_MEASURE = 0x3EA5  # apart from every training stream
_FLOATS = 1 << 20  # largest block of sequences drawn at once


@dataclass(frozen=True)
class Measured:
    """A mean-square error in units of E‖f‖², and how far chance may have moved it."""

    error: float
    standard_error: float
    sequences: int

    def __str__(self) -> str:
        return f"{self.error:.4f} ± {self.standard_error:.4f} ({self.sequences:,} sequences)"


def block_rows(task: TokenTask) -> int:
    """Sequences in a block of the task's streams: a function of the task alone."""
    return max(1, _FLOATS // (task.length * task.token_dim))


def measure(
    answer: Callable[[Tensor], Tensor], task: TokenTask, sequences: int = 1 << 14, seed: int = 0
) -> Measured:
    """The error of `answer`, which maps tokens to outputs (batch, tokens, outputs) as a net does.

    Only the task's answering tokens are read; a function that returns those alone will do.
    """
    require(sequences >= 2, f"{sequences} sequences give no standard error; the least is 2")
    total, squares = 0.0, 0.0
    with torch.no_grad():
        for inputs, targets in _blocks(task, sequences, seed):
            errors = score(answer(inputs), targets, task).mean(-1)
            total += float(errors.sum())
            squares += float(errors.square().sum())
    mean = total / sequences
    variance = max(squares / sequences - mean**2, 0.0)
    return Measured(mean, sqrt(variance / (sequences - 1)), sequences)


def score(
    outputs: Float[Tensor, "*members batch tokens given"],
    targets: Float[Tensor, "*#members batch answers outputs"],
    task: TokenTask,
) -> Float[Tensor, "*members batch scored"]:
    """Squared error of every scored answer in units of E‖f‖²."""
    tokens = outputs.shape[-2]
    answers = outputs[..., task.answers, :] if tokens == task.length else outputs
    require(
        answers.shape[-2:] == targets.shape[-2:],
        f"outputs of shape {tuple(outputs.shape)} do not answer {tuple(targets.shape)}",
    )
    gap = answers[..., task.scored, :].double() - targets[..., task.scored, :].double()
    return gap.square().sum(-1) / task.scale


def _blocks(task: TokenTask, sequences: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    rows = block_rows(task)
    for block, start in enumerate(range(0, sequences, rows)):
        inputs, targets = task.sample(rows, (seed, block, _MEASURE))
        stop = min(rows, sequences - start)
        yield inputs[:stop], targets[:stop]
