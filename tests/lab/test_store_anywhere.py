"""Stores on read-only media, behind links, without their lock file, and with changed rows."""

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from records import finished
from test_store import record

from headwise.core.errors import InputError
from headwise.core.spec import canonical_json
from headwise.lab.run import Run
from headwise.lab.store import Store
from headwise.lab.table import table
from headwise.lab.work import Record
from headwise.nets import ClassTokenShape
from headwise.tasks.retrieval import sum_of_maxima
from headwise.training import Training

NOBODY = 65534


def whole_record(seed: int = 0) -> Record:
    """A record as a run leaves it, with numbers made up."""
    run = Run(
        kind="class-token",
        task=sum_of_maxima(4, intrinsic_dim=2),
        net=ClassTokenShape.standard(token_dim=4, heads=1, width=8, head_dim=4),
        training=Training(steps=10, rate=1e-2, samples=64),
        seed=seed,
    )
    result = {"error": 0.5, "unit": "1", "error_last": 0.5, "best_step": 10, "engine": "none"}
    return finished(run.key, canonical_json(run), seed, result)


def filled(path: Path) -> Path:
    with Store(path, write=True) as store:
        store.plan("study/s", "quick", {"a": [whole_record().key]})
        store.add([whole_record()])
    return path


@pytest.fixture
def media() -> Iterator[Path]:
    """A folder that others can reach, as pytest's own cannot be."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def read_as_a_stranger(path: Path) -> int:
    """How many records a process without the right to write here sees; 255: it failed."""
    child = os.fork()
    if child == 0:
        code = 255
        try:
            if os.getuid() == 0:
                os.setuid(NOBODY)
            with Store(path) as store:
                code = len(list(store.records("study/s", "quick")))
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_read_only_media_can_be_read(media: Path) -> None:
    path = filled(media / "a.db")
    media.chmod(stat.S_IRUSR | stat.S_IXUSR | 0o055)
    assert read_as_a_stranger(path) == 1


def test_a_killed_runs_log_on_read_only_media_is_read_too(media: Path) -> None:
    path = media / "a.db"
    child = os.fork()
    if child == 0:
        store = Store(path, write=True)
        store.plan("study/s", "quick", {"a": [whole_record().key]})
        store.add([whole_record()])
        os._exit(9)
    os.waitpid(child, 0)
    assert (media / "a.db-wal").stat().st_size > 0
    (media / "a.db-shm").unlink()
    media.chmod(0o555)
    assert read_as_a_stranger(path) == 1


def test_reading_leaves_nothing_behind_and_never_blocks_a_run(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.db")
    before = sorted(tmp_path.iterdir())
    with Store(path) as reader:
        assert sorted(tmp_path.iterdir()) == before
        rows = reader.records("study/s", "quick")
        next(rows)  # a report in the middle of its work
        with Store(path, write=True) as writer:
            writer.add([whole_record(1)])
            assert len(writer.keys()) == 2
    assert sorted(tmp_path.iterdir()) == before
    with Store(path) as reader, pytest.raises(InputError):
        reader.plan("study/s", "quick", {})  # and cannot write by mistake
    with Store(path) as again:
        assert len(list(again.records("study/s", "quick"))) == 1


def test_a_link_does_not_pass_the_lock(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.db")
    (tmp_path / "link.db").symlink_to(path)
    (tmp_path / "folder").symlink_to(tmp_path)
    with Store(path, write=True):
        for other in ("link.db", "folder/a.db"):
            with pytest.raises(InputError, match="another run is writing"):
                Store(tmp_path / other, write=True)
    Store(tmp_path / "link.db", write=True).close()


def test_a_deleted_lock_is_taken_again_or_the_other_run_named(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.db")
    with Store(path, write=True) as store:
        (tmp_path / "a.db.lock").unlink()
        store.add([whole_record(1)])
        with pytest.raises(InputError, match="another run is writing"):
            Store(path, write=True)
        (tmp_path / "a.db.lock").unlink()
        with Store(path, write=True) as second:
            with pytest.raises(InputError, match="another run is writing"):
                store.add([whole_record(2)])
            second.add([whole_record(3)])
    with Store(path) as store:
        assert len(store.keys()) == 3


def test_a_folder_and_impossible_names_are_no_store(tmp_path: Path) -> None:
    for write in (False, True):
        with pytest.raises(InputError, match="is a folder; a store is a file"):
            Store(tmp_path, write=write)
        with pytest.raises(InputError):
            Store(tmp_path / "a\0b.db", write=write)
    os.mkfifo(tmp_path / "pipe.db")
    (tmp_path / "around.db").symlink_to(tmp_path / "around.db")
    there = sorted(tmp_path.iterdir())
    for name, why in {"pipe.db": "a device or a pipe", "around.db": "Too many levels"}.items():
        for write in (False, True):
            with pytest.raises(InputError, match=f"cannot be a store: .*{why}"):
                Store(tmp_path / name, write=write)
    assert sorted(tmp_path.iterdir()) == there  # no lock is left beside a device


def test_an_empty_file_becomes_a_store_and_is_not_somebody_elses(tmp_path: Path) -> None:
    (tmp_path / "a.db").touch()
    with pytest.raises(InputError, match="is empty: no study was run into it yet"):
        Store(tmp_path / "a.db")
    Store(tmp_path / "a.db", write=True).close()
    Store(tmp_path / "a.db").close()


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("result", "{"),
        ("result", "[]"),
        ("result", "{}"),
        ("result", '{"error": "much", "unit": "", "error_last": 1, "best_step": 1, "engine": ""}'),
        ("result", "[" * 50_000),
        ("versions", "null"),
        ("versions", "{}"),
        ("specification", "{}"),
        ("specification", "[" * 50_000),
        ("key", "0"),
    ],
)
def test_changed_rows_get_a_sentence_that_names_them(
    change: str, value: str, tmp_path: Path
) -> None:
    path = filled(tmp_path / "a.db")
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE runs SET {change} = ?", (value,))
        if change == "key":
            database.execute("UPDATE planned SET key = ?", (value,))
    database.close()
    with Store(path) as store, pytest.raises(InputError, match="changed or is damaged"):
        table(store.records("study/s", "quick"))


def test_a_run_of_an_unknown_kind_shows_what_its_record_says(tmp_path: Path) -> None:
    from hashlib import sha256

    text = '{"kind":"someones-own","type":"Run"}'
    own = Record(
        **{
            **vars(whole_record()),
            "specification": text,
            "key": sha256(text.encode()).hexdigest(),
        }
    )
    with Store(tmp_path / "a.db", write=True) as store:
        store.plan("study/s", "quick", {"a": [own.key]})
        store.add([own])
        (row,) = table(store.records("study/s", "quick")).to_dict("records")
    assert (row["kind"], row["error"]) == ("someones-own", 0.5)


def test_records_with_made_up_keys_are_still_records(tmp_path: Path) -> None:
    with Store(tmp_path / "a.db", write=True) as store:
        store.plan("study/s", "quick", {"a": ["k1"]})
        store.add([record("k1")])
        assert len(list(store.records("study/s", "quick"))) == 1
