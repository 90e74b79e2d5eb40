"""What a task is: it draws data from a seed, the same on every machine. Four ways to be read.

A network that reads a sequence as a whole needs a `SequenceTask`; one that answers token by token
a `TokenTask`; one that predicts the next token of a text a `TextTask`; one that
chooses one of several answers a `ChoiceTask`. Tasks are frozen specifications: equal fields, equal
data.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

Seed = int | tuple[int, ...]


@runtime_checkable
class SequenceTask(Hashable, Protocol):
    """Sequences of tokens, each with one target."""

    @property
    def length(self) -> int:
        """Tokens in a sequence."""
        ...

    @property
    def token_dim(self) -> int:
        """Numbers in a token."""
        ...

    def sample(self, count: int, seed: Seed) -> tuple[Tensor, Tensor]:
        """(count, length, token_dim) tokens and (count,) or (count, outputs) targets."""
        ...


@runtime_checkable
class TokenTask(SequenceTask, Protocol):
    """Sequences of tokens, some of which must be answered by a vector each.

    `sample` gives targets of shape (count, answers, outputs).
    """

    @property
    def outputs(self) -> int:
        """Numbers in an answer."""
        ...

    @property
    def answers(self) -> slice:
        """The tokens whose outputs answer."""
        ...

    @property
    def scored(self) -> slice:
        """The answers that count for the score."""
        ...

    @property
    def scale(self) -> float:
        """E‖f‖²: the error of answering zero."""
        ...


class LastTokenAnswers(ABC):
    """A token task whose last token is the query, answered by a vector like a token.

    A task overrides what differs.
    """

    @property
    @abstractmethod
    def token_dim(self) -> int:
        """Numbers in a token."""

    @property
    def outputs(self) -> int:
        """Numbers in an answer: as many as in a token."""
        return self.token_dim

    @property
    def answers(self) -> slice:
        """The tokens whose outputs answer: the last."""
        return slice(-1, None)

    @property
    def scored(self) -> slice:
        """The answers that count for the score: all."""
        return slice(None)

    @property
    def scale(self) -> float:
        """E‖f‖²: the error of answering zero, where answers have length one."""
        return 1.0


@runtime_checkable
class TextTask(Hashable, Protocol):
    """Windows of a text, at each token of which the next is to be predicted."""

    @property
    def length(self) -> int:
        """Tokens in a window that predict; a window has one more, to be predicted."""
        ...

    @property
    def vocabulary(self) -> int:
        """How many different tokens there are."""
        ...

    @property
    def bytes_per_token(self) -> float:
        """It turns nats a token into bits a byte."""
        ...

    def batch(self, count: int, seed: int, step: int) -> Int[Tensor, "{count} {self.length}+1"]:
        """The training windows of a step: a function of the task, the seed and the step alone."""
        ...

    def validation(self, count: int = 0) -> Int[Tensor, "windows {self.length}+1"]:
        """`count` windows, evenly spaced over what is held out, or all (0)."""
        ...


@runtime_checkable
class ChoiceTask(Hashable, Protocol):
    """A finite set of examples, each with several answers to choose from, one of them right.

    Examples are numbered: first those to train on, apart from them those held out.
    """

    @property
    def choices(self) -> int:
        """How many answers there are to choose from."""
        ...

    @property
    def train(self) -> int:
        """Examples to train on."""
        ...

    @property
    def held_out(self) -> int:
        """Examples held out."""
        ...

    @property
    def token_dim(self) -> int:
        """Numbers in a token."""
        ...

    def check(self) -> None:
        """Refuse, with a sentence, if the data are not on this machine."""
        ...

    def examples(
        self, rows: Int[np.ndarray, " batch"], held_out: bool = False
    ) -> tuple[Float[Tensor, "batch *sequence token_dim"], Int[Tensor, " batch"]]:
        """The inputs of these examples and the number of the right answer of each."""
        ...
