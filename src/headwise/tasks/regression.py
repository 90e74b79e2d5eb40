"""Linear regression in context: a sequence brings its own data set (Garg et al., 2022).

The tokens are x_1, y_1, x_2, y_2, …, x_n with y = ⟨w, x⟩, both w and x standard Gaussian; a y fills
the first coordinate of its token. At each x the network is asked for its y, from what came before.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.tasks.protocols import LastTokenAnswers


@spec
class InContextRegression(LastTokenAnswers):
    """`shots` examples, then one question more, in dimension `dim`; the score is the last's."""

    dim: int
    shots: int

    def __post_init__(self) -> None:
        require(self.dim >= 1, f"dim is {self.dim}; the least is 1")
        require(self.shots >= 1, f"shots is {self.shots}; the least is 1")

    @property
    def length(self) -> int:
        """Tokens in a sequence."""
        return 2 * self.shots + 1

    @property
    def token_dim(self) -> int:
        """Numbers in a token."""
        return self.dim

    @property
    def outputs(self) -> int:
        """Numbers in an answer."""
        return 1

    @property
    def answers(self) -> slice:
        """The query tokens: every second one."""
        return slice(0, None, 2)

    @property
    def scored(self) -> slice:
        """Of the answers, the last: the one that has seen all shots."""
        return slice(-1, None)

    @property
    def scale(self) -> float:
        """E y² = dim: the error of answering zero."""
        return float(self.dim)

    def sample(
        self, count: int, seed: int | tuple[int, ...]
    ) -> tuple[Float[Tensor, "count length dim"], Float[Tensor, "count answers 1"]]:
        """`count` sequences, each with its own w, and the right answers."""
        require(count >= 1, f"a sample of {count} sequences is empty")
        rng = np.random.default_rng(seed)
        weights = rng.standard_normal((count, self.dim, 1), np.float32)
        inputs = rng.standard_normal((count, self.shots + 1, self.dim), np.float32)
        values = inputs @ weights
        tokens = np.zeros((count, self.length, self.dim), np.float32)
        tokens[:, 0::2] = inputs
        tokens[:, 1::2, :1] = values[:, :-1]
        return torch.from_numpy(tokens), torch.from_numpy(values)

    def oracle(self, tokens: Float[Tensor, "batch length dim"]) -> Float[Tensor, "batch answers 1"]:
        """The best answers: least squares (of least norm) on the examples before each question."""
        inputs, values = tokens[:, 0::2].double(), tokens[:, 1::2, :1].double()
        answers = [torch.zeros_like(inputs[:, :1, :1])]
        for shots in range(1, self.shots + 1):
            weights = torch.linalg.pinv(inputs[:, :shots]) @ values[:, :shots]
            answers.append(inputs[:, shots : shots + 1] @ weights)
        return torch.cat(answers, 1).to(tokens.dtype)
