"""Opening a store's file: for the one writer, or for reading wherever it lies.

A writer holds a lock file beside the database, under the database's real name, so that a symbolic
link does not pass it. A reader takes what the file holds at that moment into memory and lets go of
it: it leaves nothing behind, never keeps a run waiting, and read-only media will do. On those
SQLite cannot make the files that it shares between processes; where a killed run left a write-ahead
log there, a copy of both is read, so that no record is missed.
"""

import os
import shutil
import sqlite3
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock, Timeout

from headwise.core.errors import InputError, require
from headwise.core.files import reason


class WriterLock:
    """The right to write to a store; taken when made."""

    def __init__(self, path: Path) -> None:
        self._store, self._file = path, Path(f"{path}.lock")
        self._take()

    def _take(self) -> None:
        self._lock = FileLock(self._file)
        try:
            self._store.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
            found = self._file.stat()
        except Timeout as error:
            raise InputError(
                f"another run is writing to {self._store}; wait for it, stop it, or choose another "
                "store with --store"
            ) from error
        except (OSError, ValueError) as error:
            raise InputError(f"cannot write a store at {self._store}: {reason(error)}") from error
        self._identity = (found.st_dev, found.st_ino)

    def check(self) -> None:
        """Before writing: is the lock still there? If someone deleted its file, take it again."""
        with suppress(OSError):
            found = self._file.stat()
            if (found.st_dev, found.st_ino) == self._identity:
                return
        self._take()

    def release(self) -> None:
        """Let others write."""
        self._lock.release()


def real_path(path: str | Path) -> Path:
    """The store's own name where `path` is a link to it, else the name as it was given."""
    path = Path(path)
    try:
        real = Path(os.path.realpath(path)) if path.is_symlink() else path
        mode = real.stat().st_mode if os.path.lexists(real) else stat.S_IFREG
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)!r} cannot be a store: {reason(error)}") from error
    folder = stat.S_ISDIR(mode)
    require(not folder, f"{path} is a folder; a store is a file, such as {path}/headwise.db")
    require(stat.S_ISREG(mode), f"{path} cannot be a store: it is a device or a pipe")
    return real


def connect(path: Path, write: bool) -> sqlite3.Connection:
    """A connection to the database, or for a reader to what the database holds now."""
    try:
        if write:
            return sqlite3.connect(path, isolation_level=None)
        require(path.is_file(), f"there is no store at {path}")
        held = _snapshot(path)
        held.execute("PRAGMA query_only = ON")
        return held
    except InputError:
        raise
    except (ValueError, OSError) as error:
        raise InputError(f"the store {path} cannot be opened: {reason(error)}") from error


def _snapshot(path: Path) -> sqlite3.Connection:
    memory = sqlite3.connect(":memory:", isolation_level=None)
    log = Path(f"{path}-wal")
    before = path.stat()
    if not log.exists():  # nobody writes, and all there is lies in the one file
        _copy(_address(path, "mode=ro&immutable=1"), memory)
        after = path.stat()
        same = (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
        if same and not log.exists():
            return memory
    try:
        _copy(_address(path, "mode=ro"), memory)
    except sqlite3.OperationalError:  # media that cannot be written, with a killed run's log
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "copy")
            shutil.copyfile(path, copy)
            shutil.copyfile(log, f"{copy}-wal")
            _copy(_address(copy, "mode=rw"), memory)
    return memory


def _copy(address: str, memory: sqlite3.Connection) -> None:
    source = sqlite3.connect(address, uri=True, isolation_level=None)
    try:
        source.backup(memory)
    finally:
        source.close()


def _address(path: Path, how: str) -> str:
    return f"file:{quote(str(path.absolute()))}?{how}"
