"""From a text or a folder of images to the batches that a given model takes."""

import inspect
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.core.errors import InputError, require
from headwise.core.files import is_file, is_folder
from headwise.pretrained.adapters import family_of
from headwise.pretrained.measure.language import MaskedToken, NextToken
from headwise.pretrained.measure.objectives import Embedding, objective_for
from headwise.pretrained.text.calibration import (
    Material,
    Piece,
    Sample,
    about,
    documents,
    equal_length_batches,
    every_fifth,
    of_both_lengths,
    packaged_text,
    passages,
    read_text,
    token_count,
    windows,
)
from headwise.pretrained.text.images import image_material
from headwise.pretrained.text.limits import DECODER_LENGTH, longest_input
from headwise.pretrained.text.masking import mask_tokens

_LOGITS_AT_ONCE = 2**24  # bounds a batch by what its predictions take: 64 MB of float32
_PACKAGED = {
    "calibration": "packaged text (encyclopaedia, speeches, novels, plays, Python, 13 languages)",
    "held_out": "packaged text of other sources (novel, report, dictionaries, dialogue)",
    "other": "packaged text of another kind (JavaScript, C, dialogue in 8 languages)",
}
_FEW = 5  # documents: with fewer, every sequence counts as one
_MASKED = 4  # times as much text to judge by where a model predicts 15 % of it
_WINDOWS = {"held_out": 6, "other": 3}  # at least so many sequences, if the text has them

Source = str | Path | Material | None
"""Where calibration material comes from: a file (or folder of images), ready batches, or None."""


