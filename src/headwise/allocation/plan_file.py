"""The plan file: which heads and dimensions in which layer, why, and how far to trust it."""

from pathlib import Path
from typing import Any

from headwise.allocation.schedules import attention_parameters
from headwise.core.errors import InputError, require
from headwise.core.files import read_spec, write_spec
from headwise.core.spec import spec
from headwise.nets import AttentionShape


@spec
class Comparison:
    """Expected loss of the plan minus that of the uniform schedule, with its 95 % interval."""

    difference: float
    low: float
    high: float
    uniform: float
    unit: str
    seeds: int

    def __str__(self) -> str:
        return (
            f"{self.difference:+.4f} [{self.low:+.4f}, {self.high:+.4f}] {self.unit} against "
            f"uniform's {self.uniform:.4f}, {self.seeds} seeds"
        )


@spec
class AllocationPlan:
    """Attention layers for a model of `width` and contexts of `length`, within `budget`.

    `budget` counts attention parameters. `schedule` names where the layers come from; `checked`
    says how they were compared with others, and is empty where they were not: then the plan is
    the theory's default. `candidates` holds what was measured, a row for each.
    """

    width: int
    length: int
    layers: tuple[AttentionShape, ...]
    budget: int
    schedule: str
    reasons: tuple[str, ...]
    checked: str = ""
    against_uniform: Comparison | None = None
    candidates: tuple[dict[str, Any], ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        require(
            isinstance(self.layers, tuple)
            and len(self.layers) >= 1
            and all(isinstance(layer, AttentionShape) for layer in self.layers),
            "a plan's layers are AttentionShapes, at least one",
        )
        for name in ("width", "length", "budget"):
            value = getattr(self, name)
            require(isinstance(value, int) and value >= 1, f"a plan's {name} is at least 1")
        require(
            self.parameters <= self.budget,
            f"the plan's layers have {self.parameters:,} attention parameters, more than its "
            f"budget of {self.budget:,}",
        )

    @property
    def parameters(self) -> int:
        """Attention parameters of all layers."""
        return attention_parameters(self.width, self.layers)


def read_allocation(path: Path) -> AllocationPlan:
    """A plan from its file."""
    plan = read_spec(path, "a plan")
    if not isinstance(plan, AllocationPlan):
        raise InputError(f"{path} is not a plan made by `headwise plan`")
    return plan


def write_allocation(plan: AllocationPlan, path: Path) -> None:
    """Write atomically: the whole plan or nothing."""
    write_spec(plan, path)
