"""From a text or a folder of images or recordings to the batches that a given model takes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from headwise.core.errors import InputError, require
from headwise.core.files import check_is_file, is_folder
from headwise.pretrained.adapters import family_of
from headwise.pretrained.measure.language import NextToken
from headwise.pretrained.measure.objectives import objective_for
from headwise.pretrained.text.calibration import (
    TOKENS,
    Material,
    Piece,
    Sample,
    about,
    calibration_kinds,
    counted,
    every_fifth,
    held_out_texts,
    of_both_lengths,
    packaged_text,
    read_text,
    token_count,
)
from headwise.pretrained.text.images import image_material
from headwise.pretrained.text.novelty import check_new, repetitions
from headwise.pretrained.text.reader import FEW, Reader
from headwise.pretrained.text.sound import sound_material

_PACKAGED = {
    "calibration": "packaged text (encyclopaedia, speeches, novels, plays, Python, 13 languages)",
    "held_out": "packaged text of other sources and five kinds, each counting alike",
    "other": "packaged text of another kind (JavaScript, C, dialogue in 8 languages)",
}
_MASKED = 4  # times as much text to judge by where a model predicts 15 % of it
_WINDOWS = 6  # at least so many sequences of the held-out text, if it has them
_A_KIND = 2  # and of each kind of the packaged one
_MORE = 50  # times as much text for a recovery, if there is: it overfits less then

Source = str | Path | Material | None
"""Where calibration material comes from: a file (or a folder of images or recordings), ready
batches, or None."""


def text_material(
    model: Any,
    tokenizer: Any,
    text: str | Path | None = None,
    *,
    eval_text: str | Path | None = None,
    tokens: int = 20_000,
    length: int | None = None,
    seed: int = 0,
    cache: bool = True,
) -> Material:
    """Calibrate on `text` (the packaged one by default) and judge by `eval_text`.

    Without `eval_text` every fifth document (or, of a single document, window) is held out; of the
    packaged text, a part from other sources. A second verdict is on packaged text of another kind
    than the calibration text. `length` is that of the longest inputs: by default 2,048 for
    decoders and 512 for encoders, or what the model has. With `cache`, the texts' token numbers are
    kept on disk.
    """
    reader = Reader(model, tokenizer, length, seed, cache=cache)
    source = str(text) if text else _PACKAGED["calibration"]
    content = read_text(Path(text)) if text else packaged_text("calibration")
    pieces = reader.pieces(content, source)
    if eval_text is not None:
        found = reader.pieces(read_text(Path(eval_text)), str(eval_text))
        held_out = reader.sample(_judged(found, tokens // 2, _WINDOWS, reader), str(eval_text), 1)
    elif text:
        pieces, found = _split(pieces)
        require(
            bool(pieces) and bool(found),
            f"{source} is too short to hold some of it out; give more text",
        )
        some = _judged(found, tokens // 2, _WINDOWS, reader)
        held_out = reader.sample(some, f"held-out part of {source}", 1)
    else:
        held_out = _of_all_kinds(reader, tokens // 2, _A_KIND, 1)
    pieces = reader.evened(pieces)
    kinds = () if text else calibration_kinds()
    chosen = (
        of_both_lengths(pieces, tokens, reader.length, kinds)
        if reader.decoder
        else about(pieces, tokens)
    )
    calibration, origins = reader.batches(chosen, 0)
    more, _ = reader.batches(about(pieces, _MORE * tokens), 3)
    if text:
        other = _of_all_kinds(reader, tokens // 4, 1, 2)
    else:
        found = reader.pieces(packaged_text("other"), _PACKAGED["other"])
        some = _judged(found, tokens // 4, _WINDOWS // 2, reader)
        other = reader.sample(some, _PACKAGED["other"], 2)
    return Material(
        calibration,
        held_out.batches,
        source,
        held_out.source,
        held_out.documents,
        other,
        (
            *_shortage(calibration, tokens, source),
            *repetitions(Sample(calibration, source), held_out),
        ),
        held_out.kinds,
        more,
        [[kinds[document] for document in rows] for rows in origins] if kinds else [],
    )


def _of_all_kinds(reader: Reader, tokens: int, windows: int, part: int) -> Sample:
    """The packaged held-out text, as much of each kind: how a text is hurt depends on its kind."""
    texts = held_out_texts()
    chosen: list[Piece] = []
    kinds: list[str] = []
    for kind, text in texts.items():
        found = reader.pieces(text, _PACKAGED["held_out"])
        some = _judged(found, tokens // len(texts), windows, reader)
        chosen += [Piece(len(kinds) + piece.document, piece.ids) for piece in some]
        kinds += [kind] * (1 + max(piece.document for piece in found))
    return reader.sample(chosen, _PACKAGED["held_out"], part, tuple(kinds))


def _split(pieces: list[Piece]) -> tuple[list[Piece], list[Piece]]:
    """Every fifth document held out whole."""
    names = sorted({piece.document for piece in pieces})
    if len(names) < FEW:
        return every_fifth(pieces)
    out = set(names[4::5])
    return [p for p in pieces if p.document not in out], [p for p in pieces if p.document in out]


def _judged(pieces: list[Piece], tokens: int, windows: int, reader: Reader) -> list[Piece]:
    """About so many tokens; a decoder's in sequences as long as it reads, as far as they go."""
    tokens = max(tokens, windows * reader.length) * (_MASKED if reader.masked else 1)
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
    require(
        text is None or isinstance(text, str | Path | Material),
        f"text is a {type(text).__name__}; it names a file or a folder, or is a "
        "headwise.pretrained.Material of ready batches",
    )
    for place in (text, eval_text):
        if isinstance(place, str | Path) and not is_folder(Path(place)):
            check_is_file(place)
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
    cache: bool = True,
) -> Material:
    """Text for language models; a folder of images or recordings for those of images or sound."""
    if isinstance(text, Material):
        require(length is None, "ready batches have their length: leave length out")
        return text
    text = None if text is None else Path(text)
    eval_text = None if eval_text is None else Path(eval_text)
    if family_of(model).reads == "images":
        require(length is None, "length is for text; images have the model's size")
        require(eval_text is None, "eval_text is for text and sound; of images a fifth is held out")
        return image_material(model, text, seed=seed)
    if family_of(model).reads == "sound":
        require(length is None, "length is for text; sound is heard as long as the model listens")
        return sound_material(model, text, eval_folder=eval_text)
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
        model,
        tokenizer,
        text,
        eval_text=eval_text,
        tokens=tokens,
        length=length,
        seed=seed,
        cache=cache,
    )