class _Reader:
    """Cuts texts as one model reads them."""

    def __init__(self, model: Any, tokenizer: Any, length: int | None, seed: int) -> None:
        self.model, self.tokenizer, self.seed = model, tokenizer, seed
        objective = objective_for(model)
        self.decoder = isinstance(objective, NextToken)
        self.masked = isinstance(objective, MaskedToken)
        self.pairs = _reads_pairs(model)
        longest = longest_input(model, tokenizer)
        require(
            length is None or longest is None or length <= longest,
            f"length is {length}; this model takes at most {longest} tokens",
        )
        self.length = length or min(DECODER_LENGTH if self.decoder else 512, longest or 2**20)

    def pieces(self, text: str, source: str, multiple: int) -> list[Piece]:
        """All sequences of a text."""
        texts = documents(text)
        found = (windows if self.decoder else passages)(
            self.tokenizer, texts, self.length, multiple
        )
        require(bool(found), f"{source} is too short: no piece of it has 8 tokens")
        if len(texts) >= _FEW:
            return found
        return [Piece(number, piece.ids) for number, piece in enumerate(found)]

    def batches(self, pieces: list[Piece], part: int) -> tuple[list[Any], list[list[int]]]:
        """Model inputs, and the documents they are of; `part` tells the texts' masks apart."""
        at_once = max(self.length, min(2048, _LOGITS_AT_ONCE // _classes(self.model)))
        if _reads_one_at_a_time(self.model):
            at_once = 1
        found, names = equal_length_batches(pieces, at_once)
        if self.pairs:
            found = [_in_halves(batch["input_ids"]) for batch in found]
        if self.masked:
            found = mask_tokens(found, self.tokenizer, self.seed, part)
        return found, names


def _reads_pairs(model: Any) -> bool:
    """Encoder–decoders that go on with a text; those that classify give their decoder the whole of
    it themselves, and of some only one half is there."""
    goes_on = isinstance(objective_for(model), NextToken | Embedding)
    takes_two = "decoder_input_ids" in inspect.signature(model.forward).parameters
    return family_of(model).reads == "text pairs" and takes_two and goes_on


def _in_halves(ids: Tensor) -> dict[str, Tensor]:
    """The first half for the encoder, the second for the decoder to go on with."""
    half = ids.shape[1] // 2
    return {"input_ids": ids[:, :half], "decoder_input_ids": ids[:, half:]}


def text_material(
    model: Any,
    tokenizer: Any,
    text: str | Path | None = None,
    *,
    eval_text: str | Path | None = None,
    tokens: int = 20_000,
    length: int | None = None,
    seed: int = 0,
) -> Material:
    """Calibrate on `text` (the packaged one by default) and judge by `eval_text`.

    Without `eval_text` every fifth document (or, of a single document, window) is held out; of the
    packaged text, a part from other sources. A second verdict is on packaged text of another kind
    than the calibration text. `length` is that of the longest inputs: by default 2,048 for
    decoders and 512 for encoders, or what the model has.
    """
    reader = _Reader(model, tokenizer, length, seed)
    source = str(text) if text else _PACKAGED["calibration"]
    content = read_text(Path(text)) if text else packaged_text("calibration")
    pieces = reader.pieces(content, source, 16)
    if eval_text is not None:
        held_out_source = str(eval_text)
        held_out = reader.pieces(read_text(Path(eval_text)), held_out_source, 1)
    elif text:
        held_out_source = f"held-out part of {source}"
        pieces, held_out = _split(pieces)
    else:
        held_out_source = _PACKAGED["held_out"]
        held_out = reader.pieces(packaged_text("held_out"), held_out_source, 1)
    require(
        bool(pieces) and bool(held_out),
        f"{source} is too short to hold some of it out; give more text",
    )
    chosen = (
        of_both_lengths(pieces, tokens, reader.length) if reader.decoder else about(pieces, tokens)
    )
    calibration, _ = reader.batches(chosen, 0)
    batches, names = reader.batches(_judged(held_out, tokens // 2, reader, "held_out"), 1)
    other = "held_out" if text else "other"
    others = reader.pieces(packaged_text(other), "the packaged text", 1)
    seconds = reader.batches(_judged(others, tokens // 4, reader, "other"), 2)
    return Material(
        calibration,
        batches,
        source,
        held_out_source,
        names,
        Sample(seconds[0], _PACKAGED[other], seconds[1]),
        _shortage(calibration, tokens, source),
    )


def _split(pieces: list[Piece]) -> tuple[list[Piece], list[Piece]]:
    """Every fifth document held out whole."""
    names = sorted({piece.document for piece in pieces})
    if len(names) < _FEW:
        return every_fifth(pieces)
    out = set(names[4::5])
    return [p for p in pieces if p.document not in out], [p for p in pieces if p.document in out]


def _judged(pieces: list[Piece], tokens: int, reader: _Reader, part: str) -> list[Piece]:
    """About so many tokens; a decoder's in sequences as long as it reads, as far as they go."""
    tokens = max(tokens, _WINDOWS[part] * reader.length) * (_MASKED if reader.masked else 1)
    if not reader.decoder:
        return about(pieces, tokens)
    full = about([piece for piece in pieces if len(piece.ids) == reader.length], tokens)
    left = tokens - len(full) * reader.length
    shorter = [piece for piece in pieces if len(piece.ids) < reader.length]
    return full if left < 0.02 * tokens else full + about(shorter, left)


def _shortage(batches: list[Any], tokens: int, source: str) -> tuple[str, ...]:
    found = token_count(batches)
    if found >= 0.9 * tokens:
        return ()
    return (f"{source} gives {found:,} calibration tokens where {tokens:,} were asked for",)


def check_source(text: Source, eval_text: str | Path | None = None) -> None:
    """Refuse, before a model is loaded, what is not there."""
    for place in (text, eval_text):
        if isinstance(place, str | Path):
            there = is_file(Path(place)) or is_folder(Path(place))
            require(there, f"cannot read {place}: no such file or folder")
    require(
        eval_text is None or not isinstance(text, Material),
        "ready batches have their held-out ones: leave eval_text out",
    )


def material_for(
    model: Any,
    tokenizer: Any,
    text: Source = None,
    eval_text: str | Path | None = None,
    tokens: int = 20_000,
    seed: int = 0,
    length: int | None = None,
) -> Material:
    """Text for language models; images (`text` names their folder) for vision models."""
    if isinstance(text, Material):
        require(length is None, "ready batches have their length: leave length out")
        return text
    text = None if text is None else Path(text)
    eval_text = None if eval_text is None else Path(eval_text)
    if family_of(model).reads == "images":
        require(length is None, "length is for text; images have the model's size")
        return image_material(model, text, seed=seed)
    require(
        family_of(model).reads != "batches",
        f"what {type(model).__name__} reads is not text alone: give batches of its inputs, as a "
        "headwise.pretrained.Material",
    )
    require(
        tokenizer is not None,
        "text needs a tokenizer: give the model's as `tokenizer`, or the model by its name",
    )
    return text_material(
        model, tokenizer, text, eval_text=eval_text, tokens=tokens, length=length, seed=seed
    )


def check_material(model: Any, material: Material) -> None:
    """Refuse batches that the model cannot read: padding, token numbers beyond its vocabulary."""
    require(bool(material.calibration), "there is nothing to calibrate on")
    require(bool(material.held_out), "there is no held-out text to judge by; give more text")
    rows = _embedded_tokens(model)
    for batch in [*material.calibration, *(b for s in material.samples for b in s.batches)]:
        mask = batch.get("attention_mask")
        require(
            mask is None or bool(mask.bool().all()),
            "a batch has padding (zeros in its attention_mask); group inputs by equal length",
        )
        ids = batch.get("input_ids")
        if ids is None or rows is None:
            continue
        largest, smallest = int(ids.max()), int(ids.min())
        if largest >= rows or smallest < 0:
            wrong = largest if largest >= rows else smallest
            raise InputError(
                f"the text has token number {wrong}, and the model's vocabulary {rows:,} tokens "
                f"(0 to {rows - 1:,}): is the tokenizer another model's?"
            )


def _embedded_tokens(model: Any) -> int | None:
    try:
        table = model.get_input_embeddings()
    except NotImplementedError:  # CLIP has two towers, and does not say which is meant
        table = getattr(getattr(model, "text_model", None), "embeddings", None)
        table = getattr(table, "token_embedding", None)
    return table.num_embeddings if isinstance(table, torch.nn.Embedding) else None


def describe(material: Material) -> str:
    """What was calibrated on, in a line."""
    kind = "pixels" if "pixel_values" in material.calibration[0] else "tokens"
    return f"{material.source}: {token_count(material.calibration):,} {kind} to calibrate"


def _classes(model: Any) -> int:
    return (
        int(model.config.vocab_size)
        if hasattr(model, "get_output_embeddings") and (model.get_output_embeddings() is not None)
        else 1024
    )


def _reads_one_at_a_time(model: Any) -> bool:
    """Decoders that classify look for the last token by the padding before it; without a padding
    token they take one sequence at a time."""
    return (
        type(model).__name__.endswith("ForSequenceClassification")
        and getattr(model.config, "pad_token_id", None) is None
        and not isinstance(objective_for(model), NextToken)
    )
