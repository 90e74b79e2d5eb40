"""What runs on a node of a cluster: a pack of jobs, after a look at whether it may run here."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import headwise.core
from headwise.core.cache import cache_folder
from headwise.core.device import computing_on
from headwise.core.errors import InputError, require
from headwise.core.files import write_file
from headwise.lab.crew.attempt import Broken, attempt, settle_in
from headwise.lab.crew.cargo import unpack_sources
from headwise.lab.crew.messages import Finished, Job, Progress
from headwise.lab.work import versions

TOKEN = "shared-"  # how the name of a file begins that shows that two machines see one folder
_TELL_SECONDS = 1.0


@dataclass(frozen=True)
class Luggage:
    """What every pack needs; it is sent to a node once.

    `files` are references to contents, looked at where the cache lacks the file. `folder` is for
    checkpoints, on nodes that see in it the file called `token`.
    """

    versions: Mapping[str, str]
    device: str
    modules: Sequence[str] = ()
    sources: Mapping[str, bytes] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    token: str = field(default_factory=lambda: f"{TOKEN}{uuid4().hex}")

    @property
    def shared(self) -> Path | None:
        """The folder for checkpoints, if it is the same one here."""
        there = self.folder is not None and (self.folder / self.token).exists()
        return self.folder if there else None


@cache
def installed() -> dict[str, str]:
    """What computes here: versions, and a hash of headwise's own code, which may be unreleased."""
    root = Path(headwise.core.__file__).parents[1]
    code = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        code.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    known = {name: version for name, version in versions().items() if name != "machine"}
    return {**known, "code of headwise": code.hexdigest()[:8]}


def check_versions(ours: Mapping[str, str], theirs: Mapping[str, str], node: str) -> None:
    """Refuse a node that computes with something else than the driver."""
    names = [name for name in ours if ours[name] != theirs.get(name)]
    require(
        not names,
        f"node {node} has other versions than this machine: "
        + ", ".join(f"{name} {theirs.get(name, 'missing')} (here {ours[name]})" for name in names)
        + "; install the same on every node, or results would not be the same",
    )


def look_around(luggage: Luggage) -> tuple[dict[str, str], bool]:
    """A node's versions, and whether it sees the driver's folder for checkpoints."""
    return installed(), luggage.shared is not None


def run_pack(
    pack: Sequence[tuple[int, Job]],
    luggage: Luggage,
    name: str,
    fetch: Callable[[Any], bytes],
    tell: Callable[[Progress], None],
) -> list[Finished | Broken]:
    """Do the jobs of a pack; `name` is the node's, `fetch` gets what a reference refers to."""
    check_versions(luggage.versions, installed(), name)
    _unpack(luggage, fetch)
    done: list[Finished | Broken] = []
    with computing_on(luggage.device):
        for number, job in pack:
            done.append(attempt(number, job, tell, _TELL_SECONDS, luggage.shared))
    return done


_unpacked: set[str] = set()


def _unpack(luggage: Luggage, fetch: Callable[[Any], bytes]) -> None:
    """Make this process ready for the luggage's jobs, once."""
    if luggage.token in _unpacked:
        return
    for file, reference in luggage.files.items():
        path = cache_folder() / file
        if not path.exists():
            write_file(path, fetch(reference))
    unpack_sources(dict(luggage.sources))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        settle_in(luggage.modules)
    except ImportError as error:
        raise InputError(
            f"a node cannot import what the jobs need ({error}); a module of one file is sent, "
            "packages must be installed there"
        ) from error
    _unpacked.add(luggage.token)