def readable(model: Any, material: Material) -> Material:
    """The material in the model's precision; refused is what it cannot read (padding, token numbers
    beyond its vocabulary), and that by which it cannot be judged."""
    require(bool(material.calibration), "there is nothing to calibrate on")
    require(bool(material.held_out), "there is no held-out text to judge by; give more text")
    rows = _embedded_tokens(model)
    for batches in (material.calibration, *(sample.batches for sample in material.samples)):
        _check_forms(batches)
        _check_lengths(model, batches)
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
    check_new(material)
    return material.as_exact(model.dtype)


def _check_forms(batches: list[Any]) -> None:
    """Refuse what is not tensors by their names, with something in them."""
    for batch in batches:
        require(
            isinstance(batch, Mapping),
            f"a batch is a {type(batch).__name__}; it has to be a dictionary of the model's inputs",
        )
        require(bool(batch), "a batch has nothing in it")
        for name, value in batch.items():
            require(
                isinstance(value, torch.Tensor),
                f"a batch's {name} is a {type(value).__name__}; it has to be a tensor",
            )
            require(value.numel() > 0, f"a batch has nothing in its {name}")
            require(
                value.ndim > 0,
                f"a batch's {name} is one number; every input has a row a text or image",
            )
            require(
                name not in TOKENS or value.ndim == 2,
                f"a batch's {name} has the shape {tuple(value.shape)}; it has to be a row a text",
            )


def _check_lengths(model: Any, batches: list[dict[str, torch.Tensor]]) -> None:
    """Refuse inputs in which a decoder predicts nothing."""
    if not isinstance(objective_for(model), NextToken):
        return
    texts = [batch.get("decoder_input_ids", batch.get("input_ids")) for batch in batches]
    longest = max((ids.shape[-1] for ids in texts if ids is not None), default=2)
    require(longest > 1, "the inputs have one token, and none to predict from it; give longer ones")


def _embedded_tokens(model: Any) -> int | None:
    try:
        table = model.get_input_embeddings()
    except NotImplementedError:  # CLIP has two towers, and does not say which is meant
        table = getattr(getattr(model, "text_model", None), "embeddings", None)
        table = getattr(table, "token_embedding", None)
    return table.num_embeddings if isinstance(table, torch.nn.Embedding) else None


def describe(material: Material) -> str:
    """What was calibrated on, in a line."""
    batches = material.calibration
    return f"{material.source}: {token_count(batches):,} {counted(batches)} to calibrate"
