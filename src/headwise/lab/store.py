"""The store: one SQLite file, one writer, a row a finished run. Anyone can open it with pandas.

A record is on the disk when `add` returns (write-ahead log, full synchronisation), so a process
killed at any moment loses only what it was computing. The table `planned` remembers which runs
were asked for and by whom, a study ("study/…") or the trials of a plan ("plan"), so that a report
can be made from the file alone and neither trips over the other's rows.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headwise.core.errors import InputError, require
from headwise.core.files import parse_json
from headwise.core.workers import leave_if_imported
from headwise.lab.opening import WriterLock, connect, real_path
from headwise.lab.work import Record

SCHEMA_VERSION = 2
STUDY = "study/"  # owners of this prefix are studies
_OBJECTS = ("result", "versions")  # columns of JSON
_FIELDS = tuple(field.name for field in fields(Record))
_FINISHED = "runs.status <> 'failed'"
_APPLICATION_ID = 0x68656164  # "head", so that another program's database is recognised
_SCHEMA = """
CREATE TABLE runs (
    key TEXT PRIMARY KEY,
    specification TEXT NOT NULL,
    seed INTEGER NOT NULL,
    status TEXT NOT NULL,
    result TEXT NOT NULL,
    versions TEXT NOT NULL,
    wall_seconds REAL NOT NULL,
    cpu_seconds REAL NOT NULL,
    cpu TEXT NOT NULL,
    finished TEXT NOT NULL
) STRICT;
CREATE TABLE planned (
    owner TEXT NOT NULL,
    tier TEXT NOT NULL,
    part TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (owner, tier, part, key)
) STRICT, WITHOUT ROWID;
"""


class Store:
    """Open for reading with `Store(path)`; for writing with `Store(path, write=True)`.

    Reading writes nothing, works on read-only media, and never keeps a run waiting.
    """

    def __init__(self, path: str | Path, write: bool = False) -> None:
        if write:
            leave_if_imported()  # writing is what every shared-out work begins with
        self.path = real_path(path)
        self._lock = WriterLock(self.path) if write else None
        try:
            with self._plain_errors():
                self._database = connect(self.path, write)
                self._prepare(write)
        except BaseException:
            self.close()
            raise

    def _prepare(self, write: bool) -> None:
        database = self._database
        (application,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        empty = tables == 0 and application == 0
        require(write or not empty, f"{self.path} is empty: no study was run into it yet")
        new = write and empty
        require(
            new or application == _APPLICATION_ID,
            f"{self.path} is a database of another program, not a headwise store",
        )
        require(
            version <= SCHEMA_VERSION,
            f"{self.path} was written by a newer headwise (schema {version}, this one knows "
            f"{SCHEMA_VERSION}); upgrade headwise or choose another store",
        )
        require(
            new or version == SCHEMA_VERSION,
            f"{self.path} was written by an older headwise (schema {version}, this one has "
            f"{SCHEMA_VERSION}); run again into another store",
        )
        require(
            new or _made_of(database) == _own_tables(),
            f"{self.path} was changed: a headwise store has the tables runs and planned as "
            "headwise makes them, no view and no trigger; run again into another store",
        )
        if write:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
        if new:
            database.executescript(
                f"BEGIN; {_SCHEMA} PRAGMA application_id = {_APPLICATION_ID};"
                f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
            )

    def add(self, records: Iterable[Record]) -> None:
        """Store runs; they are durable when this returns. Adding twice is harmless.

        The first record of a run stays, unless it is that of a failure, which any later one
        replaces.
        """
        rows = [
            {
                **asdict(record),
                "result": json.dumps(record.result),
                "versions": json.dumps(record.versions),
            }
            for record in records
        ]
        columns = ", ".join(_FIELDS)
        values = ", ".join(f":{name}" for name in _FIELDS)
        changes = ", ".join(f"{name} = excluded.{name}" for name in _FIELDS)
        with self._transaction():
            self._database.executemany(
                f"INSERT INTO runs ({columns}) VALUES ({values}) "
                f"ON CONFLICT (key) DO UPDATE SET {changes} WHERE runs.status = 'failed'",
                rows,
            )

    def plan(self, owner: str, tier: str, parts: Mapping[str, Sequence[str]]) -> None:
        """Remember which runs an owner's tier consists of, replacing what it was before."""
        rows = [(owner, tier, part, key) for part, keys in parts.items() for key in keys]
        with self._transaction():
            self._database.execute(
                "DELETE FROM planned WHERE owner = ? AND tier = ?", (owner, tier)
            )
            self._database.executemany("INSERT OR IGNORE INTO planned VALUES (?, ?, ?, ?)", rows)

    def keys(self) -> set[str]:
        """Hashes of all finished runs."""
        with self._plain_errors():
            return {
                key for (key,) in self._database.execute(f"SELECT key FROM runs WHERE {_FINISHED}")
            }

    def records(self, owner: str, tier: str, failed: bool = False) -> Iterator[tuple[str, Record]]:
        """(part, record) for every finished run of an owner's tier, or for every failed one."""
        columns = ", ".join(f"runs.{name}" for name in _FIELDS)
        query = (
            f"SELECT part, {columns} FROM planned JOIN runs USING (key) "
            f"WHERE owner = ? AND tier = ? AND {'NOT' if failed else ''} {_FINISHED} "
            "ORDER BY part, runs.specification"
        )
        with self._plain_errors():
            rows = self._database.execute(query, (owner, tier)).fetchall()
        for part, *values in rows:
            found = dict(zip(_FIELDS, values, strict=True))
            try:
                yield part, Record(**found | {name: _object(found[name]) for name in _OBJECTS})
            except InputError as error:
                raise damaged_row(found["key"], error) from error

    def failed(self, owner: str, tier: str) -> int:
        """How many runs of an owner's tier failed."""
        return len({record.key for _, record in self.records(owner, tier, failed=True)})

    def progress(self) -> list[tuple[str, str, int, int]]:
        """(owner, tier, finished runs, planned runs) for everything ever planned here."""
        query = (
            "SELECT owner, tier, count(DISTINCT runs.key), count(DISTINCT planned.key) "
            f"FROM planned LEFT JOIN runs ON planned.key = runs.key AND {_FINISHED} "
            "GROUP BY owner, tier ORDER BY owner, tier"
        )
        with self._plain_errors():
            return self._database.execute(query).fetchall()

    def studies(self) -> list[tuple[str, str, int, int]]:
        """(study, tier, finished runs, planned runs) for every study planned here."""
        return [
            (owner.removeprefix(STUDY), tier, finished, planned)
            for owner, tier, finished, planned in self.progress()
            if owner.startswith(STUDY)
        ]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._lock is not None:
            self._lock.check()
        with self._plain_errors():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise InputError(
                f"the store {self.path} cannot be used: {error}. What was reported done before "
                "is kept"
            ) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError, OverflowError) as error:
            raise InputError(
                f"{self.path} is not a headwise store, or it is damaged ({error})"
            ) from error

    def close(self) -> None:
        """Let go of the file."""
        if hasattr(self, "_database"):
            self._database.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def damaged_row(key: str, why: Exception) -> InputError:
    """The sentence for a row that is not what headwise wrote."""
    return InputError(
        f"a row of the store was changed or is damaged (key {key:.64}): {why}; delete it with "
        f"DELETE FROM runs WHERE key = {key[:64]!r}, and run again"
    )


def _made_of(database: sqlite3.Connection) -> set[str]:
    """The statements that a database was made by; its types hold for every row, for it is STRICT.

    What SQLite adds by itself does not count.
    """
    query = "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    return {" ".join(str(statement).split()) for (statement,) in database.execute(query)}


@cache
def _own_tables() -> set[str]:
    with closing(sqlite3.connect(":memory:")) as empty:
        empty.executescript(_SCHEMA)
        return _made_of(empty)


def _object(text: str) -> dict[str, Any]:
    found = parse_json(text)
    require(isinstance(found, dict), "is not a JSON object")
    return found
