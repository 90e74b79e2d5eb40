"""Stores of results: damaged as files, and changed with SQL."""

import sqlite3
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from headwise.lab.store import Store
from malformed.case import HERE, OUT, InputClass, on_file
from malformed.databases import database_classes
from malformed.draw import damaged


def store_classes(folder: Path) -> list[InputClass]:
    """Every command that reads a store, and the one that writes it."""
    store = sound_store(folder)
    reading = (
        f"study status --store {HERE}/a.db",
        f"report {HERE}/a.db {OUT}",
        f"study export head-count --store {HERE}/a.db",
    )
    writing = f"study run head-count --store {HERE}/a.db --jobs 0"
    return [
        InputClass("file: store, damaged", on_file("a.db", damaged(store), *reading, writing)),
        InputClass("file: store, tampered", on_file("a.db", tampered_store(store), *reading)),
        *database_classes(store),
    ]


def sound_store(folder: Path) -> bytes:
    """A store with a plan and a run."""
    path = folder / "a.db"
    with Store(path, write=True) as store:
        store.plan("study/head-count", "quick", {"a": ["k"]})
    with sqlite3.connect(path) as database:
        row = ("k", "{}", 0, "done", "{}", "{}", 1.0, 1.0, "cpu", "now")
        database.execute(f"INSERT INTO runs VALUES ({', '.join('?' * 10)})", row)
        database.execute("PRAGMA journal_mode = DELETE")
    database.close()
    return path.read_bytes()


def tampered_store(whole: bytes) -> SearchStrategy[bytes]:
    """A store whose rows, owners or schema were changed with SQL."""
    texts = st.sampled_from(
        [
            "",
            "{",
            "[]",
            "{}",
            "null",
            "x",
            "[" * 50000,
            '{"error": "x"}',
            "1" * 5000,
            "\ud7ff",
            "os:system",
            '{"kind": "class-token", "type": "Run"}',
            '{"kind": ["x"]}',
            '{"kind": "my-own"}',
            "study/[red]x",
        ]
    )
    statements = st.sampled_from(
        [
            "UPDATE runs SET specification = ?",
            "UPDATE runs SET result = ?",
            "UPDATE runs SET versions = ?",
            "UPDATE planned SET owner = 'study/' || ?",
            "UPDATE planned SET tier = ?",
            "UPDATE runs SET key = ?",
            "DELETE FROM runs WHERE ? IS NOT NULL",
            "UPDATE planned SET part = ?",
            "UPDATE runs SET status = ?",
        ]
    )
    schemas = st.sampled_from(
        [
            "DROP TABLE runs",
            "DROP TABLE planned",
            "PRAGMA user_version = 99",
            "PRAGMA application_id = 7",
            "ALTER TABLE runs DROP COLUMN cpu",
            "CREATE VIEW v AS SELECT 1",
            "ALTER TABLE runs RENAME TO r",
        ]
    )

    def edit(changes: list[tuple[str, str]], schema: str | None) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.db")
            path.write_bytes(whole)
            database = sqlite3.connect(path)
            for statement, value in changes:
                database.execute(statement, (value,))
            if schema:
                database.execute(schema)
            database.commit()
            database.close()
            return path.read_bytes()

    pairs = st.lists(st.tuples(statements, texts), max_size=3)
    return st.builds(edit, pairs, st.none() | schemas)
