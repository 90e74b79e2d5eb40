"""Arrays from .npy and .npz files, or a sentence: whoever wrote the file may have meant no good.

Nothing is unpickled. numpy takes what is neither for a pickle and advises to unpickle it; the first
bytes tell, so that this advice reaches nobody.
"""

import os
from collections import Counter
from pathlib import Path
from typing import IO
from zipfile import ZipFile

import numpy as np

from headwise.core.errors import InputError, require
from headwise.core.files import read_bytes

_BEGINS = {".npy": (b"\x93NUMPY",), ".npz": (b"PK\x03\x04", b"PK\x05\x06")}


def read_npy(path: str | Path) -> np.ndarray:
    """The one array of an .npy file."""
    _check_begin(Path(path), ".npy")
    _check_size(Path(path), Path(path).stat().st_size)
    try:
        with Path(path).open("rb") as file:
            return _array(file)
    except Exception as error:  # a damaged header raises what its parser does, or asks for memory
        raise InputError(f"{path} cannot be read as an .npy file: {error}") from error


def read_npz(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name."""
    _check_begin(Path(path), ".npz")
    try:
        with ZipFile(path) as archive:
            _check_size(Path(path), sum(entry.file_size for entry in archive.infolist()))
            entries = archive.namelist()
            others = [name for name in entries if not name.endswith(".npy")]
            require(not others, f"{', '.join(others)[:80]} in it is no array")
            name, count = Counter(entries).most_common(1)[0] if entries else ("", 0)
            require(count <= 1, f"it holds {count} arrays of the name {name.removesuffix('.npy')}")
            arrays = {}
            for entry in archive.infolist():
                with archive.open(entry) as file:
                    arrays[entry.filename.removesuffix(".npy")] = _array(file)
                    told = file.tell() == entry.file_size
                require(told, f"{entry.filename} is not as long as the archive tells")
            return arrays
    except Exception as error:  # numpy raises zip, zlib, memory, value and type errors
        raise InputError(f"{path} cannot be read as an .npz file: {error}") from error


def _array(file: IO[bytes]) -> np.ndarray:
    """The array in an open file, and nothing after it: two of them could be one torn in two."""
    array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
    require(not file.read(1), "bytes follow the array that its first line tells of")
    return array


def _check_size(path: Path, size: int) -> None:
    """Refuse what would fill the memory: a small archive can unpack to a thousand times as much."""
    limit = half_of_memory()
    require(
        size <= limit,
        f"{path} holds {size / 2**30:,.0f} GiB; the limit is half of the memory, "
        f"{limit / 2**30:,.1f} GiB",
    )


def half_of_memory() -> int:
    """What arrays may fill, in bytes; the rest is for what is computed from them."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return 2**32


def _check_begin(path: Path, ending: str) -> None:
    begin = read_bytes(path, most=8)
    other = next((end for end, those in _BEGINS.items() if begin.startswith(those)), None)
    found = f"it is an {other} file" if other else f"it begins with {begin!r}"
    require(
        other == ending,
        f"{path} cannot be read as an {ending} file: " + (found if begin else "it is empty"),
    )
