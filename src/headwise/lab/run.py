"""A run: one network, trained on one task, from one seed. The unit of work and of storage."""

from typing import Any

from headwise.core.errors import require
from headwise.core.spec import spec, spec_hash


@spec
class Run:
    """A result is a function of this and nothing else.

    Task, network and training are specifications of one kind of run (see `kinds.py`).
    """

    task: Any
    net: Any
    training: Any
    seed: int

    def __post_init__(self) -> None:
        require(self.seed >= 0, f"the seed is {self.seed}; it is a whole number, not negative")

    @property
    def key(self) -> str:
        """The hash under which the result is stored."""
        return spec_hash(self)
