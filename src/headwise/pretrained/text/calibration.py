"""Calibration material: text cut into batches without padding.

Statistics of padded positions would be statistics of nothing, so sequences are grouped by equal
length instead. The same material in the same order on every machine.
"""

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from headwise.core.errors import InputError, require
from headwise.core.files import read_bytes

BOUNDARY = "<|endoftext|>"
TOKENS = ("input_ids", "decoder_input_ids")
SHORTEST = 8  # tokens: below this a window has no context to attend to
# Of the packaged calibration text; each kind is evenly spaced (benchmarks: packaged_texts.py).
_DOCUMENTS = {"encyclopaedia": 34, "speech": 15, "novel": 15, "poem": 3, "play": 6, "code": 20}
_DOCUMENTS["another language"] = 13


class Sample(NamedTuple):
    """Batches to judge by, what they are of, and which document each sequence belongs to."""

    batches: list[dict[str, Tensor]]
    source: str
    documents: list[list[int]] = []  # noqa: RUF012  # by batch and row; empty: each its own
    kinds: tuple[str, ...] = ()  # what kind of text each document is, where that is known


class Material(NamedTuple):
    """Batches of model inputs to calibrate on, and others, never seen by it, to judge by.

    `other` is of another kind than the calibration data: a second verdict. `warnings` are what a
    reader of the verdict has to know.
    """

    calibration: list[dict[str, Tensor]]
    held_out: list[dict[str, Tensor]]
    source: str
    held_out_source: str = ""
    documents: list[list[int]] = []  # noqa: RUF012  # of held_out, as in Sample
    other: Sample | None = None
    warnings: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()  # of held_out, as in Sample
    more: list[dict[str, Tensor]] = []  # noqa: RUF012  # of the calibration data, for a recovery
    calibration_kinds: list[list[str]] = []  # noqa: RUF012  # by batch and row, where it is known

    @property
    def samples(self) -> list[Sample]:
        """What to judge by, the sample in charge first."""
        source = self.held_out_source or f"held-out part of {self.source}"
        first = Sample(self.held_out, source, self.documents, self.kinds)
        return [first] if self.other is None else [first, self.other]

    def as_exact(self, dtype: torch.dtype) -> "Material":
        """The same with all numbers but integers in this type, which is a model's."""

        def exact(batches: list[dict[str, Tensor]]) -> list[dict[str, Tensor]]:
            return [
                {name: x.to(dtype) if x.is_floating_point() else x for name, x in batch.items()}
                for batch in batches
            ]

        return self._replace(
            calibration=exact(self.calibration),
            held_out=exact(self.held_out),
            more=exact(self.more),
            other=self.other and self.other._replace(batches=exact(self.other.batches)),
        )


class Piece(NamedTuple):
    """Token numbers of a part of a document."""

    document: int
    ids: list[int]


