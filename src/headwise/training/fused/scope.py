"""What the fused engine can do, and whether it can do it here."""

from functools import cache
from typing import Any

from headwise.core.errors import InputError
from headwise.core.lazy import named
from headwise.nets.pooled import PooledShape, SequenceNetShape
from headwise.training.samples.specification import Training

COVERED = ("plain", "grouped", "banded", "window", "top-k", "linear")
"""Variants of heads that the kernel has."""

TIED = ("talking", "mixture", "gated", "differential")
"""Variants that are plain heads with tied weights at a class token (`nets/tied.py`)."""


def tied(shape: SequenceNetShape) -> bool:
    """Does the kernel train its plain twin?"""
    return isinstance(shape, PooledShape) and _title(shape) in TIED


def _title(shape: PooledShape) -> str:
    return shape.pooling.model.split(":")[0]


def covers(shape: SequenceNetShape, training: Training) -> str | None:
    """Why the fused engine cannot train such a network; None if it can."""
    if isinstance(shape, PooledShape):
        title, known = _title(shape), (*COVERED, *TIED)
        if title not in known:
            return f"the network pools by {title}; the kernel has {', '.join(known)} heads"
    if len(shape.attention_layers) != 1:
        return (
            f"the network has {len(shape.attention_layers)} attention layers; the kernel does one"
        )
    if shape.positions:
        return "the network has positions; the kernel has none"
    for part, mlp, activation in (
        ("embedding", shape.embed, "relu"),
        ("readout", shape.readout, "gelu"),
    ):
        if len(mlp.widths) != 1:
            return f"the {part} has {len(mlp.widths)} hidden layers; the kernel's has one"
        if mlp.activation != activation:
            return f"the {part}'s activation is {mlp.activation}; the kernel's is {activation}"
    if training.loss not in ("mse", "cross-entropy"):
        return f"the loss is {training.loss}; the kernel has mse and cross-entropy"
    return None


@cache
def available() -> str | None:
    """Why the kernel cannot run on this machine; None if it can.

    The first call compiles it, or loads it from the cache, and takes one step with it.
    """
    try:
        with named("headwise.core.compiled.host:compiling")():
            load_engine().try_out()
    except InputError:  # a setting that the user can mend
        raise
    except Exception as error:  # whatever goes wrong here, the other engine still works
        return f"the compiled kernel does not work here: {type(error).__name__}: {error}"
    return None


def load_tied_engine() -> Any:
    """The module of the engine for tied weights, by name for the same reason."""
    return named("headwise.training.samples.tied")


def load_engine() -> Any:
    """The module `fused.engine`, by name: where numba cannot be imported, torch still trains."""
    return named("headwise.training.fused.engine")
