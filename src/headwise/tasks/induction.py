"""Induction: find the previous occurrence of a token, and copy what followed it.

Tokens are symbols, one-hot. The last one is the query: it occurred once before, and the answer is
the symbol that stood behind it there. One layer cannot do it in general: what is looked for (the
symbol before) and what is copied stand at different places, so that a first layer has to bring each
token the one before it, and a second to look there (arXiv 2209.11895).
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import check_whole, require
from headwise.core.spec import spec
from headwise.tasks.protocols import LastTokenAnswers


@spec
class Induction(LastTokenAnswers):
    """Sequences of `length` tokens of `symbols` symbols; equal fields, equal data.

    The query's symbol occurs at one place before, chosen at random, and at no other; the others
    are drawn at random from the rest. Guessing evenly scores 1 − 1/(symbols − 1).
    """

    length: int
    symbols: int

    def __post_init__(self) -> None:
        check_whole(self.length, "length", 3)
        check_whole(self.symbols, "symbols", 3)

    @property
    def token_dim(self) -> int:
        """Numbers in a token."""
        return self.symbols

    @property
    def dim(self) -> int:
        """Numbers in a token, as the tables call it."""
        return self.symbols

    def sample(
        self, count: int, seed: int | tuple[int, ...]
    ) -> tuple[Float[Tensor, "count length symbols"], Float[Tensor, "count 1 symbols"]]:
        """`count` sequences and the right answers, one-hot."""
        require(count >= 1, f"a sample of {count} sequences is empty")
        rng = np.random.default_rng(seed)
        asked = rng.integers(0, self.symbols, count)
        others = rng.integers(1, self.symbols, (count, self.length))
        tokens = (asked[:, None] + others) % self.symbols  # any but the query's symbol
        place = rng.integers(0, self.length - 2, count)
        rows = np.arange(count)
        tokens[rows, place] = tokens[rows, -1] = asked
        one_hot = np.eye(self.symbols, dtype=np.float32)
        answers = one_hot[tokens[rows, place + 1]][:, None]
        return torch.from_numpy(one_hot[tokens]), torch.from_numpy(answers)

    def oracle(
        self, tokens: Float[Tensor, "batch length symbols"]
    ) -> Float[Tensor, "batch 1 symbols"]:
        """The exact answer."""
        asked, before = tokens[:, -1:], tokens[:, :-2]
        where = (before * asked).sum(-1).argmax(1)  # the one place before
        return tokens[torch.arange(len(tokens)), where + 1].unsqueeze(1)
