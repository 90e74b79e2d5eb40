"""Files that appear whole or not at all, and specifications kept in them."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headwise.core.errors import InputError, require
from headwise.core.spec import from_data, to_data


@contextmanager
def appearing(path: str | Path) -> Iterator[Path]:
    """A scratch file beside `path`, of the same ending, that takes its place when all went well.

    Whoever reads `path` sees the old file or the new one, never a part; on an error, or after a
    kill, `path` is as it was. The folder is made if it is not there.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".writing-", suffix=path.suffix, dir=path.parent)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    scratch = Path(name)
    os.close(handle)
    try:
        yield scratch
        with scratch.open("rb") as written:
            os.fsync(written.fileno())
        scratch.chmod(0o666 & ~_umask())
        scratch.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        scratch.unlink(missing_ok=True)


@contextmanager
def appearing_folder(folder: str | Path) -> Iterator[Path]:
    """A scratch folder that becomes `folder`, which must be new, when all went well."""
    folder = Path(folder)
    check_new_folder(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".writing-", dir=folder.parent))
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from error
    try:
        yield scratch
        scratch.chmod(0o777 & ~_umask())
        scratch.replace(folder)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_file(path: str | Path, content: str | bytes) -> None:
    """Write the whole content or nothing; text is UTF-8."""
    with appearing(path) as scratch:
        scratch.write_bytes(content.encode() if isinstance(content, str) else content)


def append_line(path: str | Path, line: str) -> None:
    """Add a line to a file, on the disk before this returns. A line that a kill cut short, the last
    one, is ended first.
    """
    try:
        with Path(path).open("ab+") as file:
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def check_new_folder(folder: str | Path | None) -> None:
    """Refuse, before work begins, a folder that is there already. None is nowhere, and fine."""
    require(folder is None or not Path(folder).exists(), f"{folder} exists; choose a new folder")


def check_can_write(path: str | Path | None, what: str) -> None:
    """Refuse, before work begins, a place to which its result could not be written.

    `what` is how the user named the place: "--out", "the figure". None is nowhere, and fine.
    """
    if path is None:
        return
    path = Path(path)
    folder = path.parent
    require(folder.is_dir(), f"{what}: there is no folder {folder}; make it first")
    require(not path.is_dir(), f"{what}: {path} is a folder; a file is written")
    require(os.access(folder, os.W_OK), f"{what}: {folder} cannot be written to")


def read_spec(path: Path, what: str) -> Any:
    """The specification in a file; `what` names in a sentence what was expected."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    try:
        return from_data(data)
    except InputError as error:
        raise InputError(f"{path} is not {what}: {error}") from error


def write_spec(value: Any, path: str | Path) -> None:
    """The specification as JSON that a person can read and edit."""
    write_file(path, json.dumps(to_data(value), indent=1, ensure_ascii=False) + "\n")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
