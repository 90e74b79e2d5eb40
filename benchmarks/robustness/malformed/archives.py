"""Archives of arrays that somebody made to do harm: bombs, pickles, headers that lie."""

import io
import pickle
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from malformed.arrays import PROBE_FILE, npy_bytes, sample_arrays
from malformed.case import HERE, PLAN, PROBE, InputClass, on_file

GIGABYTES = 64


def archive_classes() -> list[InputClass]:
    """None of these can be used, so that an answer would be one to nonsense."""
    made = st.sampled_from([*_archives(), *(_in_archive(header) for header in _headers())])
    return [
        InputClass(
            "hostile: npz",
            on_file(
                "a.npz",
                made.map(lambda make: make()),
                f"{PROBE_FILE}.npz {PROBE}",
                f"{PLAN} --data {HERE}/a.npz",
            ),
            unusable=True,
        ),
        InputClass(
            "hostile: npy",
            on_file(
                "a.npy",
                st.sampled_from(_headers()).map(lambda make: make()),
                f"probe {HERE}/a.npy {HERE}/a.npy {PROBE}",
                f"bound extraction --heads 1 --head-dim 1 --kernel {HERE}/a.npy",
            ),
            unusable=True,
        ),
    ]


class _Trap:
    """Would leave a file if it were unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return open, ("unpickled", "w")


def _zip(*entries: tuple[str, bytes], how: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", how) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return buffer.getvalue()


def _header(text: str, version: bytes = b"\x01\x00", content: bytes = b"") -> bytes:
    padded = text.encode("latin1").ljust(117) + b"\n"
    length = struct.pack("<H" if version[0] == 1 else "<I", len(padded))
    return b"\x93NUMPY" + version + length + padded + content


def _in_archive(make: Callable[[], bytes]) -> Callable[[], bytes]:
    return lambda: _zip(("inputs.npy", make()), ("targets.npy", npy_bytes(sample_arrays()[1])))


def _headers() -> list[Callable[[], bytes]]:
    """Files of one array whose first line lies."""

    def said(text: str, **more: Any) -> Callable[[], bytes]:
        return lambda: _header(text, **more)

    trap = pickle.dumps(_Trap())
    shape = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }"
    return [
        said("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", content=trap),
        said(shape % f"({GIGABYTES << 28},)"),
        said(shape % "(-1, 4, 2)"),
        said(shape % f"({2**63},)"),
        said(shape % f"({2**62}, 0, {2**62})"),
        said(shape % "(600, 4, 2), 'more': 1"),
        said(shape % ("9" * 5000)),
        said("{'descr': [('a', '<f4', (2**9,)*9)], 'fortran_order': False, 'shape': (1,), }"),
        said("{'descr': ('<f4', (9, 9)), 'fortran_order': False, 'shape': (600,), }"),
        said("{'descr': '<f4', 'fortran_order': False, 'shape': (600, 4, 2), 'shape': (1,), }"),
        lambda: b"\x93NUMPY\x03\x00" + struct.pack("<I", 1 << 27) + b"{" + b" " * (1 << 20),
        said(shape % "(600, 4, 2)", content=b"short"),
        said(shape % "(10**9, 10**9)"),
        said(shape % "(1e9,)"),
        said(shape % "(True, 2)"),
        said(shape % "600"),
        said(shape % ("(" + "1," * 40 + ")")),
        said("{'descr': '<f99', 'fortran_order': False, 'shape': (1,), }"),
        said("{'descr': '|V0', 'fortran_order': False, 'shape': (600,), }"),
        said("{'descr': [('a', '<f4')] * 3, 'fortran_order': False, 'shape': (1,), }"),
        said("__import__('os').mkdir('executed')"),
        said("{" * 100),
        said("[" + "(" * 90),
        said("{'descr': '<f4', 'fortran_order': 'x', 'shape': (1,), }"),
        said("{'descr': '<U400000000', 'fortran_order': False, 'shape': (9,), }"),
        said(shape % "(2,)", version=b"\x09\x00"),
        lambda: b"\x93NUMPY\x02\x00\xff\xff\xff\x7f",
        lambda: npy_bytes(np.zeros((600, 4, 2)))[:200],
        lambda: trap,
        lambda: npy_bytes(np.zeros((600, 4, 2))) * 2,
        *(
            lambda kind=kind: npy_bytes(np.zeros((600, 4, 2), kind))  # type: ignore[misc]
            for kind in ("c8", "M8[s]", "m8[s]", "V8", "U3", "S3", [("a", "f4"), ("b", "i2")])
        ),
        lambda: npy_bytes(np.float32(1)),
        lambda: npy_bytes(np.zeros((6, 2, 2, 2, 2, 2), ">f2")),
        lambda: npy_bytes(np.zeros((600, 0, 2))),
    ]


def _archives() -> list[Callable[[], bytes]]:
    inputs, targets = (npy_bytes(array) for array in sample_arrays())
    both = (("inputs.npy", inputs), ("targets.npy", targets))

    def bomb() -> bytes:
        """Sixty kilobytes that unfold to sixty-four megabytes and say that more will follow."""
        shape = f"({GIGABYTES << 25}, 4, 2)"
        told = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
        content = _header(told) + bytes(1 << 26)
        return _zip(("inputs.npy", content), both[1], how=zipfile.ZIP_DEFLATED)

    def claims_more() -> bytes:
        """The directory says sixty-four gigabytes, the content is small."""
        sound = bytearray(_zip(*both))
        at = sound.rfind(b"PK\x01\x02")
        sound[at + 24 : at + 28] = struct.pack("<I", 0xFFFFFFF0)
        return bytes(sound)

    def terabytes() -> bytes:
        """Both directories say, in the form for large files, that four terabytes will unfold."""
        huge = struct.pack("<HHQQ", 1, 16, 1 << 42, len(inputs))
        sound = bytearray(_zip(*both))
        at = sound.rfind(b"PK\x01\x02")
        name = struct.unpack("<H", sound[at + 28 : at + 30])[0]
        sound[at + 20 : at + 28] = b"\xff" * 8
        sound[at + 30 : at + 32] = struct.pack("<H", len(huge))
        sound[at + 46 + name : at + 46 + name] = huge
        end = sound.rfind(b"PK\x05\x06")
        size = struct.unpack("<I", sound[end + 12 : end + 16])[0] + len(huge)
        sound[end + 12 : end + 16] = struct.pack("<I", size)
        return bytes(sound)

    def overlapping() -> bytes:
        """Two entries of the directory, one content."""
        sound = bytearray(_zip(*both))
        at = sound.rfind(b"PK\x01\x02")
        sound[at + 42 : at + 46] = bytes(4)
        return bytes(sound)

    def elsewhere() -> bytes:
        sound = bytearray(_zip(*both))
        at = sound.rfind(b"PK\x01\x02")
        sound[at + 42 : at + 46] = struct.pack("<I", 2**31)
        return bytes(sound)

    def unchecked() -> bytes:
        """The content is not that of its checksum."""
        sound = bytearray(_zip(*both))
        sound[sound.find(b"\x93NUMPY") + 200] ^= 1
        return bytes(sound)

    def locked() -> bytes:
        sound = bytearray(_zip(*both))
        at = sound.find(b"PK\x01\x02")
        sound[at + 8] |= 1  # encrypted
        return bytes(sound)

    return [
        bomb,
        claims_more,
        terabytes,
        overlapping,
        elsewhere,
        unchecked,
        locked,
        lambda: _zip(("inputs.npy", inputs), ("targets.npy/", b"")),
        lambda: _zip(("inputs.npy", inputs), ("targets.NPY", targets)),
        lambda: _zip(("inputs.npy", bytes(1 << 26)), both[1], how=zipfile.ZIP_LZMA),
        lambda: _zip(*both).replace(b"\x08\x00\x00\x00", b"\x63\x00\x00\x00"),
        lambda: b"#!/bin/sh\n" + _zip(*both)[4:],
        lambda: _zip(("inputs.npy", inputs), ("inputs.npy", inputs[:-4]), both[1]),
        lambda: _zip(("inputs.npy", inputs), *both),
        lambda: _zip(("inputs.npy", inputs + b"more"), both[1]),
        lambda: _zip(("../../inputs.npy", inputs), both[1]),
        lambda: _zip(("/inputs.npy", inputs), both[1]),
        lambda: _zip(("inputs.npy", b""), both[1]),
        lambda: _zip(("inputs", b"text"), ("targets", b"text")),
        lambda: _zip(("inputs.npy", pickle.dumps(_Trap())), both[1]),
        lambda: _zip(("inputs.npy", _zip(*both)), both[1]),
        lambda: _zip(("\udce9.npy".encode("utf-8", "surrogatepass").decode("latin1"), inputs)),
        lambda: _zip(),
        lambda: _zip(*both)[:-22],
        lambda: _zip(*both).replace(b"PK\x05\x06", b"PK\x06\x06"),
        lambda: _zip(*((f"a{number}.npy", b"x") for number in range(3000))),
        lambda: _zip(("inputs.npy", npy_bytes(np.array([{}, []], object))), both[1]),
        lambda: _zip(("inputs.npy", inputs), ("targets.npy", npy_bytes(np.zeros(3)))),
        lambda: _zip(("inputs.npy", npy_bytes(np.zeros((600, 4, 2), "m8[s]"))), both[1]),
    ]
