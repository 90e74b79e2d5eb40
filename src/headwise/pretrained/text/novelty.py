"""Whether held-out data can tell anything: what was calibrated on, or repeats itself, cannot.

A text of one character, or of one line over and over, is predicted without loss by the original and
by what is left of it, and its parts are no documents of their own for an interval. So stretches of
16 tokens are compared word for word (inputs that are not text alone: whole): how many of those held
out are new, neither in the calibration data nor earlier in the held-out data? Logs, sources under
one licence and the like repeat themselves by more than half, and still tell something: that is
said. Where less than a tenth is new, nothing is told.
"""

from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor

from headwise.core.errors import require
from headwise.pretrained.text.calibration import Material, Sample

_STRETCH = 16
_LEAST, _MUCH = 0.1, 0.5  # a smaller share that is new is refused, or is said
_WEIGHTS = np.random.default_rng(16).integers(1, 2**63, _STRETCH, np.uint64) * np.uint64(2) + 1


def check_new(material: Material) -> None:
    """Refuse held-out data of which hardly any are new."""
    new = _new(material.held_out, material.calibration)
    require(
        new >= _LEAST,
        f"{material.samples[0].source} can tell nothing: {100 * (1 - new):.0f} % of it stands word "
        "for word in the calibration data or earlier in itself, and damage there says nothing of "
        "other data; give more text, text that does not repeat itself, or another eval_text",
    )


def repetitions(calibration: Sample, held_out: Sample) -> list[str]:
    """Warnings: of either text less than half is new."""
    said = []
    new = _new(calibration.batches)
    if new < _MUCH:
        said.append(
            f"{100 * (1 - new):.0f} % of the calibration text {calibration.source} repeats itself "
            "word for word: what was measured there may not hold for other text"
        )
    new = _new(held_out.batches, calibration.batches)
    if new < _MUCH:
        said.append(
            f"{100 * (1 - new):.0f} % of {held_out.source} stands word for word in the calibration "
            "text or earlier in itself: damage on other text may be more, its interval wider"
        )
    return said


def _new(batches: list[dict[str, Tensor]], known: list[dict[str, Tensor]] | None = None) -> float:
    """The share that is met for the first time, and is not in what is known."""
    found = _stretches(batches)
    new = np.setdiff1d(found, _stretches(known)) if known else np.unique(found)
    return new.size / found.size


def _stretches(batches: list[dict[str, Tensor]]) -> np.ndarray:
    """A number for each stretch of the inputs; equal stretches have equal numbers."""
    return np.concatenate([_of_tokens(b) if _is_text(b) else _of_rows(b) for b in batches])


def _is_text(batch: dict[str, Tensor]) -> bool:
    return "input_ids" in batch and not any(value.is_floating_point() for value in batch.values())


def _of_tokens(batch: dict[str, Tensor]) -> np.ndarray:
    ids = batch["input_ids"]
    if "labels" in batch and batch["labels"].shape == ids.shape:  # what was masked is no other text
        ids = torch.where(batch["labels"] == -100, ids, batch["labels"])
    if "decoder_input_ids" in batch:
        ids = torch.cat([ids, batch["decoder_input_ids"]], dim=1)
    tokens = ids.cpu().numpy().astype(np.uint64)
    length = min(_STRETCH, tokens.shape[1])
    count = tokens.shape[1] - length + 1
    parts = (tokens[:, i : i + count] * _WEIGHTS[i] for i in range(length))
    return sum(parts, np.full((len(tokens), count), length, np.uint64)).ravel()


def _of_rows(batch: dict[str, Tensor]) -> np.ndarray:
    rows = len(next(iter(batch.values())))
    digests = [blake2b(digest_size=8) for _ in range(rows)]
    for value in batch.values():
        whole = value.detach().cpu().contiguous()
        for digest, row in zip(digests, whole, strict=True):
            digest.update(row.reshape(-1).view(torch.uint8).numpy())
    return np.array([int.from_bytes(digest.digest(), "little") for digest in digests], np.uint64)
