"""Arrays from damaged files: a sentence, whatever numpy raises."""

import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from headwise.advise.probe.samples.readers import read
from headwise.core import array_files
from headwise.core.errors import InputError
from headwise.tasks import TokenArray


def test_an_archive_with_a_flipped_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, tokens=np.arange(4000) % 7)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match="cannot be read"):
        TokenArray.from_file(path, 8)


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000000,), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (((((,), }",
    ],
)
def test_an_array_with_an_absurd_header(header: bytes, tmp_path: Path) -> None:
    for name in ("x.npy", "y.npy"):
        length = len(header).to_bytes(2, "little")
        (tmp_path / name).write_bytes(b"\x93NUMPY\x01\x00" + length + header + bytes(80))
    with pytest.raises(InputError, match="cannot be read"):
        read([tmp_path / "x.npy", tmp_path / "y.npy"])


def test_what_is_no_array_in_an_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes", "text")
    with pytest.raises(InputError, match="notes in it is no array"):
        TokenArray.from_file(path, 8)


def test_an_archive_that_unpacks_to_more_than_the_memory_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, tokens=np.zeros(4_000_000, np.int32))
    monkeypatch.setattr(array_files, "half_of_memory", lambda: 2_000_000)
    assert path.stat().st_size < 2_000_000
    with pytest.raises(InputError, match="the limit is half of the memory"):
        TokenArray.from_file(path, 8)
    np.save(tmp_path / "x.npy", np.zeros(4_000_000, np.int32))
    with pytest.raises(InputError, match="the limit is half of the memory"):
        read([tmp_path / "x.npy", tmp_path / "x.npy"])


def test_bytes_after_an_array_and_two_arrays_of_one_name_are_no_data(tmp_path: Path) -> None:
    x, y = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(x, np.zeros((600, 4, 2)))
    np.save(y, np.arange(600))
    assert read([x, y]).inputs.shape == (600, 4, 2)
    whole = x.read_bytes()
    for entries, sentence in {
        (("inputs.npy", whole + b"more"),): "bytes follow the array",
        (("inputs.npy", whole), ("inputs.npy", whole)): "2 arrays of the name inputs",
    }.items():
        with warnings.catch_warnings(), zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            warnings.simplefilter("ignore", UserWarning)  # zipfile tells of the second name
            for name, content in (*entries, ("targets.npy", y.read_bytes())):
                archive.writestr(name, content)
        with pytest.raises(InputError, match=sentence):
            read([tmp_path / "a.npz"])
    np.savez(tmp_path / "a.npz", inputs=np.zeros((600, 4, 2)), targets=np.arange(600))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    place = content.rfind(b"PK\x01\x02") + 24
    content[place : place + 4] = (2**31).to_bytes(4, "little")  # where the archive tells the size
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(InputError, match="not as long as the archive tells"):
        read([tmp_path / "a.npz"])
    x.write_bytes(whole * 2)
    with pytest.raises(InputError, match="bytes follow the array"):
        read([x, y])


ROWS = [f"{row // 2},{row % 2},{row / 7},{row // 2 % 5}" for row in range(40)]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda rows: [row + "," for row in rows], "more cells than its first line has names"),
        (lambda rows: ["9," + row for row in rows], "more cells than its first line has names"),
        (lambda rows: [*rows, "\0"], "holds NUL characters"),
        (lambda rows: [*rows, "20,0,1,2O"], "'target' .* holds numbers, and text such as '2O'"),
        (lambda rows: [*rows, "2x,0,1,2"], "'sequence' .* holds numbers, and text such as '2x'"),
        (lambda rows: [*rows, "19,1,1,4"], "each once in a sequence"),
        (lambda rows: [*rows, "20,,1,2"], "tokens are put in order"),
        (lambda rows: [*rows, "20,first,1,2"], "tokens are put in order"),
    ],
)
def test_a_table_that_could_mean_something_else_is_refused(
    change: Callable[[list[str]], list[str]], sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    head = "sequence,position,a,target"
    path.write_text("\n".join([head, *ROWS]))
    assert len(read([path]).inputs) == 20
    path.write_text("\n".join([head, *change(ROWS)]))
    with pytest.raises(InputError, match=sentence):
        read([path])


@pytest.mark.parametrize("column", ["sequence", "target"])
def test_a_table_of_lists_is_no_table(column: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"sequence": [0, 0, 1], "a": [1.0, 2.0, 3.0], "target": [0, 0, 1]})
    frame[column] = [{"x": 1}, {"x": 1}, {"x": 2}]
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=f"column '{column}' .* holds lists or the like"):
        read([tmp_path / "a.parquet"])


def test_a_table_of_ten_thousands_of_columns_is_refused_by_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    names = ",".join(f"c{number}" for number in range(20_000))
    path.write_text(f"\ufeff\nsequence,target,{names}\n0,1\n")
    with pytest.raises(InputError, match="has 20,002 columns"):
        read([path])


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "file" / "cache"))
    np.savez(tmp_path / "a.npz", tokens=np.arange(4000) % 7)
    with pytest.raises(InputError, match="HEADWISE_CACHE=FOLDER"):
        TokenArray.from_file(tmp_path / "a.npz", 8)
