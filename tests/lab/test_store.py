"""The store: durable, single-writer, and plain about what is wrong."""

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from records import finished

from headwise.core.errors import InputError
from headwise.lab.store import SCHEMA_VERSION, Store
from headwise.lab.work import Record


def record(key: str, seed: int = 0) -> Record:
    return finished(key, "{}", seed, {"error": 0.1 + 0.2, "curve": [[1, None, 0.5]]})


def test_records_come_back_exactly(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "a.db"
    with Store(path, write=True) as store:
        store.plan("s", "quick", {"b": ["k2", "k1", "missing"], "a": ["k1"]})
        store.add([record("k1", 1), record("k2", 2)])
    with Store(path) as store:
        assert store.keys() == {"k1", "k2"}
        found = list(store.records("s", "quick"))
        assert [(part, r.key) for part, r in found] == [("a", "k1"), ("b", "k1"), ("b", "k2")]
        assert found[0][1] == record("k1", 1)
        assert store.progress() == [("s", "quick", 2, 3)]
        assert list(store.records("s", "full")) == []


def test_anyone_can_open_it_with_pandas(tmp_path: Path) -> None:
    with Store(tmp_path / "a.db", write=True) as store:
        store.add([record("k1")])
    with sqlite3.connect(tmp_path / "a.db") as database:
        frame = pd.read_sql("SELECT * FROM runs", database)
    database.close()
    assert frame["seed"].tolist() == [0]


def test_a_record_is_on_disk_when_add_returns(tmp_path: Path) -> None:
    """A child adds a record and dies without closing anything."""
    pid = os.fork()
    if pid == 0:
        store = Store(tmp_path / "a.db", write=True)
        store.add([record("k1")])
        os._exit(9)
    os.waitpid(pid, 0)
    with Store(tmp_path / "a.db", write=True) as store:
        assert store.keys() == {"k1"}


def test_adding_twice_is_harmless_and_the_first_stays(tmp_path: Path) -> None:
    with Store(tmp_path / "a.db", write=True) as store:
        store.plan("study/s", "quick", {"a": ["k1", "k2"]})
        store.add([record("k1", seed=1)])
        store.add([record("k2"), record("k1", seed=5)])
        assert store.keys() == {"k1", "k2"}
        assert [each.seed for _, each in store.records("study/s", "quick")] == [1, 0]


def test_a_failure_is_kept_apart_and_gives_way_to_any_later_record(tmp_path: Path) -> None:
    failed = replace(record("k1"), status="failed", result={"failure": "no", "tries": 3})
    with Store(tmp_path / "a.db", write=True) as store:
        store.plan("study/s", "quick", {"a": ["k1", "k2"]})
        store.add([failed, record("k2")])
        assert store.keys() == {"k2"}
        assert store.studies() == [("s", "quick", 1, 2)]
        assert store.failed("study/s", "quick") == 1
        assert [each for _, each in store.records("study/s", "quick", failed=True)] == [failed]
        store.add([replace(failed, result={"failure": "again no", "tries": 3})])
        ((_, kept),) = store.records("study/s", "quick", failed=True)
        assert kept.result["failure"] == "again no"
        store.add([record("k1", seed=4)])
        assert store.keys() == {"k1", "k2"}
        store.add([failed])  # what is done stays done
        assert store.failed("study/s", "quick") == 0
        assert [each.seed for _, each in store.records("study/s", "quick")] == [4, 0]


def test_a_failed_batch_leaves_no_trace(tmp_path: Path) -> None:
    with Store(tmp_path / "a.db", write=True) as store:
        store.add([record("k1")])
        with pytest.raises(TypeError):
            store.add([record("k2"), replace(record("k3"), result={"error": object()})])
        assert store.keys() == {"k1"}


def test_plans_and_studies_do_not_see_each_others_rows(tmp_path: Path) -> None:
    """Even of the same name and tier, and with a run in common."""
    with Store(tmp_path / "a.db", write=True) as store:
        store.plan("study/plan", "quick", {"a": ["k1"]})
        store.plan("plan", "quick", {"a": ["k1", "k2"]})
        store.add([record("k1"), record("k2")])
        assert store.studies() == [("plan", "quick", 1, 1)]
        assert len(list(store.records("plan", "quick"))) == 2
        store.plan("plan", "quick", {})
        assert len(list(store.records("study/plan", "quick"))) == 1


def test_a_store_of_an_older_version_gets_a_sentence(tmp_path: Path) -> None:
    Store(tmp_path / "a.db", write=True).close()
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION - 1}")
    database.close()
    with pytest.raises(InputError, match="older headwise"):
        Store(tmp_path / "a.db", write=True)


