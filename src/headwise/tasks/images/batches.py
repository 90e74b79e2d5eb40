"""CIFAR-10's own batch files, read without running anything that is in them.

torchvision keeps CIFAR-10 as pickles, and unpickling a file runs what the file says. Here the
pickle's instructions are listed, not followed: the pixels are its one long string, the labels the
small integers between the word "labels" and the next string.
"""

import pickletools
from pathlib import Path

import numpy as np

from headwise.core.errors import InputError, require
from headwise.core.files import reason
from headwise.tasks.images.stored import Pictures

_RECORD = 1 + 3072  # a label, then 32 × 32 reds, greens, blues


def read_binary(path: Path) -> Pictures:
    """A batch of the binary form: records of a label and the pixels, colour by colour."""
    data = np.frombuffer(_bytes(path), np.uint8)
    require(
        len(data) > 0 and len(data) % _RECORD == 0,
        f"{path} is no CIFAR-10 batch: {len(data):,} bytes are no multiple of {_RECORD}",
    )
    records = data.reshape(-1, _RECORD)
    return _upright(records[:, 1:]), records[:, 0].astype(np.int64)


def read_pickled(path: Path) -> Pictures:
    """A batch of the form that torchvision keeps."""
    labels: list[int] = []
    pixels, last = b"", ""
    try:
        for instruction, value, _ in pickletools.genops(_bytes(path)):
            if isinstance(value, str | bytes):
                text = value.encode("latin-1") if isinstance(value, str) else value
                pixels = max(pixels, text, key=len)
                last = text[:16].decode("latin-1")
            elif isinstance(value, int) and last == "labels" and "INT" in instruction.name:
                labels.append(value)
    except (ValueError, UnicodeError) as error:
        raise InputError(f"{path} is no CIFAR-10 batch: {error}") from error
    require(
        len(pixels) == 3072 * len(labels) and len(labels) > 0,
        f"{path} is no CIFAR-10 batch: {len(labels):,} labels and {len(pixels):,} bytes of pixels",
    )
    return _upright(np.frombuffer(pixels, np.uint8).reshape(-1, 3072)), np.array(labels, np.int64)


def _upright(rows: np.ndarray) -> np.ndarray:
    """Colour by colour becomes pixel by pixel."""
    return rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1).copy()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}") from error
