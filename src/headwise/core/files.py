"""Files that appear whole or not at all, and specifications kept in them."""

import errno
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headwise.core.errors import InputError, require
from headwise.core.memory import check_can_draw
from headwise.core.spec import from_data, to_data


@contextmanager
def appearing(path: str | Path) -> Iterator[Path]:
    """A scratch file beside `path`, of the same ending, that takes its place when all went well.

    Whoever reads `path` sees the old file or the new one, never a part; on an error, or after a
    kill, `path` is as it was. The folder is made if it is not there. A link stays one: the file
    that it leads to is replaced.
    """
    path = _place_to_write(Path(path))
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
    except Exception as error:
        _blame_the_disk(path, error)
        raise
    finally:
        scratch.unlink(missing_ok=True)


@contextmanager
def appearing_folder(folder: str | Path) -> Iterator[Path]:
    """A scratch folder that becomes `folder`, which must be new, when all went well."""
    folder = Path(folder)
    check_new_folder(folder)
    with _scratch_folder(folder.parent, folder) as scratch:
        yield scratch
        scratch.chmod(0o777 & ~_umask())
        scratch.replace(folder)


@contextmanager
def appearing_files(folder: str | Path, last: str) -> Iterator[Path]:
    """A scratch folder whose files get into `folder`, new or not, when all of them are written.

    `last` is the file that vouches for the others: it goes first where an old one is replaced, and
    comes last.
    """
    folder = Path(folder)
    if not is_folder(folder):
        with appearing_folder(folder) as scratch:
            yield scratch
        return
    with _scratch_folder(folder, folder) as scratch:
        yield scratch
        written = sorted(scratch.iterdir(), key=lambda path: path.name == last)
        places = {path: _place_to_write(folder / path.name) for path in written}
        for place in places.values():
            require(not is_folder(place), f"cannot write {place}: it is a folder")
        (folder / last).unlink(missing_ok=True)
        for path, place in places.items():
            path.replace(place)


@contextmanager
def _scratch_folder(parent: Path, meant: Path) -> Iterator[Path]:
    """A folder that is gone afterwards; errors are said of the one that is meant."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".writing-", dir=parent))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write {meant}: {reason(error)}") from error
    try:
        yield scratch
    except InputError as error:
        raise InputError(str(error).replace(str(scratch), str(meant))) from error
    except Exception as error:
        _blame_the_disk(meant, error)
        raise
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
    require(not is_folder(path), f"{what}: {path} is a folder; a file is written")
    try:
        place = _place_to_write(path)
    except InputError as error:
        raise InputError(f"{what}: {error}") from error
    require(is_folder(place.parent), f"{what}: there is no folder {place.parent}; make it first")
    _check_can_make(place, what)


def check_page(path: str | Path | None, what: str) -> None:
    """Refuse, before work begins, a place where a page cannot be written."""
    page = path is None or Path(path).suffix == ".html"
    require(page, f"{what} names a page, such as report.html; {path} does not end in .html")
    check_can_write(path, what)
    check_can_draw(path)


def check_can_write_into(folder: str | Path | None, what: str, drawn: bool = False) -> None:
    """Refuse, before work begins, a folder that cannot be written into, or be `drawn` into."""
    if folder is None:
        return
    check_can_draw(folder if drawn else None)
    folder = Path(folder)
    taken = os.path.lexists(folder) and not is_folder(folder)
    require(not taken, f"{what}: {folder} cannot be written into: it is no folder")
    _check_can_make(folder / "file", what)


def is_folder(path: Path) -> bool:
    """Is it there, and a folder? Names that no file can have are none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def is_file(path: Path) -> bool:
    """Is it there, and a file? Names that no file can have are none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _blame_the_disk(path: Path, error: Exception) -> None:
    """A sentence for errors of the disk; libraries in Rust have types of their own for them."""
    foreign = "os error" in str(error) and not isinstance(error, InputError)
    if isinstance(error, OSError) or foreign:
        raise InputError(f"cannot write {path}: {reason(error)}") from error


def _place_to_write(path: Path) -> Path:
    """The file to replace. A device or a pipe is none: a file would take its place for everyone."""
    try:
        place = Path(os.path.realpath(path)) if path.is_symlink() else path
        taken = os.path.lexists(place) and not stat.S_ISDIR(place.stat().st_mode)
        regular = not taken or stat.S_ISREG(place.stat().st_mode)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write {path}: {reason(error)}") from error
    require(regular, f"cannot write {path}: it is a device or a pipe; a file is written")
    return place


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


def check_is_file(path: str | Path, name: str = "") -> None:
    """Refuse what has no content of a known end: nothing there, a folder, a pipe, a device.

    `name` is what a sentence calls it, the path by default.
    """
    name = name or str(path)
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {name}: {reason(error)}") from error
    require(not stat.S_ISDIR(mode), f"cannot read {name}: it is a folder; a file is read")
    require(
        stat.S_ISREG(mode),
        f"cannot read {name}: it is a pipe or a device; save what it gives to a file first",
    )


def read_bytes(path: str | Path, name: str = "", most: int = -1) -> bytes:
    """All of a file, or its first bytes, or a sentence that calls it `name`."""
    check_is_file(path, name)
    try:
        with Path(path).open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise InputError(f"cannot read {name or path}: {reason(error)}") from error


def reason(error: Exception) -> str:
    """Why a file could not be used, in the system's words."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def read_json(path: str | Path) -> Any:
    """The JSON in a UTF-8 file, or a sentence: whoever wrote the file may have meant no good."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not JSON: it is not UTF-8 text") from error
    try:
        return parse_json(text, object_pairs_hook=_each_once)
    except InputError as error:
        raise InputError(f"{path} {error}") from error


def parse_json(text: str, **how: Any) -> Any:
    """The data in a text of JSON; the sentence begins with what is wrong with it."""
    try:
        return json.loads(text, **how)
    except RecursionError as error:
        raise InputError("is not usable JSON: it is nested too deep") from error
    except (ValueError, TypeError) as error:
        why = "a number has thousands of digits" if "set_int_max" in str(error) else error
        raise InputError(f"is not JSON: {why}") from error


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A name given twice could mean either value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is there twice")
    return found


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
