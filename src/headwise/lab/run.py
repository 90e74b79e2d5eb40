"""A run: one kind of measurement, of one network on one task, from one seed.

The unit of work and of storage.
"""

from typing import Any

from headwise.core.errors import require
from headwise.core.spec import spec, spec_hash


@spec
class Run:
    """A result is a function of this and nothing else.

    `kind` names what is measured (see `headwise.lab.kinds`). `task`, `net` and `training` are the
    specifications of a task, a network and a training. What else a kind needs to know is in
    `measure`, a specification of its own. A kind that trains nothing has no training, one that
    builds its network has no net: the field is None.
    """

    kind: str
    task: Any
    net: Any = None
    training: Any = None
    measure: Any = None
    seed: int

    def __post_init__(self) -> None:
        require(
            isinstance(self.seed, int) and self.seed >= 0,
            f"the seed is {self.seed}; it is a whole number, not negative",
        )

    @property
    def key(self) -> str:
        """The hash under which the result is stored."""
        return spec_hash(self)
