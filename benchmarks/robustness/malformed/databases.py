"""Databases that are no stores: other programs', other versions', torn, and of the wrong types."""

import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st

from malformed.case import HERE, OUT, Case, InputClass

RUNS = (
    "key, specification, seed, status, result, versions, wall_seconds, cpu_seconds, cpu, finished"
)
OURS = "PRAGMA application_id = 0x68656164; PRAGMA user_version = 2;"


def database_classes(store: bytes) -> list[InputClass]:
    """`store` is a sound one."""
    commands = [
        f"study status --store {HERE}/a.db",
        f"report {HERE}/a.db {OUT}",
        f"report {HERE} --all {OUT}",
        f"study export head-count --store {HERE}/a.db",
        f"study run head-count --store {HERE}/a.db --jobs 0",
        f"evidence add {HERE}/a.db --folder {HERE}/new",
    ]
    return [
        InputClass(
            "hostile: store",
            st.builds(
                lambda command, make: Case(command.split(), make()),
                st.sampled_from(commands),
                st.sampled_from(_databases(store)),
            ),
        )
    ]


def _made(script: str) -> Callable[[], dict[str, bytes]]:
    def make() -> dict[str, bytes]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.db")
            database = sqlite3.connect(path)
            database.executescript(script)
            database.close()
            return {"a.db": path.read_bytes()}

    return make


def _databases(store: bytes) -> list[Callable[[], dict[str, bytes]]]:
    untyped = f"{OURS} CREATE TABLE runs ({RUNS}); CREATE TABLE planned (owner, tier, part, key);"
    row = "INSERT INTO runs VALUES ('k', {}, {}, 'done', {}, {}, {}, 1.0, 'cpu', 'now');"
    planned = "INSERT INTO planned VALUES ('study/head-count', 'quick', 'transition', 'k');"

    def with_row(spec: str, seed: str, result: str, versions: str, wall: str) -> str:
        return untyped + planned + row.format(spec, seed, result, versions, wall)

    return [
        _made("CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('x');"),
        _made("PRAGMA application_id = 0x0F055112; CREATE TABLE x (y);"),
        _made(OURS),
        _made(f"{OURS} CREATE TABLE runs (x); CREATE TABLE planned (x);"),
        _made(f"{OURS} CREATE TABLE runs ({RUNS});"),
        _made(f"{OURS} CREATE VIEW runs AS SELECT 1; CREATE VIEW planned AS SELECT 1;"),
        _made(OURS.replace("= 2", "= 1") + "CREATE TABLE runs (x);"),
        _made(OURS.replace("= 2", "= -7") + "CREATE TABLE runs (x);"),
        _made(OURS.replace("= 2", "= 2147483647") + "CREATE TABLE runs (x);"),
        _made(with_row("'{}'", "'zero'", "'{}'", "'{}'", "'long'")),
        _made(with_row("x'ff00'", "0", "x'ff'", "x'00'", "1.0")),
        _made(with_row("NULL", "NULL", "NULL", "NULL", "NULL")),
        _made(with_row("5", "0", "5", "5", "9e999")),
        _made(with_row("'{}'", "0", "'{\"error\": NaN}'", "'{}'", "-1")),
        _made(with_row('\'{"a": "\\ud800"}\'', "0", "'{}'", "'{}'", "1")),
        _made(with_row('\'{"a": 1, "a": 2}\'', "0", "'{}'", "'{}'", "1")),
        _made(untyped + "INSERT INTO planned VALUES (NULL, NULL, NULL, NULL);"),
        _made(untyped + "INSERT INTO planned VALUES (5, x'ff', 2.5, 'k');"),
        _made(
            untyped + "INSERT INTO planned VALUES ('study/<!--<script', '</script>', '[x]', 'k');"
        ),
        _made(untyped + "INSERT INTO planned VALUES ('study/os:system', 'quick', 'a', 'k');"),
        _made(
            untyped
            + "CREATE TRIGGER t BEFORE INSERT ON planned BEGIN SELECT RAISE(FAIL, 'no'); END;"
        ),
        _made(f"PRAGMA encoding = 'UTF-16le'; {untyped}{planned}"),
        _made(f"PRAGMA page_size = 512; PRAGMA auto_vacuum = FULL; {untyped}{planned}"),
        _made(f"PRAGMA page_size = 65536; {untyped}{planned}"),
        _made(
            f"{OURS} CREATE VIRTUAL TABLE runs USING fts5({RUNS}); CREATE TABLE planned (owner);"
        ),
        _made(f"{untyped} CREATE INDEX i ON runs (json_extract(result, '$.x'));"),
        _made(f"{untyped} ALTER TABLE runs ADD COLUMN more AS (seed + 1);"),
        _made(f"{untyped} CREATE TABLE more (x DEFAULT (load_extension('x')));"),
        _made(
            f"{untyped} PRAGMA writable_schema = ON;"
            "UPDATE sqlite_master SET sql = 'CREATE TABLE runs (' WHERE name = 'runs';"
        ),
        _made(
            f"{untyped} PRAGMA writable_schema = ON;"
            "UPDATE sqlite_master SET rootpage = 1 WHERE name = 'runs';"
        ),
        _made(
            f"{untyped} PRAGMA writable_schema = ON;"
            "UPDATE sqlite_master SET rootpage = 999999 WHERE name = 'planned';"
        ),
        _made(
            f"{OURS} CREATE TABLE runs (key PRIMARY KEY) WITHOUT ROWID; CREATE TABLE planned (k);"
        ),
        _made(with_row("zeroblob(9000000)", "0", "zeroblob(9)", "''", "1")),
        _made(with_row(f"'{'[' * 60000}'", "0", "'{}'", "'{}'", "1")),
        _made(with_row("'{}'", str(2**63), "'{}'", "'{}'", "1")),
        _made(
            untyped + "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50000)"
            "INSERT INTO planned SELECT 'study/' || i, 'quick', 'a', i FROM n;"
        ),
        lambda: {"a.db": store, "a.db-shm": b"\xff" * 32768, "a.db-wal": b""},
        lambda: {"a.db": store[:18] + b"\x02\x02" + store[20:]},  # says that it has a log
        lambda: {"a.db": store[:18] + b"\x09\x09" + store[20:]},
        lambda: {"a.db": store[:16] + b"\x00\x03" + store[18:]},  # pages of three bytes
        lambda: {"a.db": store[:20] + b"\xff" + store[21:]},
        lambda: {"a.db": store[:56] + b"\x00\x00\x00\x07" + store[60:]},
        lambda: {"a.db": store, "a.db-wal": b"\x37\x7f\x06\x82" + bytes(5000)},
        lambda: {"a.db": store, "a.db-wal": b"text"},
        lambda: {"a.db": store, "a.db-journal": b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(600)},
        lambda: {"a.db": store, "a.db.lock": b"not mine"},
        lambda: {"a.db": store, "a.db.lock/inside": b""},
        lambda: {"a.db": store[: len(store) // 2]},
        lambda: {"a.db": store[:100]},
        lambda: {"a.db": store[:16] + bytes(len(store) - 16)},
        lambda: {"a.db": b"SQLite format 3\0" + b"\xff" * 4096},
        lambda: {"a.db": store + bytes(7)},
        lambda: {"a.db": b"", "a.db-wal": b""},
        lambda: {"a.db": b"text", "b.db": store, "c.db/inside": b""},
    ]
