"""From a text or a folder of images to the batches that a given model takes."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.core.errors import InputError, require
from headwise.pretrained.adapters import family_of
from headwise.pretrained.measure.objectives import NextToken, objective_for
from headwise.pretrained.text.calibration import (
    Material,
    default_text,
    documents,
    equal_length_batches,
    every_fifth,
    read_text,
    spread,
    token_count,
    tokenise,
)

_IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp"}
_LOGITS_AT_ONCE = 2**24  # bounds a batch by what its predictions take: 64 MB of float32


def text_material(
    model: Any,
    tokenizer: Any,
    text: str | Path | None = None,
    *,
    eval_text: str | Path | None = None,
    tokens: int = 20_000,
    length: int | None = None,
) -> Material:
    """Calibrate on `text` (the packaged one by default) and judge by `eval_text`.

    Without `eval_text` every fifth document (or, of a single document, window) is held out.
    """
    decoder = isinstance(objective_for(model), NextToken)
    longest = int(getattr(model.config, "max_position_embeddings", 512))
    length = min(length or (256 if decoder else 128), longest)
    at_once = max(length, min(2048, _LOGITS_AT_ONCE // _classes(model)))
    source = str(text) if text else "packaged text"

    def sequences(content: str, multiple: int) -> list[list[int]]:
        pieces = documents(content, lines=not decoder)
        found = tokenise(tokenizer, pieces, length=length, multiple=multiple, windows=decoder)
        require(bool(found), f"{source} is too short: no piece of it has 8 tokens")
        return found

    content = read_text(Path(text)) if text else default_text()
    if eval_text is None:
        calibration, held_out = every_fifth(sequences(content, 16))
    else:
        calibration, held_out = sequences(content, 16), sequences(read_text(Path(eval_text)), 1)
    require(bool(held_out), f"{source} is too short to hold some of it out; give more text")
    average = float(np.mean([len(sequence) for sequence in calibration]))
    calibration = spread(calibration, max(1, int(tokens / average)))
    held_out = spread(held_out, max(1, int(tokens / average)))
    return Material(
        equal_length_batches(calibration, at_once), equal_length_batches(held_out, at_once), source
    )


def image_material(
    model: Any, folder: str | Path | None = None, *, images: int = 256, seed: int = 0
) -> Material:
    """Images of a folder, scaled to the model's size; without one, noise with natural spectra."""
    size, channels = int(model.config.image_size), int(model.config.num_channels)
    pixels = (
        _read_images(Path(folder), size, images)
        if folder
        else _pink_images(size, channels, images, seed)
    )
    batches = [{"pixel_values": pixels[start : start + 8]} for start in range(0, len(pixels), 8)]
    calibration, held_out = every_fifth(batches)
    require(bool(held_out), f"{folder} has too few images; 40 or more are needed")
    return Material(calibration, held_out, str(folder) if folder else "synthetic images")


Source = str | Path | Material | None
"""Where calibration material comes from: a file (or folder of images), ready batches, or None."""


def check_source(text: Source, eval_text: str | Path | None = None) -> None:
    """Refuse, before a model is loaded, what is not there."""
    for place in (text, eval_text):
        if isinstance(place, str | Path):
            require(Path(place).exists(), f"cannot read {place}: no such file or folder")
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
) -> Material:
    """Text for language models; images (`text` names their folder) for vision models."""
    if isinstance(text, Material):
        return text
    text = None if text is None else Path(text)
    eval_text = None if eval_text is None else Path(eval_text)
    if family_of(model).reads == "images":
        return image_material(model, text, seed=seed)
    require(
        tokenizer is not None,
        "text needs a tokenizer: give the model's as `tokenizer`, or the model by its name",
    )
    return text_material(model, tokenizer, text, eval_text=eval_text, tokens=tokens)


def describe(material: Material) -> str:
    """What was calibrated on and judged by, in a line."""
    kind = "pixels" if "pixel_values" in material.calibration[0] else "tokens"
    return (
        f"{material.source}: {token_count(material.calibration):,} {kind} to calibrate, "
        f"{token_count(material.held_out):,} held out"
    )


def _classes(model: Any) -> int:
    return (
        int(model.config.vocab_size)
        if hasattr(model, "get_output_embeddings") and (model.get_output_embeddings() is not None)
        else 1024
    )


def _read_images(folder: Path, size: int, count: int) -> Tensor:
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError("reading images needs Pillow: pip install pillow") from error
    require(folder.is_dir(), f"{folder} is not a folder of images")
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in _IMAGE_SUFFIXES)
    require(bool(paths), f"{folder} has no image ({', '.join(sorted(_IMAGE_SUFFIXES))})")
    pixels = []
    for path in spread(paths, count):
        try:
            with Image.open(path) as image:
                array = np.asarray(image.convert("RGB").resize((size, size)), np.float32)
        except OSError as error:
            raise InputError(f"{path} is not an image that can be read") from error
        pixels.append(torch.from_numpy(array).permute(2, 0, 1) / 127.5 - 1)
    return torch.stack(pixels)


def _pink_images(size: int, channels: int, count: int, seed: int) -> Tensor:
    """Gaussian fields with power falling as 1/f², as in photographs; scaled to [−1, 1]."""
    rng = np.random.default_rng([seed, 2])
    frequency = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)[None, :])
    frequency[0, 0] = 1.0
    noise = rng.standard_normal((count, channels, size, size))
    fields = np.fft.irfft2(np.fft.rfft2(noise) / frequency, s=(size, size))
    fields /= 3 * fields.std(axis=(1, 2, 3), keepdims=True)
    return torch.from_numpy(fields.clip(-1, 1).astype(np.float32))
