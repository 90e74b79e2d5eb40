"""Arrays from .npy and .npz files, or a sentence: whoever wrote the file may have meant no good.

Nothing is unpickled. numpy takes what is neither for a pickle and advises to unpickle it; the first
bytes tell, so that this advice reaches nobody.
"""

from pathlib import Path

import numpy as np

from headwise.core.errors import InputError, require
from headwise.core.files import read_bytes

_BEGINS = {".npy": (b"\x93NUMPY",), ".npz": (b"PK\x03\x04", b"PK\x05\x06")}


def read_npy(path: str | Path) -> np.ndarray:
    """The one array of an .npy file."""
    _check_begin(Path(path), ".npy")
    try:
        array: np.ndarray = np.load(path, allow_pickle=False)
    except Exception as error:  # a damaged header raises what its parser does, or asks for memory
        raise InputError(f"{path} cannot be read as an .npy file: {error}") from error
    return array


def read_npz(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name."""
    _check_begin(Path(path), ".npz")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:  # numpy raises zip, zlib, memory, value and type errors
        raise InputError(f"{path} cannot be read as an .npz file: {error}") from error


def _check_begin(path: Path, ending: str) -> None:
    begin = read_bytes(path, most=8)
    other = next((end for end, those in _BEGINS.items() if begin.startswith(those)), None)
    found = f"it is an {other} file" if other else f"it begins with {begin!r}"
    require(
        other == ending,
        f"{path} cannot be read as an {ending} file: " + (found if begin else "it is empty"),
    )
