"""Calibration material: text or images cut into batches without padding.

Statistics of padded positions would be statistics of nothing, so sequences are grouped by equal
length instead. The same material in the same order on every machine.
"""

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from headwise.core.errors import InputError, require

BOUNDARY = "<|endoftext|>"
_SHORTEST = 8  # tokens: below this a window has no context to attend to


class Material(NamedTuple):
    """Batches of model inputs to calibrate on, and others, never seen by it, to judge by."""

    calibration: list[dict[str, Tensor]]
    held_out: list[dict[str, Tensor]]
    source: str


def read_text(path: Path) -> str:
    """A UTF-8 text with something in it."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text (byte {error.start} cannot be read); convert it first"
        ) from error
    require(bool(text.strip()), f"{path} is empty; calibration needs text")
    return text


def default_text() -> str:
    """The packaged calibration text: short prose of many kinds and scenes from old plays."""
    return (
        resources.files("headwise.pretrained.text").joinpath("calibration.txt").read_text("utf-8")
    )


def documents(text: str, *, lines: bool) -> list[str]:
    """Independent pieces of a text: between end-of-text marks, or else paragraph by paragraph.

    Encoders embed passages, so for them every line is a piece of its own (`lines`); decoders read
    documents, and a file without marks is one document.
    """
    pieces = text.split(BOUNDARY)
    if lines:
        pieces = [line for piece in pieces for line in piece.splitlines() if len(line) >= 40]
    return [piece.strip() for piece in pieces if piece.strip()]


def tokenise(
    tokenizer: Any, pieces: list[str], *, length: int, multiple: int, windows: bool
) -> list[list[int]]:
    """Token sequences of at most `length`, each cut down to a multiple of `multiple`.

    `windows`: a long piece gives several sequences (decoders); otherwise its beginning (encoders,
    whose closing token stays).
    """
    sequences = []
    for ids in tokenizer(pieces, verbose=False)["input_ids"]:
        if windows:
            parts = [ids[start : start + length] for start in range(0, len(ids), length)]
            sequences += [part[: len(part) // multiple * multiple] for part in parts]
        else:
            size = min(len(ids), length) // multiple * multiple
            sequences.append(ids if size == len(ids) else [*ids[: max(size - 1, 0)], *ids[-1:]])
    return [sequence for sequence in sequences if len(sequence) >= _SHORTEST]


def equal_length_batches(
    sequences: list[list[int]], tokens_per_batch: int
) -> list[dict[str, Tensor]]:
    """Sequences of one length together, at most `tokens_per_batch` tokens a batch."""
    by_length: dict[int, list[list[int]]] = {}
    for sequence in sequences:
        by_length.setdefault(len(sequence), []).append(sequence)
    batches = []
    for length, group in sorted(by_length.items()):
        count = max(1, tokens_per_batch // length)
        for start in range(0, len(group), count):
            batches.append({"input_ids": torch.tensor(group[start : start + count])})
    return batches


def spread(items: list[Any], count: int) -> list[Any]:
    """At most `count` of the items, evenly spaced."""
    if len(items) <= count:
        return items
    return [items[index] for index in np.linspace(0, len(items) - 1, count).round().astype(int)]


def every_fifth(items: list[Any]) -> tuple[list[Any], list[Any]]:
    """(the others, every fifth): what is calibrated on and what is held out, both from all over."""
    return [item for i, item in enumerate(items) if i % 5 != 4], items[4::5]


def token_count(batches: list[dict[str, Tensor]]) -> int:
    """Tokens (or pixels) in these batches."""
    return sum(next(iter(batch.values())).numel() for batch in batches)


def to_device(
    batches: list[dict[str, Tensor]], device: torch.device
) -> Iterator[dict[str, Tensor]]:
    """The batches, one at a time on the device."""
    for batch in batches:
        yield {name: tensor.to(device) for name, tensor in batch.items()}


def longest_batches(batches: list[dict[str, Tensor]], tokens: int) -> list[dict[str, Tensor]]:
    """About this many tokens of the longest sequences, none below half of the longest."""
    ordered = sorted(batches, key=lambda batch: -next(iter(batch.values())).shape[1])
    longest = next(iter(ordered[0].values())).shape[1]
    chosen: list[dict[str, Tensor]] = []
    for batch in ordered:
        if next(iter(batch.values())).shape[1] < longest / 2 or token_count(chosen) >= tokens:
            break
        chosen.append(batch)
    return chosen
