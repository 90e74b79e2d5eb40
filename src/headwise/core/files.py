"""Files that appear whole or not at all, and specifications kept in them."""

import errno
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
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write {path}: {reason(error)}") from error
    scratch = Path(name)
    os.close(handle)
    try:
        yield scratch
        with scratch.open("rb") as written:
            os.fsync(written.fileno())
        scratch.chmod(0o666 & ~_umask())
        scratch.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {reason(error)}") from error
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
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write {folder}: {reason(error)}") from error
    try:
        yield scratch
        scratch.chmod(0o777 & ~_umask())
        scratch.replace(folder)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {reason(error)}") from error
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
    if folder is None:
        return
    require(not os.path.lexists(folder), f"{folder} exists; choose a new folder")
    _check_can_make(Path(folder), "the new folder")


def check_can_write(path: str | Path | None, what: str) -> None:
    """Refuse, before work begins, a place to which its result could not be written.

    `what` is how the user named the place: "--out", "the figure". None is nowhere, and fine.
    """
    if path is None:
        return
    path = Path(path)
    folder = path.parent
    require(is_folder(folder), f"{what}: there is no folder {folder}; make it first")
    require(not is_folder(path), f"{what}: {path} is a folder; a file is written")
    _check_can_make(path, what)


def check_can_write_into(folder: str | Path | None, what: str) -> None:
    """Refuse, before work begins, a folder into which results could not be written.

    It may be there, or be made. None is nowhere, and fine.
    """
    if folder is not None:
        _check_can_make(Path(folder, "file"), what)


def is_folder(path: Path) -> bool:
    """Is it there, and a folder? Names that no file can have are none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _check_can_make(path: Path, what: str) -> None:
    """Try it: permissions alone say nothing of read-only media, nor of what root may not do."""
    folder = path.parent
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    try:
        require("\0" not in str(path), f"{what}: a file's name cannot hold a NUL character")
        with tempfile.TemporaryFile(dir=folder, prefix=".writing-"):
            if len(os.fsencode(path.name)) > os.pathconf(folder, "PC_NAME_MAX"):
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    except OSError as error:
        raise InputError(f"{what}: {path} cannot be written: {reason(error)}") from error


def reason(error: Exception) -> str:
    """Why a file could not be used, in the system's words."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def read_json(path: str | Path) -> Any:
    """The JSON in a UTF-8 file, or a sentence: whoever wrote the file may have meant no good."""
    path = Path(path)
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not JSON: it is not UTF-8 text") from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {reason(error)}") from error
    try:
        return parse_json(text)
    except InputError as error:
        raise InputError(f"{path} {error}") from error


def parse_json(text: str) -> Any:
    """The data in a text of JSON; the sentence begins with what is wrong with it."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise InputError("is not usable JSON: it is nested too deep") from error
    except (ValueError, TypeError) as error:  # numbers of more than 4,300 digits are among these
        raise InputError(f"is not JSON: {error}") from error


def read_spec(path: Path, what: str) -> Any:
    """The specification in a file; `what` names in a sentence what was expected."""
    data = read_json(path)
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
