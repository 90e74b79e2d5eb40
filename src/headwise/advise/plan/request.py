"""What the user has and wants."""

from dataclasses import dataclass, field
from functools import cached_property

from headwise.advise.plan.race import FEWER, FEWEST, FULL, Rungs
from headwise.allocation.fill import Layers
from headwise.allocation.schedules import schedule, uniform_heads
from headwise.core.errors import require
from headwise.lab.crew import Place, capacity
from headwise.theory.allocation import parameters
from headwise.theory.checks import positive, whole


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """A model's layers, width, length and budget, and what may be spent on measuring.

    Made only if it can be met: an impossible budget is found before anything is trained.
    """

    layers: int
    width: int
    length: int
    budget: int
    intrinsic_dim: int | None = None
    multiple: int = 4
    seconds: float = 600.0
    seed: int = 0
    place: Place = field(default_factory=lambda: Place(jobs=1))  # where trainings run
    rungs: tuple[Rungs, ...] = (FULL, FEWER, FEWEST)  # the first that the time allows

    def __post_init__(self) -> None:
        positive("seconds", self.seconds)
        whole("length", self.length)
        require(self.seed >= 0, "a seed is a whole number, not negative")
        self.schedule("uniform")
        if self.intrinsic_dim is None:
            return
        needed = whole("intrinsic_dim", self.intrinsic_dim)
        least = parameters(self.width, needed + self.layers - 1, self.multiple, self.multiple)
        require(
            self.budget >= least,
            f"{needed} heads of dimension {self.multiple} in the first of {self.layers} layers "
            f"take {least:,} attention parameters; the budget is {self.budget:,}",
        )

    @cached_property
    def workers(self) -> int:
        """How many trainings run at once."""
        return capacity(self.place)

    @property
    def heads(self) -> int:
        """Heads of a layer of the uniform schedule."""
        return uniform_heads(
            layers=self.layers, width=self.width, budget=self.budget, multiple=self.multiple
        )

    def schedule(self, name: str, first_heads: int = 1) -> Layers:
        """A named schedule of this size."""
        return schedule(
            name,
            layers=self.layers,
            width=self.width,
            budget=self.budget,
            first_heads=first_heads,
            multiple=self.multiple,
        )
