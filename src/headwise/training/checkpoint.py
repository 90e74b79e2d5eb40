"""Checkpoints: a training that is killed goes on from the last one, with the same result.

One safetensors file holds the tensors and, as its metadata, the numbers that belong to them.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from headwise.core.errors import InputError
from headwise.core.files import appearing

_TIMES = 50  # as long as saving took, nothing is saved again


class Checkpoint:
    """A file to which a state is saved every so many seconds; without a path, to nowhere.

    Where saving is slow it is done less often, for two percent of the time at most; with 0 seconds
    always.
    """

    def __init__(self, path: Path | None, seconds: float = 10.0) -> None:
        self._path, self._seconds, self._took = path, seconds, 0.0
        self._saved = time.monotonic()

    def load(self) -> tuple[dict[str, Tensor], Any] | None:
        """The tensors and the numbers saved last, or None."""
        if self._path is None or not self._path.exists():
            return None
        try:
            with safe_open(self._path, "pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                return tensors, json.loads(file.metadata()["numbers"])
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"the checkpoint {self._path} cannot be read ({error}); delete it to start again"
            ) from error

    def due(self) -> bool:
        """Have so many seconds passed since the last?"""
        least = max(self._seconds, _TIMES * self._took) if self._seconds else 0.0
        return self._path is not None and time.monotonic() - self._saved >= least

    def save(self, tensors: Mapping[str, Tensor], numbers: Any) -> None:
        """Replace what was saved before. `numbers` is JSON data."""
        if self._path is None:
            return
        begun = time.monotonic()
        held = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        with appearing(self._path) as scratch:
            save_file(held, scratch, {"numbers": json.dumps(numbers)})
        self._saved = time.monotonic()
        self._took = self._saved - begun
