"""Measurements on disk, by the content of model, data and options, and what the original says.

Numbers are stored as float32, and a fresh measurement is rounded alike, so that it makes no
difference whether one was stored. Sums of a measurement under way are stored too, unrounded: what
was stopped goes on from there.
"""

import hashlib
import json
import os
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from headwise.core.cache import cache_folder
from headwise.core.files import appearing
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.comparing import Objective

_FORMAT = 5  # of the files, and of what is measured: raise it when either changes
_KEPT = {  # how many of each kind; the oldest goes first
    "*.measurement.safetensors": 12,
    "*.sums-*.safetensors": 12,  # of measurements that were stopped or killed
    "*.outputs.safetensors": 24,  # of two texts beside each measurement
    "*.trial.safetensors": 48,  # of four kinds of plans beside each measurement
    "*.plans.safetensors": 48,
    "*.tokens.safetensors": 84,  # of seven texts
    ".writing-*": 12,
}
_SECONDS = 60.0  # between two writes of unfinished sums

Tensors = dict[str, Tensor]


def measurement_key(
    model: Any,
    sites: list[AttentionSite],
    batches: list[dict[str, Tensor]],
    objective: Objective,
    seed: int,
) -> str:
    """A hash of all that a measurement depends on; what the adapter says is a part of it."""
    return _key(model, batches, objective, [repr(sites), seed], {})


def outputs_key(
    model: Any,
    batches: list[dict[str, Tensor]],
    objective: Objective,
    options: list[str] | None = None,
    tensors: Tensors | None = None,
) -> str:
    """A hash of all that the model's outputs depend on, of how they are looked at, and of what a
    change of them depends on besides."""
    return _key(model, batches, objective, options or [], objective.state() | (tensors or {}))


def _key(
    model: Any,
    batches: list[dict[str, Tensor]],
    objective: Objective,
    options: list[Any],
    tensors: Tensors,
) -> str:
    digest = hashlib.sha256()
    config = {k: v for k, v in model.config.to_dict().items() if k not in _UNIMPORTANT}
    about = [_FORMAT, type(model).__name__, config, type(objective).__name__, objective.options()]
    digest.update(json.dumps([*about, *options], sort_keys=True, default=str).encode())
    for name, tensor in (model.state_dict() | tensors).items():
        _add(digest, name, tensor)
    for index, batch in enumerate(batches):
        for name, tensor in batch.items():
            _add(digest, f"{index}.{name}", tensor)
    return digest.hexdigest()[:32]


_UNIMPORTANT = {"_name_or_path", "name_or_path", "transformers_version"}


def _add(digest: Any, name: str, tensor: Tensor) -> None:
    digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
    whole = tensor.detach().cpu().contiguous().flatten()
    if whole.numel():
        digest.update(whole.view(torch.uint8).numpy())


class Sums:
    """What is added up of one layer: totals by name, over so many tokens and units."""

    def __init__(self) -> None:
        self.totals: Tensors = {}
        self.tokens = 0
        self.units = 0


def stored(sums: Sequence[Sums], done: int) -> Tensors:
    """The sums of all layers after so many batches."""
    # An encoder's layers and a decoder's see different numbers of tokens.
    counts = [[done, layer.tokens, layer.units] for layer in sums]
    tensors = {"counts": torch.tensor(counts)}
    for index, layer in enumerate(sums):
        tensors |= {f"{index}.{name}": total.cpu() for name, total in layer.totals.items()}
    return tensors


def restored(sums: Sequence[Sums], tensors: Tensors | None) -> int:
    """Go on from stored sums; how many batches they are of."""
    if tensors is None:
        return 0
    counts = tensors.pop("counts").tolist()
    for layer, (_, tokens, units) in zip(sums, counts, strict=True):
        layer.tokens, layer.units = tokens, units
    for key, total in tensors.items():
        index, name = key.split(".", 1)
        sums[int(index)].totals[name] = total
    return int(counts[0][0])


class Kept:
    """The files under one key; with key None there are none, and nothing is kept."""

    def __init__(self, key: str | None) -> None:
        self._folder = cache_folder() / "measurements"
        self._key = key
        self._written = time.monotonic()

    def read(self, name: str = "measurement") -> Tensors | None:
        """What was written under this name; None if nothing was, or if it cannot be read."""
        path = self._path(name)
        if path is None or not path.is_file():
            return None
        try:
            tensors: Tensors = load_file(path)
        except (SafetensorError, OSError):
            return None  # a damaged file is measured again
        os.utime(path)
        return tensors

    def write(self, tensors: Tensors, name: str = "measurement") -> None:
        """Keep these; a cache that cannot be written is no reason to fail."""
        path = self._path(name)
        if path is None:
            return
        try:
            with appearing(path) as scratch:
                save_file(tensors, scratch)
        except (ValueError, OSError, SafetensorError):
            return
        self._written = time.monotonic()

    @property
    def due(self) -> bool:
        """Is it time to write unfinished sums?"""
        return self._key is not None and time.monotonic() - self._written > _SECONDS

    def finish(self, tensors: Tensors, name: str = "measurement") -> None:
        """Keep what is whole; its unfinished sums, and the oldest files of others, go."""
        self.write(tensors, name)
        if self._key is None or not self._folder.is_dir():
            return
        for unfinished in self._folder.glob(f"{self._key}.sums*"):
            unfinished.unlink(missing_ok=True)
        for kind, count in _KEPT.items():
            for old in sorted(self._folder.glob(kind), key=_age)[count:]:
                old.unlink(missing_ok=True)

    def _path(self, name: str) -> Path | None:
        return None if self._key is None else self._folder / f"{self._key}.{name}.safetensors"


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:  # another process was done with it
        return inf
