"""Which engine trains a specification, and why."""

import os
import warnings
from collections.abc import Sequence
from functools import cache

from torch import Tensor

from headwise.core.errors import require
from headwise.nets.pooled import SequenceNetShape
from headwise.training.fused.scope import available, covers, load_engine, load_tied_engine, tied
from headwise.training.samples.engine import Engine
from headwise.training.samples.specification import Training
from headwise.training.samples.stacked import StackedEngine, lanes

CHOICE = "HEADWISE_ENGINE"  # the environment may ask for one engine: fused or stacked


def choose_engine(shape: SequenceNetShape, training: Training, device: str) -> tuple[str, str]:
    """Name of the fastest engine that applies, and the reason for it."""
    wanted = os.environ.get(CHOICE, "")
    require(wanted in ("", "fused", "stacked"), f"{CHOICE} is fused or stacked, not {wanted!r}")
    if wanted == "stacked":
        return "stacked", f"asked for by {CHOICE}"
    if device != "cpu":
        return "stacked", f"trains on {device}"
    uncovered = covers(shape, training)
    if uncovered is not None:
        return "stacked", uncovered
    broken = available()
    if broken is not None:
        _say_once(broken)
        return "stacked", broken
    how = ", as plain heads with tied weights" if tied(shape) else ""
    return "fused", f"one layer on a CPU{how}"


def make_engine(
    shape: SequenceNetShape,
    training: Training,
    params: Sequence[dict[str, Tensor]],
    seeds: Sequence[int],
    device: str = "cpu",
) -> tuple[Engine, str]:
    """The chosen engine, ready, and the reason for the choice."""
    name, reason = choose_engine(shape, training, device)
    if name == "fused" and tied(shape):  # pooled, and members in lanes
        return load_tied_engine().TiedEngine(shape, training, params, seeds), reason
    if name == "fused":
        return load_engine().FusedEngine(shape, training, params), reason
    return StackedEngine(shape, training, params, seeds, device), reason


def runs_together(shape: SequenceNetShape, training: Training) -> int:
    """How many consecutive seeds of a specification are best trained as one job."""
    return 1 if covers(shape, training) is None and not tied(shape) else lanes(shape)


@cache
def _say_once(reason: str) -> None:
    warnings.warn(f"{reason}; training goes on with torch, slower", RuntimeWarning, stacklevel=2)
