"""Files appear whole or not at all; specifications in them come back equal."""

import gzip
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from headwise.core.array_files import read_npy, read_npz
from headwise.core.errors import InputError
from headwise.core.files import (
    appearing,
    check_can_write,
    check_can_write_into,
    read_bytes,
    read_json,
    read_spec,
    write_file,
    write_spec,
)
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


def test_a_device_or_a_pipe_stays_what_it_is(tmp_path: Path) -> None:
    """A file that appears in its place would take it from everyone: /dev/null from the machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    linked = tmp_path / "linked"
    linked.symlink_to(pipe)
    for place in (pipe, linked):
        with pytest.raises(InputError, match="a device or a pipe; a file is written"):
            write_file(place, "new")
        with pytest.raises(InputError, match=r"--out: .* a device or a pipe"):
            check_can_write(place, "--out")
        assert stat.S_ISFIFO(place.stat().st_mode)


def test_a_link_stays_one_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "latest.json"
    link.symlink_to(tmp_path / "folder" / "first.json")
    for content in ("made", "replaced"):
        check_can_write(link, "--out")
        write_file(link, content)
        assert link.is_symlink()
        assert (tmp_path / "folder" / "first.json").read_text() == content
    assert [file.name for file in (tmp_path / "folder").iterdir()] == ["first.json"]
    around = tmp_path / "around"
    around.symlink_to(around)
    with pytest.raises(InputError, match=r"cannot write .*around: Too many levels"):
        write_file(around, "")
    lost = tmp_path / "lost"
    lost.symlink_to(tmp_path / "nowhere" / "file")
    with pytest.raises(InputError, match=r"--out: there is no folder .*nowhere"):
        check_can_write(lost, "--out")


def test_only_a_file_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "around").symlink_to(tmp_path / "around")
    wrong = {
        tmp_path / "none": "No such file",
        tmp_path: "it is a folder",
        tmp_path / "pipe": "it is a pipe or a device",
        Path("/dev/zero"): "it is a pipe or a device",
        tmp_path / "around": "Too many levels",
        tmp_path / ("n" * 5000): "File name too long",
        tmp_path / "nul\0": "null",
    }
    for path, why in wrong.items():
        for read in (read_bytes, read_json, read_npy, read_npz):
            with pytest.raises(InputError, match=f"cannot read .*{why}"):
                read(path)


def test_json_from_an_editor_and_json_that_could_mean_two_things(tmp_path: Path) -> None:
    (tmp_path / "mark.json").write_text('{"a": 1}', "utf-8-sig")
    assert read_json(tmp_path / "mark.json") == {"a": 1}
    (tmp_path / "twice.json").write_text('{"a": {"b": 1, "b": 2}}')
    with pytest.raises(InputError, match="'b' is there twice"):
        read_json(tmp_path / "twice.json")


def test_arrays_come_from_files_of_arrays_and_nobody_is_told_to_unpickle(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    np.savez(tmp_path / "a.npz", a=np.arange(3))
    assert read_npy(tmp_path / "a.npy").tolist() == [0, 1, 2]
    assert read_npz(tmp_path / "a.npz")["a"].tolist() == [0, 1, 2]
    for name, content in {"zip": gzip.compress(b"x"), "text": b'{"a": 1}', "empty": b""}.items():
        (tmp_path / name).write_bytes(content)
        for read in (read_npy, read_npz):
            with pytest.raises(InputError, match="cannot be read as an") as caught:
                read(tmp_path / name)
            assert "pickle" not in str(caught.value)
    with pytest.raises(InputError, match=r"it is an \.npz file"):
        read_npy(tmp_path / "a.npz")
    with (tmp_path / "long.npy").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (10**12, 4)}
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(InputError, match="cannot be read"):
        read_npy(tmp_path / "long.npy")


def test_a_file_is_no_folder_to_write_into(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"--out: .*file cannot be written into: it is no folder"):
        check_can_write_into(tmp_path / "file", "--out")
