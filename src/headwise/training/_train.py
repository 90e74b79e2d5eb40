"""One `train`, whatever the network: its shape decides how data are fed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headwise.core.device import find_device
from headwise.core.errors import InputError, require
from headwise.core.progress import OnProgress, quiet
from headwise.nets import DecoderShape, RankerShape, VisionShape
from headwise.nets.base import NetShape, TokenNetShape
from headwise.nets.pooled import SequenceNetShape
from headwise.tasks.protocols import ChoiceTask, SequenceTask, TextTask, TokenTask
from headwise.training.checkpoint import Checkpoint
from headwise.training.choices.loop import train_on_choices
from headwise.training.choices.specification import ChoiceTraining
from headwise.training.outcome import Outcome
from headwise.training.samples.loop import train_on_samples
from headwise.training.samples.specification import Training
from headwise.training.session import Session
from headwise.training.stream.loop import train_on_stream
from headwise.training.stream.specification import Streaming
from headwise.training.subnormals import without_subnormals
from headwise.training.text.loop import train_on_text
from headwise.training.text.specification import TextTraining


@without_subnormals()
def train(
    task: SequenceTask | TokenTask | TextTask | ChoiceTask,
    shape: NetShape,
    training: Training | Streaming | TextTraining | ChoiceTraining,
    seeds: Sequence[int],
    on_progress: OnProgress = quiet,
    *,
    device: str = "cpu",
    checkpoint: Path | Checkpoint | None = None,
) -> list[Outcome]:
    """Train one network a seed. An outcome depends on (task, shape, training, seed) alone.

    The network's shape says what trains it, and on what:

    - a `ClassTokenShape` or `PooledShape`: `Training`, on a task of sequences with one target each
      (`Retrieval`);
    - a `DecoderShape` with a vocabulary: `TextTraining`, on a text (`Language`, `TokenArray`);
    - a `VisionShape` or a `RankerShape`: `ChoiceTraining`, on examples with answers to choose from
      (`Images`, `TextRanking`);
    - any other shape that answers token by token (`EncoderShape`, `AttentionNetShape`, a
      `DecoderShape` of real tokens): `Streaming`, on a task with answers for tokens (`Neighbours`,
      `NGram`, `InContextRegression`).

    With a `checkpoint` file, written every minute, a training that was killed goes on where it was,
    to the same outcome; networks that read a sequence as a whole, which train in minutes, start
    again.
    """
    device = find_device(device)
    require(len(seeds) > 0 and len(set(seeds)) == len(seeds), "seeds are distinct, at least one")
    require(all(seed >= 0 for seed in seeds), "a seed is a whole number, not negative")
    file = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    session = Session(seeds, on_progress, device, file)
    if isinstance(shape, SequenceNetShape):
        _pair(shape, training, Training)
        if not isinstance(task, SequenceTask) or isinstance(task, TokenTask):
            raise _misfit(task, shape, "sequences with one target each, such as Retrieval")
        assert isinstance(training, Training)
        return train_on_samples(task, shape, training, session)
    if isinstance(shape, DecoderShape) and shape.vocabulary:
        _pair(shape, training, TextTraining)
        if not isinstance(task, TextTask):
            raise _misfit(task, shape, "a text, such as Language or TokenArray")
        assert isinstance(training, TextTraining)
        return train_on_text(task, shape, training, session)
    if isinstance(shape, VisionShape | RankerShape):
        _pair(shape, training, ChoiceTraining)
        if not isinstance(task, ChoiceTask):
            raise _misfit(task, shape, "examples to choose from, such as Images or TextRanking")
        assert isinstance(training, ChoiceTraining)
        return train_on_choices(task, shape, training, session)
    require(
        isinstance(shape, TokenNetShape),
        f"{type(shape).__name__} is no network's shape: it has no token_dim, outputs, "
        "parameter_shapes, initial_params and forward",
    )
    assert isinstance(shape, TokenNetShape)
    _pair(shape, training, Streaming)
    if not isinstance(task, TokenTask):
        raise _misfit(task, shape, "sequences with answers for tokens, such as Neighbours or NGram")
    assert isinstance(training, Streaming)
    return train_on_stream(task, shape, training, session)


def _pair(shape: NetShape, training: Any, wanted: type[Any]) -> None:
    require(
        isinstance(training, wanted),
        f"{_name(shape)} is trained by {wanted.__name__}, not by {type(training).__name__}",
    )


def _misfit(task: Any, shape: NetShape, wanted: str) -> InputError:
    return InputError(f"{_name(shape)} learns from {wanted}; {type(task).__name__} is no such task")


def _name(shape: NetShape) -> str:
    name = type(shape).__name__
    if isinstance(shape, DecoderShape):
        return f"a {name} {'with a' if shape.vocabulary else 'without'} vocabulary"
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
