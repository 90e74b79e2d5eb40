"""Images as calibration material, prepared as the checkpoint says (preprocessor_config.json)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.core.errors import InputError, require
from headwise.core.files import is_file, is_folder
from headwise.pretrained.model.opening import transformers
from headwise.pretrained.model.saving import PREPARATION
from headwise.pretrained.text.calibration import Material, every_fifth, spread

_IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp"}
_MODES = {1: "L", 3: "RGB"}  # Pillow's, by channels
_OF_16_BITS = 257  # by which numbers of 16 bits become those of 8


def image_material(
    model: Any, folder: str | Path | None = None, *, images: int = 256, seed: int = 0
) -> Material:
    """Images of a folder, prepared for the model; without one, noise with natural spectra.

    They are scaled, cropped and normalised as the model's checkpoint says. If it does not say so,
    they are scaled to the model's size and to numbers from −1 to 1, and a warning says that.
    """
    config = model.config
    size = np.broadcast_to(config.image_size, 2)
    height, width, channels = int(size[0]), int(size[1]), int(config.num_channels)
    require(
        channels in _MODES or not folder,
        f"{type(model).__name__} reads images of {channels} channels, which files do not have: "
        "give batches of its inputs, in Python, as a headwise.pretrained.Material",
    )
    processor = _processor(model) if channels in _MODES else None
    if folder:
        found = [
            _prepared(image.convert(_MODES[channels]), processor, width, height)
            for image in _read_images(Path(folder), images)
        ]
    else:
        noise = _pink_images(height, width, channels, images, seed)
        found = [_noise_prepared(image, processor, width, height) for image in noise]
    pixels = torch.stack(found)
    batches = [{"pixel_values": pixels[start : start + 8]} for start in range(0, len(pixels), 8)]
    calibration, held_out = every_fifth(batches)
    require(bool(held_out), f"{folder} has too few images; 40 or more are needed")
    return Material(
        calibration,
        held_out,
        str(folder) if folder else "synthetic images",
        warnings=() if processor or not folder else (_unsaid(model),),
    )


def _unsaid(model: Any) -> str:
    return (
        f"how {type(model).__name__} was shown images is not known, as its checkpoint has no "
        f"{PREPARATION}: they were scaled to the model's size and to numbers from −1 to 1"
    )


def _processor(model: Any) -> Any:
    """What prepares images for the model; None where its checkpoint does not say."""
    place = getattr(model.config, "name_or_path", "")
    known = is_file(Path(place) / PREPARATION)
    if not place or (is_folder(Path(place)) and not known):
        return None
    try:
        return transformers().AutoImageProcessor.from_pretrained(place, trust_remote_code=False)
    except Exception as error:
        if known:
            raise InputError(
                f"{Path(place) / PREPARATION} does not say how to prepare images: {error}"
            ) from error
        return None


def _prepared(image: Any, processor: Any, width: int, height: int) -> Tensor:
    """Pixels (channels, height, width) of a Pillow image."""
    if processor is not None:
        made: Tensor = processor(images=[image], return_tensors="pt")["pixel_values"]
        return made[0]
    array = np.asarray(image.resize((width, height)), np.float32).reshape(height, width, -1)
    return torch.from_numpy(array).permute(2, 0, 1) / 127.5 - 1


def _noise_prepared(field: np.ndarray, processor: Any, width: int, height: int) -> Tensor:
    """Noise (channels, height, width) from −1 to 1, seen as an image where there is a processor."""
    if processor is None:
        return torch.from_numpy(field)
    from PIL import Image

    array = ((field + 1) * 127.5).round().astype(np.uint8).transpose(1, 2, 0)
    return _prepared(Image.fromarray(array.squeeze()), processor, width, height)


def _read_images(folder: Path, count: int) -> Iterator[Any]:
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError("reading images needs Pillow: pip install pillow") from error
    require(is_folder(folder), f"{folder} is not a folder of images")
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in _IMAGE_SUFFIXES)
    require(bool(paths), f"{folder} has no image ({', '.join(sorted(_IMAGE_SUFFIXES))})")
    for path in spread(paths, count):
        try:
            with Image.open(path) as image:
                deep = image.mode.startswith("I")  # which Pillow would cut off at 255
                yield Image.fromarray(_of_eight_bits(image)) if deep else image.copy()
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise InputError(f"{path} is not an image that can be read") from error


def _of_eight_bits(image: Any) -> np.ndarray:
    return (np.asarray(image, np.float64) / _OF_16_BITS).round().clip(0, 255).astype(np.uint8)


def _pink_images(height: int, width: int, channels: int, count: int, seed: int) -> np.ndarray:
    """Gaussian fields with power falling as 1/f², as in photographs; scaled to [−1, 1]."""
    rng = np.random.default_rng([seed, 2])
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :])
    frequency[0, 0] = 1.0
    noise = rng.standard_normal((count, channels, height, width))
    fields = np.fft.irfft2(np.fft.rfft2(noise) / frequency, s=(height, width))
    fields /= 3 * fields.std(axis=(1, 2, 3), keepdims=True)
    return fields.clip(-1, 1).astype(np.float32)
