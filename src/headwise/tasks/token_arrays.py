"""Next-token prediction on token numbers of one's own: a stream, or many sequences."""

from pathlib import Path

import numpy as np
from jaxtyping import Int, Integer
from torch import Tensor

from headwise.core.array_files import read_npz
from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.tasks import corpus
from headwise.tasks.windows import cut_windows, evenly_spaced

_TRAIN = 0x70C4
_NAME = "tokens"
_HELD_OUT = 0.1


@spec
class TokenArray:
    """Windows of `length` tokens within rows of `columns`; the last tenth is held out.

    One row is a stream, split by place; more are sequences, split by row. No token is on both
    sides. `sha256` names the array in the cache, where `from_file` puts it.
    """

    name: str
    sha256: str
    rows: int
    columns: int
    length: int
    vocabulary: int

    def __post_init__(self) -> None:
        require(self.length >= 1, f"length is {self.length}; the least is 1")
        shortest = min(part[1] for part in self._parts())
        require(
            shortest > self.length,
            f"a length of {self.length} takes {self.length + 1} tokens in a row, and {self.name} "
            f"has {shortest:,}"
            + (" in its held-out tenth" if self.rows == 1 else " in a sequence"),
        )

    @classmethod
    def from_file(cls, path: str | Path, length: int, unseen: float = 0.0) -> "TokenArray":
        """An .npz with one array of integers: (tokens,) or (sequences, tokens).

        The last `unseen` of the tokens or sequences, a share, is left alone.
        """
        ids = _read(Path(path))
        require(ids.size > 0 and int(ids.min()) >= 0, "token numbers are 0 or more, and some")
        vocabulary = max(2, int(ids.max()) + 1)
        require(
            vocabulary <= 1 << 20, f"{path} holds the token {vocabulary - 1:,}; that is no token"
        )
        rows = 1 if ids.ndim == 1 else len(ids)
        require(rows == 1 or rows >= 10, f"{path} has {rows} sequences; 10 or more are needed")
        ids = ids.reshape(-1) if rows == 1 else ids
        ids = ids[: len(ids) - round(len(ids) * unseen)]
        rows, columns = (1, len(ids)) if rows == 1 else ids.shape
        kind = np.uint16 if vocabulary <= 1 << 16 else np.uint32
        digest = corpus.add_tokens(np.ascontiguousarray(ids, kind))
        return cls(
            name=Path(path).stem,
            sha256=digest,
            rows=rows,
            columns=columns,
            length=length,
            vocabulary=vocabulary,
        )

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.rows * self.columns

    @property
    def held_out(self) -> float:
        """The share that is held out."""
        return _HELD_OUT

    @property
    def cached_files(self) -> tuple[str, ...]:
        """What it reads, by place in the cache folder: a node that lacks it is sent it."""
        return (corpus.cached_file(self.sha256, _NAME),)

    @property
    def bytes_per_token(self) -> float:
        """Unknown; one, so that bits a byte are bits a token."""
        return 1.0

    def batch(self, count: int, seed: int, step: int) -> Int[Tensor, "{count} {self.length}+1"]:
        """The training windows of a step: a function of the task, the seed and the step alone."""
        rows, columns = self._parts()[0]
        rng = np.random.default_rng([seed, step, _TRAIN])
        row = rng.integers(0, rows, count)
        return self._cut(row * self.columns + rng.integers(0, columns - self.length, count))

    def validation(self, count: int = 0) -> Int[Tensor, "windows {self.length}+1"]:
        """`count` windows, evenly spaced over what is held out, or all (0)."""
        (train_rows, train_columns), (rows, columns) = self._parts()
        first = train_columns if self.rows == 1 else train_rows * self.columns
        starts = np.arange(0, columns - self.length, self.length)
        starts = (first + np.arange(rows)[:, None] * self.columns + starts).ravel()
        return self._cut(evenly_spaced(starts, count))

    def _parts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Rows and columns to train on, and held out."""
        if self.rows == 1:
            held_out = max(1, round(self.columns * _HELD_OUT))
            return (1, self.columns - held_out), (1, held_out)
        held_out = max(1, round(self.rows * _HELD_OUT))
        return (self.rows - held_out, self.columns), (held_out, self.columns)

    def _cut(self, starts: Int[np.ndarray, " windows"]) -> Int[Tensor, "windows {self.length}+1"]:
        ids = corpus.tokens(self.sha256, _NAME, self.name).reshape(-1)
        return cut_windows(ids, starts, self.length)


def _read(path: Path) -> Integer[np.ndarray, "..."]:
    arrays = read_npz(path)
    whole = {n: a for n, a in arrays.items() if a.dtype.kind in "iu" and a.ndim in (1, 2)}
    if _NAME in whole:
        return whole[_NAME]
    require(
        len(whole) == 1,
        f"{path} must hold one array of token numbers: integers, (tokens,) or (sequences, tokens), "
        f"called '{_NAME}' if there are several; it holds "
        + (", ".join(f"{n} {a.dtype}{list(a.shape)}" for n, a in arrays.items()) or "nothing")
        + ". For real-valued tokens with targets, see `headwise probe`",
    )
    return next(iter(whole.values()))
