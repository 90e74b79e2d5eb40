"""DeepSets (arXiv 1703.06114): tokens are embedded one by one, and their maximum or mean is taken.

ŷ = ρ(max_t φ(x(t)))    or    ρ(mean_t φ(x(t))),    φ and ρ the network's embedding and readout

The maximum of D channels is a retrieval target with D features by construction, the ceiling of what
heads can do; the mean has to hold the whole sequence in its width, the floor.
"""

from typing import Literal

from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.nets.layers import Hidden, Params, linear
from headwise.nets.sequence._pooling import NoExtras, Pooled


@spec
class SetPooling(NoExtras):
    """The maximum or mean of the tokens, channel by channel."""

    kind: Literal["max", "mean"]

    def __post_init__(self) -> None:
        require(self.kind in ("max", "mean"), f"kind is 'max' or 'mean', not {self.kind!r:.40}")

    @property
    def model(self) -> str:
        """Its name."""
        return f"{self.kind} pooling"

    def units(self, dim: int) -> int:
        """Channels."""
        return dim

    def pool(self, params: Params, hidden: Hidden, embedding: str) -> Pooled:
        """The maximum or the mean over tokens."""
        if self.kind == "mean":
            return linear(hidden.mean(2), params, embedding)  # a linear map of the mean
        return linear(hidden, params, embedding).amax(2)
