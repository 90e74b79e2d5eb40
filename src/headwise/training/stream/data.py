"""The endless data of a seed.

Sequence number i of a stream is a function of the task, the stream's seed and i: sequences are
drawn in blocks whose size depends on the task alone. So the data of a seed do not depend on the
batch size, on who trains beside it or on how work is shared out; they never restart, and two seeds
never share a stream.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.tasks._measure import block_rows
from headwise.tasks.protocols import TokenTask

_TRAIN, _VALIDATION = 11, 12  # last entry of a seed: what the stream is for


class Stream:
    """Reads a stream forwards, one batch after another, from sequence number `position` on."""

    def __init__(self, task: TokenTask, data_seed: int, seed: int, position: int = 0) -> None:
        self._task, self._key = task, (data_seed, seed)
        self._rows = block_rows(task)
        self._position = position
        self._block, self._data = -1, (torch.empty(0), torch.empty(0))

    def take(
        self, count: int
    ) -> tuple[Float[Tensor, "count length token_dim"], Float[Tensor, "count answers outputs"]]:
        """The next `count` sequences and their answers."""
        parts = []
        while count > 0:
            block, start = divmod(self._position, self._rows)
            if block != self._block:
                self._block = block
                self._data = self._task.sample(self._rows, (*self._key, block, _TRAIN))
            taken = min(count, self._rows - start)
            parts.append(tuple(part[start : start + taken] for part in self._data))
            self._position += taken
            count -= taken
        if len(parts) == 1:
            return parts[0][0], parts[0][1]
        return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])


def validation_set(
    task: TokenTask, count: int, data_seed: int
) -> tuple[Float[Tensor, "count length token_dim"], Float[Tensor, "count answers outputs"]]:
    """The sequences on which every seed is scored."""
    return task.sample(count, (data_seed, _VALIDATION))