def test_a_second_writer_is_refused_and_readers_are_not(tmp_path: Path) -> None:
    with Store(tmp_path / "a.db", write=True) as store:
        store.add([record("k1")])
        with pytest.raises(InputError, match="another run is writing"):
            Store(tmp_path / "a.db", write=True)
        with Store(tmp_path / "a.db") as reader:
            assert reader.keys() == {"k1"}
    Store(tmp_path / "a.db", write=True).close()


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    Store(tmp_path / "a.db", write=True).close()
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    database.close()
    for write in (False, True):
        with pytest.raises(InputError, match="newer headwise"):
            Store(tmp_path / "a.db", write=write)


@pytest.mark.parametrize("write", [False, True])
def test_other_files_are_refused_and_left_alone(tmp_path: Path, write: bool) -> None:
    text = tmp_path / "text.db"
    text.write_text("this is not a database at all, but it is long enough " * 20)
    with pytest.raises(InputError, match="not a headwise store"):
        Store(text, write=write)
    assert text.read_text().startswith("this is not")
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    with pytest.raises(InputError, match="another program"):
        Store(other, write=write)


@pytest.mark.parametrize(
    "changes",
    [
        "CREATE VIEW v AS SELECT 1",
        "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM planned; END",
        "ALTER TABLE runs ADD COLUMN more TEXT",
        "DROP TABLE runs; CREATE VIEW runs AS SELECT 1",
        "DROP TABLE planned; CREATE TABLE planned (owner, tier, part, key);"
        "INSERT INTO planned VALUES (NULL, NULL, NULL, 'k'), (5, x'ff', 2.5, 'k')",
    ],
)
def test_a_store_of_other_tables_is_refused(changes: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Store(path, write=True) as store:
        store.add([record("k")])
    with closing(sqlite3.connect(path)) as database:
        database.executescript(f"ANALYZE; {changes};")
    for write in (False, True):
        with pytest.raises(InputError, match=r"a\.db was changed: .* no view and no trigger"):
            Store(path, write=write).studies()


def test_a_store_that_sqlite_added_to_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Store(path, write=True) as store:
        store.add([record("k")])
    with closing(sqlite3.connect(path)) as database:
        database.executescript("ANALYZE; VACUUM;")
    with Store(path) as store:
        assert store.keys() == {"k"}


def test_a_damaged_store_is_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Store(path, write=True) as store:
        store.add([record(f"k{i}") for i in range(200)])
    content = bytearray(path.read_bytes())
    content[4096:] = b"\x5a" * (len(content) - 4096)
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match=r"damaged|cannot be used"), Store(path) as store:
        store.keys()


def test_a_full_disk_gets_a_sentence_and_keeps_what_was_done(tmp_path: Path) -> None:
    with Store(tmp_path / "a.db", write=True) as store:
        store.add([record("k1")])
        (pages,) = store._database.execute("PRAGMA page_count").fetchone()
        store._database.execute(f"PRAGMA max_page_count = {pages}")  # what a full disk looks like
        with pytest.raises(InputError, match="full"):
            store.add([record(f"x{i}") for i in range(500)])
        assert store.keys() == {"k1"}


def test_missing_and_unwritable_places_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no store at"):
        Store(tmp_path / "none.db")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write a store"):
        Store(tmp_path / "file" / "a.db", write=True)
