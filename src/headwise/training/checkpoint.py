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


class Checkpoint:
    """A file to which a state is saved every so many seconds; without a path, to nowhere."""

    def __init__(self, path: Path | None, seconds: float = 60.0) -> None:
        self._path, self._seconds = path, seconds
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
        return self._path is not None and time.monotonic() - self._saved >= self._seconds

    def save(self, tensors: Mapping[str, Tensor], numbers: Any) -> None:
        """Replace what was saved before. `numbers` is JSON data."""
        if self._path is None:
            return
        held = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        try:
            with appearing(self._path) as scratch:
                save_file(held, scratch, {"numbers": json.dumps(numbers)})
        except SafetensorError as error:
            raise InputError(f"cannot write the checkpoint {self._path}: {error}") from error
        self._saved = time.monotonic()
