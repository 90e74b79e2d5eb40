"""The seam between what training does and what executes it.

The loop (`loop.py`) decides on data, batches, learning rates and when to evaluate; an engine only
advances members and predicts. The stacked torch engine runs everything everywhere; the fused
engine runs one-layer networks on a CPU much faster. Both must give the same trajectory.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Dataset:
    """Sequences and targets, standardised, in memory."""

    inputs: Float[Tensor, "count length token_dim"]
    targets: Float[Tensor, "count outputs"]

    @cached_property
    def by_coordinate(self) -> Float[Tensor, "count token_dim length"]:
        """The inputs with tokens innermost, for engines that work on many tokens at a time."""
        return self.inputs.mT.contiguous()


Order = Int[np.ndarray, "members steps batch"]
"""The rows of the data that a member uses in a step."""

Rates = Float[np.ndarray, " steps"]
Losses = Float[np.ndarray, "members steps"]


@runtime_checkable
class Engine(Protocol):
    """Members of one shape, their optimizer state, and how to move them forward."""

    name: str

    def advance(self, data: Dataset, order: Order, rates: Rates) -> Losses:
        """Take the steps; member m's step s uses the rows order[m, s]. Returns training losses."""
        ...

    def predict(
        self, inputs: Float[Tensor, "count length token_dim"]
    ) -> Float[Tensor, "members count outputs"]:
        """Outputs of the current weights, without gradients, in bounded memory."""
        ...

    def params(self) -> list[dict[str, Tensor]]:
        """Copies of the current weights, one dictionary a member."""
        ...
