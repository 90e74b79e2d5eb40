"""Next-token prediction on a text.

The split is by place: the last tenth of the text is held out, whatever the seed. A training window
lies wholly before the boundary and a validation window wholly behind it, so no token is in both.
"""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int
from torch import Tensor

from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.tasks import corpus
from headwise.tasks.windows import cut_windows, evenly_spaced

_TRAIN = 0x7E87


@spec
class Language:
    """Windows of `length` tokens, at each of which the next token is to be predicted.

    `sha256` is that of the text's bytes, `tokenizer` "bytes" or the SHA-256 of a tokenizer's
    definition: the data are a function of these fields. The text itself is looked up in the cache,
    where `from_file` and `from_hub` put it. `tokens` and `bytes` are the sizes of the text.
    """

    name: str
    sha256: str
    tokens: int
    bytes: int
    length: int
    vocabulary: int = 256
    tokenizer: str = corpus.BYTES
    held_out: float = 0.1

    def __post_init__(self) -> None:
        require(self.length >= 1, f"length is {self.length}; the least is 1")
        require(0 < self.held_out < 1, "held_out is a share of the text, between 0 and 1")
        needed = self.length + 1
        shorter = min(self.boundary, self.tokens - self.boundary)
        require(
            shorter >= needed,
            f"{self.name} has {self.tokens:,} tokens, of which {self.tokens - self.boundary:,} are "
            f"held out: too few for a length of {self.length}, whose windows have {needed} tokens; "
            "give a longer text or a shorter length",
        )

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        length: int,
        *,
        tokenizer: str = corpus.BYTES,
        name: str = "",
        held_out: float = 0.1,
        unseen: float = 0.0,
    ) -> "Language":
        """A local file, as bytes or by a tokenizer (a tokenizer.json, or a name on the hub).

        The last `unseen` of it, a share, is left alone: what is chosen here can be scored there.
        """
        content = corpus.without_end(corpus.read_content(path), unseen)
        return cls._of(content, name or Path(path).stem, length, tokenizer, held_out)

    @classmethod
    def from_hub(
        cls,
        dataset: str,
        length: int,
        *,
        split: str = "train",
        column: str = "text",
        tokenizer: str = corpus.BYTES,
        held_out: float = 0.1,
    ) -> "Language":
        """A dataset of the hub ('name' or 'name:configuration'), its rows as one text."""
        content = corpus.hub_content(dataset, split, column)
        return cls._of(content, dataset, length, tokenizer, held_out)

    @classmethod
    def _of(
        cls, content: Any, name: str, length: int, tokenizer: str, held_out: float
    ) -> "Language":
        made = None if tokenizer == corpus.BYTES else corpus.load_tokenizer(tokenizer)
        digest, kind, count, vocabulary = corpus.add(content, made)
        return cls(
            name=name,
            sha256=digest,
            tokens=count,
            bytes=len(content),
            length=length,
            vocabulary=vocabulary,
            tokenizer=kind,
            held_out=held_out,
        )

    @property
    def boundary(self) -> int:
        """The first token that is held out."""
        return self.tokens - round(self.tokens * self.held_out)

    @property
    def cached_files(self) -> tuple[str, ...]:
        """What it reads, by place in the cache folder: a node that lacks it is sent it."""
        return (corpus.cached_file(self.sha256, self.tokenizer),)

    @property
    def bytes_per_token(self) -> float:
        """Over the whole text; it turns nats a token into bits a byte."""
        return self.bytes / self.tokens

    def batch(self, count: int, seed: int, step: int) -> Int[Tensor, "{count} {self.length}+1"]:
        """The training windows of a step: a function of the task, the seed and the step alone."""
        require(count >= 1, f"a batch of {count} windows is empty")
        rng = np.random.default_rng([seed, step, _TRAIN])
        return self._cut(rng.integers(0, self.boundary - self.length, count))

    def validation(self, count: int = 0) -> Int[Tensor, "windows {self.length}+1"]:
        """`count` windows, evenly spaced over the held-out text, or all (0).

        Neighbouring windows share one token, the last of one and the first of the next: every
        token but the first is predicted once.
        """
        starts = np.arange(self.boundary, self.tokens - self.length, self.length)
        return self._cut(evenly_spaced(starts, count))

    def _cut(self, starts: Int[np.ndarray, " windows"]) -> Int[Tensor, "windows {self.length}+1"]:
        ids = corpus.tokens(self.sha256, self.tokenizer, self.name)
        require(
            len(ids) == self.tokens,
            f"the cached text of {self.name} has {len(ids)} tokens, not {self.tokens}; delete it",
        )
        return cut_windows(ids, starts, self.length)
