"""A run: one network, trained on one task, from one seed. The unit of work and of storage."""

from headwise.errors import require
from headwise.nets.shape import ClassTokenShape
from headwise.spec import spec, spec_hash
from headwise.tasks.retrieval import Retrieval
from headwise.train.training import Training


@spec
class Run:
    """A result is a function of this and nothing else."""

    task: Retrieval
    net: ClassTokenShape
    training: Training
    seed: int

    def __post_init__(self) -> None:
        require(self.seed >= 0, f"the seed is {self.seed}; it is a whole number, not negative")

    @property
    def key(self) -> str:
        """The hash under which the result is stored."""
        return spec_hash(self)

    @property
    def cost(self) -> float:
        """Relative cost, for progress bars and balance, fitted to measured times."""
        length, heads = self.task.length, self.net.layers[0].heads
        sequence = length * (heads + 2) + 100.0
        if len(self.net.layers) > 1:  # every token attends to every other, in torch
            sequence = 2000.0 + 100.0 * length + length**2 * heads
        return self.training.steps * self.training.batch * sequence
