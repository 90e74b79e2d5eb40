"""Arrays from damaged files: a sentence, whatever numpy raises."""

from pathlib import Path

import numpy as np
import pytest

from headwise.advise.probe.samples.readers import read
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