def read_text(path: Path) -> str:
    """A UTF-8 text with something in it."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text (byte {error.start} cannot be read); convert it first"
        ) from error
    require(bool(text.strip()), f"{path} is empty; calibration needs text")
    return text


def packaged_text(name: str) -> str:
    """One of the packaged texts: calibration, held_out (other sources), other (another kind)."""
    if name == "held_out":
        return f"\n{BOUNDARY}\n".join(held_out_texts().values())
    return _packaged().joinpath(f"{name}.txt").read_text("utf-8")


def held_out_texts() -> dict[str, str]:
    """The packaged held-out text by its kind."""
    folder = _packaged() / "held_out"
    names = ("novel", "report", "encyclopaedia", "dictionary", "dialogue")
    return {name: folder.joinpath(f"{name}.txt").read_text("utf-8") for name in names}


def calibration_kinds() -> tuple[str, ...]:
    """What kind of text each document of the packaged calibration text is."""
    kinds = enumerate(_DOCUMENTS.items())
    placed = [((i + 0.5) / count, n, kind) for n, (kind, count) in kinds for i in range(count)]
    return tuple(kind for _, _, kind in sorted(placed))


def _packaged() -> Traversable:
    return resources.files("headwise.pretrained.text") / "packaged"


def documents(text: str) -> list[str]:
    """The texts between end-of-text marks; a file without marks is one document."""
    return [piece.strip() for piece in text.split(BOUNDARY) if piece.strip()]


def about(pieces: list[Piece], tokens: int) -> list[Piece]:
    """Evenly spaced pieces with about this many tokens together."""
    if not pieces:
        return []
    average = float(np.mean([len(piece.ids) for piece in pieces]))
    count = max(1, round(tokens / average))
    while count < len(pieces) and sum(len(p.ids) for p in spread(pieces, count)) < 0.98 * tokens:
        count += 1
    return spread(pieces, count)


def of_both_lengths(
    pieces: list[Piece], tokens: int, length: int, kinds: tuple[str, ...] = ()
) -> list[Piece]:
    """Half of the tokens in windows as they are, half in short ones from elsewhere.

    Long windows show attention over distances; short ones, at the same price, many more documents.
    Long ones are few, so they are of each kind of text in turn, if the documents' kinds are known.
    """
    full = [piece for piece in pieces if len(piece.ids) == length]
    if kinds and full:
        names = [kinds[piece.document] for piece in full]
        long = in_turn(full, names, max(1, round(tokens // 2 / length)))
    else:
        long = about(full, tokens // 2)
    short = length // 8 // 16 * 16
    if not long or short < 64:
        return about(pieces, tokens)
    used = {id(piece) for piece in long}
    others = [Piece(p.document, p.ids[:short]) for p in pieces if id(p) not in used]
    return long + about(others, tokens - sum(len(piece.ids) for piece in long))


def equal_length_batches(
    pieces: list[Piece], tokens_per_batch: int
) -> tuple[list[dict[str, Tensor]], list[list[int]]]:
    """Pieces of one length together, and the documents they are of."""
    by_length: dict[int, list[Piece]] = {}
    for piece in pieces:
        by_length.setdefault(len(piece.ids), []).append(piece)
    batches, names = [], []
    for length, group in sorted(by_length.items()):
        count = max(1, tokens_per_batch // length)
        for start in range(0, len(group), count):
            some = group[start : start + count]
            batches.append({"input_ids": torch.tensor([piece.ids for piece in some])})
            names.append([piece.document for piece in some])
    return batches, names


def spread(items: list[Any], count: int) -> list[Any]:
    """At most `count` of the items, evenly spaced."""
    if len(items) <= count:
        return items
    return [items[index] for index in np.linspace(0, len(items) - 1, count).round().astype(int)]


def in_turn(items: list[Any], kinds: list[str], count: int) -> list[Any]:
    """At most `count` of the items, as many of each kind as of any other as far as they go, evenly
    spaced within it. What does not go round is of the kinds that have most items."""
    groups: dict[str, list[Any]] = {}
    for item, kind in zip(items, kinds, strict=True):
        groups.setdefault(kind, []).append(item)
    taken = dict.fromkeys(groups, 0)
    for _ in range(min(count, len(items))):
        left = [kind for kind, group in groups.items() if taken[kind] < len(group)]
        taken[min(left, key=lambda kind: (taken[kind], -len(groups[kind])))] += 1
    return [item for kind, group in groups.items() for item in spread(group, taken[kind])]


def every_fifth(items: list[Any]) -> tuple[list[Any], list[Any]]:
    """(the others, every fifth): what is calibrated on and what is held out, both from all over."""
    return [item for i, item in enumerate(items) if i % 5 != 4], items[4::5]


def token_count(batches: list[dict[str, Tensor]]) -> int:
    """Tokens in these batches, of both texts of a pair; without any, numbers of the first input."""
    return sum(batch[name].numel() for batch in batches for name in _counted_inputs(batch))


def counted(batches: list[dict[str, Tensor]]) -> str:
    """What `token_count` counts: tokens, pixels, or numbers (of sound)."""
    name = _counted_inputs(batches[0])[0]
    return "tokens" if name in TOKENS else "pixels" if name == "pixel_values" else "numbers"


def _counted_inputs(batch: dict[str, Tensor]) -> list[str]:
    return [name for name in TOKENS if name in batch] or [next(iter(batch))]


def to_device(
    batches: list[dict[str, Tensor]], device: torch.device
) -> Iterator[dict[str, Tensor]]:
    """The batches, one at a time on the device."""
    for batch in batches:
        yield {name: tensor.to(device) for name, tensor in batch.items()}


def few_tokens(
    batches: list[dict[str, Tensor]], tokens: int, length: int, kinds: list[list[str]] | None = None
) -> list[dict[str, Tensor]]:
    """About so many tokens in inputs of at most `length`, a sequence each from evenly spaced
    batches, or of each kind of text in turn where the sequences' kinds are known; images as they
    are."""
    if "input_ids" not in batches[0]:
        return spread(batches, 4)
    if kinds:
        return _few_of_each(batches, tokens, length, kinds)
    by_length = sorted(batches, key=lambda batch: -batch["input_ids"].shape[1])
    alone = [{name: value[:1] for name, value in batch.items()} for batch in by_length]
    cut = shortened(alone, length)
    longest = cut[0]["input_ids"].shape[1]
    enough = [each for each in cut if each["input_ids"].shape[1] >= longest / 2]
    return spread(enough, max(1, round(tokens / longest)))


def _few_of_each(
    batches: list[dict[str, Tensor]], tokens: int, length: int, kinds: list[list[str]]
) -> list[dict[str, Tensor]]:
    rows = [
        ({key: value[row : row + 1] for key, value in batch.items()}, kind)
        for batch, names in zip(batches, kinds, strict=True)
        for row, kind in enumerate(names)
    ]
    cut = shortened([row for row, _ in rows], length)
    sizes = [each["input_ids"].shape[1] for each in cut]
    enough = [
        (each, kind)
        for each, size, (_, kind) in zip(cut, sizes, rows, strict=True)
        if size >= max(sizes) / 2
    ]
    count = max(1, round(tokens / max(sizes)))
    return in_turn([each for each, _ in enough], [kind for _, kind in enough], count)


def shortened(batches: list[dict[str, Tensor]], length: int) -> list[dict[str, Tensor]]:
    """Inputs of at most `length` tokens. A token that all of them end with stays their end: some
    classifiers read there."""
    ends = torch.cat([batch["input_ids"][:, -1] for batch in batches])
    closed = bool((ends == ends[0]).all())

    def cut(value: Tensor) -> Tensor:
        if value.shape[1] <= length or not closed:
            return value[:, :length]
        return torch.cat([value[:, : length - 1], value[:, -1:]], dim=1)

    return [
        {name: cut(value) if _by_token(name, batch) else value for name, value in batch.items()}
        for batch in batches
    ]


def _by_token(name: str, batch: dict[str, Tensor]) -> bool:
    """Whether the input has a number, or a row of them, for every token; an image's patches may be
    as many as there are tokens."""
    lengths = {batch[text].shape[1] for text in TOKENS if text in batch}
    return (
        not name.startswith(("pixel", "spatial"))
        and batch[name].ndim > 1
        and batch[name].shape[1] in lengths
    )
