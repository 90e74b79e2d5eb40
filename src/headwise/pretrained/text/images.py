"""Images as calibration material."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.core.errors import InputError, require
from headwise.core.files import is_folder
from headwise.pretrained.text.calibration import Material, every_fifth, spread

_IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp"}


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


def _read_images(folder: Path, size: int, count: int) -> Tensor:
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError("reading images needs Pillow: pip install pillow") from error
    require(is_folder(folder), f"{folder} is not a folder of images")
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
