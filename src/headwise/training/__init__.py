"""Many models in one program; one seed, one result."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headwise.core.progress import OnProgress, quiet
from headwise.training import loop as _loop
from headwise.training import text as _text
from headwise.training import tokens as _tokens
from headwise.training.ensemble import Ensemble
from headwise.training.loop import Outcome
from headwise.training.memory import keep_freed_memory
from headwise.training.streaming import Streaming
from headwise.training.text_training import TextTraining
from headwise.training.training import Training
from headwise.training.weights import trained_weights

__all__ = [
    "Ensemble",
    "Outcome",
    "Streaming",
    "TextTraining",
    "Training",
    "keep_freed_memory",
    "train",
    "trained_weights",
]


def train(
    task: Any,
    shape: Any,
    training: Any,
    seeds: Sequence[int],
    on_progress: OnProgress = quiet,
    *,
    device: str = "cpu",
    checkpoint: Path | None = None,
) -> list[Outcome]:
    """Train one network a seed, whatever its shape."""

    def report(fraction: float) -> None:
        on_progress(fraction, "training")

    if isinstance(training, Training):
        return _loop.train(task, shape, training, seeds, report, device)
    do: Callable[..., list[Outcome]] = (
        _text.train_text if isinstance(training, TextTraining) else _tokens.train_tokens
    )
    return do(task, shape, training, seeds, report, device, checkpoint)
