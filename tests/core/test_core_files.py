"""Files appear whole or not at all; specifications in them come back equal."""

import os
import stat
from pathlib import Path

import pytest

from headwise.core.errors import InputError
from headwise.core.files import appearing, check_can_write, read_spec, write_file, write_spec
from headwise.core.spec import spec

needs_permissions = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere"
)


@spec
class Kept:
    name: str
    rate: float


def test_content_is_written_and_folders_are_made(tmp_path: Path) -> None:
    write_file(tmp_path / "new" / "deep" / "text.txt", "größer\n")
    write_file(tmp_path / "bytes", b"\x00\xff")
    assert (tmp_path / "new" / "deep" / "text.txt").read_bytes() == "größer\n".encode()
    assert (tmp_path / "bytes").read_bytes() == b"\x00\xff"


def test_until_all_went_well_readers_see_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")
    with appearing(path) as scratch:
        scratch.write_text("new")
        assert path.read_text() == "old"
        assert scratch.parent == path.parent  # renaming is atomic on one file system only
        assert scratch.suffix == ".csv"  # some writers go by the ending
    assert path.read_text() == "new"
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, failure: type[BaseException]
) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"old")

    def write_half() -> None:
        with appearing(path) as scratch:
            scratch.write_bytes(b"half of the new")
            raise failure

    with pytest.raises(failure):
        write_half()
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["weights.bin"]


def test_a_failure_leaves_no_file_where_there_was_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stop"), appearing(tmp_path / "new.txt"):
        raise ValueError("stop")
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_disk_becomes_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "full"
    with pytest.raises(InputError, match=r"cannot write .*full: No space left"), appearing(path):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_the_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "shared", "for the group to read")
        assert os.umask(0o027) == 0o027  # it was looked at and put back
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o640


@pytest.mark.parametrize("place", ["file/below", "folder"])
def test_an_impossible_place_gets_a_sentence(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot write"):
        write_file(tmp_path / place, "")
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["file", "folder"]


@needs_permissions
def test_a_folder_that_may_not_be_written_to_gets_a_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match=r"--out: .* cannot be written to"):
            check_can_write(tmp_path / "result.json", "--out")
        with pytest.raises(InputError, match="cannot write"):
            write_file(tmp_path / "result.json", "")
    finally:
        tmp_path.chmod(0o700)


def test_places_are_checked_before_work_begins(tmp_path: Path) -> None:
    check_can_write(None, "--out")
    check_can_write(tmp_path / "result.json", "--out")
    check_can_write(Path("result.json"), "--out")  # the current folder
    with pytest.raises(InputError, match=r"--out: there is no folder .*nowhere; make it first"):
        check_can_write(tmp_path / "nowhere" / "result.json", "--out")
    with pytest.raises(InputError, match=r"the figure: .* is a folder; a file is written"):
        check_can_write(tmp_path, "the figure")
    assert list(tmp_path.iterdir()) == []


def test_a_specification_comes_back_equal(tmp_path: Path) -> None:
    kept = Kept(name="größer", rate=0.1)
    write_spec(kept, tmp_path / "kept.json")
    assert read_spec(tmp_path / "kept.json", "a kept one") == kept
    assert "größer" in (tmp_path / "kept.json").read_text("utf-8")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot read .*: No such file"),
        ("{", "is not JSON"),
        ('{"type": "Nothing"}', "is not a kept one: unknown specification type"),
    ],
)
def test_what_is_no_specification_gets_a_sentence(
    tmp_path: Path, content: str | None, sentence: str
) -> None:
    path = tmp_path / "spec.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=sentence):
        read_spec(path, "a kept one")
