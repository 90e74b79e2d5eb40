"""What jobs need beside headwise: the modules of a user's own kinds, and files of the cache.

A node that lacks them gets them once, by their content: a module of one file, the token numbers of
a text.
"""

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from headwise.core.cache import cache_folder
from headwise.core.files import write_file
from headwise.lab.kinds import homes
from headwise.lab.run import Run


@dataclass(frozen=True)
class Cargo:
    """Modules to import, and files by their place in the cache folder."""

    modules: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @staticmethod
    def of(runs: Sequence[Run]) -> "Cargo":
        """What these runs need."""
        tasks = {id(run.task): run.task for run in runs}.values()
        files = {file for task in tasks for file in getattr(task, "cached_files", ())}
        return Cargo(tuple(homes(runs)), tuple(sorted(files)))

    def sources(self) -> dict[str, bytes]:
        """The text of every module that is one file; a package must be installed on the nodes."""
        found = {name: _source(name) for name in self.modules}
        return {name: text for name, text in found.items() if text is not None}

    def contents(self) -> dict[str, bytes]:
        """The files of the cache that are here; the run that reads it misses one that is not."""
        paths = {file: cache_folder() / file for file in self.files}
        return {file: path.read_bytes() for file, path in paths.items() if path.is_file()}


def _source(name: str) -> bytes | None:
    """The text of a module that is one file and can be imported here."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    one_file = spec is not None and spec.origin and spec.origin.endswith(".py") and not spec.parent
    return Path(spec.origin).read_bytes() if one_file and spec and spec.origin else None


def unpack_sources(sources: dict[str, bytes]) -> None:
    """Make modules importable where they are not: written to the cache, named by their content."""
    sources = {name: text for name, text in sources.items() if _source(name) != text}
    if not sources:
        return
    content = b"".join(name.encode() + text for name, text in sorted(sources.items()))
    folder = cache_folder() / "modules" / hashlib.sha256(content).hexdigest()[:32]
    for name, text in sources.items():
        if not (folder / f"{name}.py").exists():
            write_file(folder / f"{name}.py", text)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
