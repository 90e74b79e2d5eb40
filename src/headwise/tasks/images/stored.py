"""Pictures in the cache, found by their content: two splits, pixels and labels, memory-mapped."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Integer, UInt8

from headwise.core.cache import cache_folder
from headwise.core.errors import InputError, require
from headwise.core.files import appearing

_PARTS = ("train-pixels", "train-labels", "held-out-pixels", "held-out-labels")

Pictures = tuple[UInt8[np.ndarray, "_ size size 3"], Integer[np.ndarray, " _"]]


@dataclass(frozen=True)
class ImageSplit:
    """Pictures to train on and pictures held out, each with their classes from 0 on."""

    train: Pictures
    held_out: Pictures
    classes: int

    def __post_init__(self) -> None:
        for pixels, labels in (self.train, self.held_out):
            require(
                len(pixels) == len(labels) and len(pixels) > 0,
                f"{len(pixels):,} images and {len(labels):,} labels: as many of each, and some",
            )
            wrong = labels[(labels < 0) | (labels >= self.classes)]
            require(
                len(wrong) == 0,
                f"a label is {wrong[:1]}, out of range: labels are 0 to {self.classes - 1}",
            )


def add(split: ImageSplit) -> str:
    """Put pictures into the cache, shuffled once: the hash under which they are found."""
    arrays = []
    for number, (pixels, labels) in enumerate((split.train, split.held_out)):
        order = np.random.default_rng([number, 0x5F1E]).permutation(len(pixels))
        arrays += [pixels[order], labels[order].astype(np.uint8)]
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        sha.update(np.ascontiguousarray(array).data)
    digest = sha.hexdigest()
    for place, array in zip(cached_files(digest), arrays, strict=True):
        path = cache_folder() / place
        if not path.exists():
            with appearing(path) as scratch:
                np.save(scratch, array, allow_pickle=False)
    return digest


def cached_files(digest: str) -> tuple[str, ...]:
    """Where the arrays lie in the cache folder."""
    return tuple(f"images/{digest[:32]}-{part}.npy" for part in _PARTS)


def split_of(digest: str, name: str, held_out: bool) -> Pictures:
    """The memory-mapped pixels of a split, and its labels."""
    return _split_of(digest, name, held_out, str(cache_folder()))


@lru_cache(maxsize=8)
def _split_of(digest: str, name: str, held_out: bool, folder: str) -> Pictures:
    places = cached_files(digest)[2:] if held_out else cached_files(digest)[:2]
    paths = [cache_folder() / place for place in places]
    require(
        all(path.exists() for path in paths),
        f"the images of {name} (SHA-256 {digest[:12]}…) are not on this machine: fetch CIFAR-10 "
        "with: headwise study fetch images, or give your own with --data FOLDER",
    )
    try:
        pixels = np.load(paths[0], mmap_mode="r", allow_pickle=False)
        labels = np.load(paths[1], allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(
            f"the cached images {paths[0]} are damaged ({error}); delete it"
        ) from error
    require(len(pixels) == len(labels), f"the cached images {paths[0]} are damaged; delete it")
    return pixels, labels
