"""Tables and tensors that are no data: odd encodings, nested types, offsets that overlap."""

import io
import json
import struct
from collections.abc import Callable
from datetime import time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from malformed.arrays import PROBE_FILE, saved_tensors
from malformed.case import HERE, PROBE, InputClass, on_file

COLUMNS = 200_000


def table_classes() -> list[InputClass]:
    """None of these can be used."""
    kinds = {"csv": _csv(), "parquet": _parquet(), "safetensors": _tensors()}
    return [
        InputClass(
            f"hostile: {ending}",
            on_file(
                f"a.{ending}",
                st.sampled_from(contents).map(lambda make: make()),
                f"{PROBE_FILE}.{ending} {PROBE}",
            ),
            unusable=True,
        )
        for ending, contents in kinds.items()
    ] + [
        InputClass(
            "hostile: llama2.c",
            on_file(
                "a.bin",
                st.sampled_from(_llama2c()).map(lambda make: make()),
                f"convert llama2c {HERE}/a.bin {HERE}/new",
            ),
            unusable=True,
        )
    ]


def _rows(*cells: str, head: str = "sequence,a,b,target", count: int = 600) -> bytes:
    lines = (",".join(cells).format(row=row, half=row // 2) for row in range(count))
    return "\n".join([head, *lines]).encode()


def _csv() -> list[Callable[[], bytes]]:
    names = ",".join(f"c{number}" for number in range(COLUMNS))
    zeros = ",".join(["0"] * COLUMNS)
    sound = _rows("{half}", "{row}", "1", "{half}")
    return [
        lambda: _rows("{half}", "{row}", "1", "{row}"),  # the target changes within a sequence
        lambda: sound.replace(b"\n7,", b"\n7\0,"),
        lambda: sound.replace(b",", b'"', 700),
        lambda: sound + b'\n"' + b"x" * 200_000,
        lambda: sound.replace(b"sequence,a,b,target", b"sequence,a,b,target," + names.encode()),
        lambda: f"sequence,target,{names}\n0,1,{zeros}\n1,2,{zeros}".encode(),
        lambda: sound.decode().encode("utf-16-le"),
        lambda: sound.decode().encode("utf-32"),
        lambda: sound.replace(b",1,", b",\xff\xfe,"),
        lambda: sound.replace(b",1,", "١,".encode(), 3),
        lambda: sound.replace(b",1,", b",1e999,"),
        lambda: sound.replace(b",1,", b",=cmd|' /C calc'!A0,"),
        lambda: sound.replace(b",1,", b",True False,"),
        lambda: sound.replace(b",1,", b",1;2,"),
        lambda: sound.replace(b"\n", b",\n"),
        lambda: sound.replace(b"\n", b"\n9,"),
        lambda: sound.replace(b"\n7,", b"\n7x,"),
        lambda: sound.replace(b",7\n", b",7O\n"),
        lambda: sound.replace(b",1,", b',"1,000",', 3),
        lambda: sound.replace(b",", b";"),
        lambda: b"# made by hand\n" + sound,
        lambda: b"sequence,a,b,target\n" + sound,
        lambda: sound.replace(b",b,", b",position,"),  # all at position 1
        lambda: sound.replace(b"target", b"targ\net"),
        lambda: b"sequence,a,b,target\n" * 600,
        lambda: b",,,\n" * 600,
        lambda: b"\n" * 100_000,
        lambda: b'"' * 100_001,
        lambda: b"sequence" + b",target" * 3 + b"\n1,2,3,4",
        lambda: _rows("", "{row}", "1", "{half}"),
        lambda: _rows("{half}", "nan", "1", "{half}"),
        lambda: _rows("{half}", "9" * 400, "1", "{half}"),
        lambda: _rows("{row}", "2021-01-01", "x", "{row}"),
        lambda: b"PK\x03\x04" + sound,
        lambda: b"\x1f\x8b" + sound,
    ]


def _parquet() -> list[Callable[[], bytes]]:
    number = [float(row) for row in range(600)]
    half = [row // 2 for row in range(600)]
    odd: list[Any] = [
        [{"x": 1}] * 600,
        [[1, 2]] * 600,
        [[[1]]] * 600,
        pa.array([[("k", 1)]] * 600, pa.map_(pa.string(), pa.int64())),
        pa.array([None] * 600, pa.null()),
        pa.array([b"x"] * 600),
        pa.array(["1"] * 600).dictionary_encode(),
        pa.array([0] * 600, pa.timestamp("s")),
        pa.array([0] * 600, pa.duration("s")),
        pa.array([0] * 600, pa.date32()),
        pa.array([None, *number[1:]]),
        pa.array([float("inf")] * 600),
        pa.array(["x"] * 600),
        pa.array([Decimal(1)] * 600),
        pa.array([time()] * 600),
    ]

    def written(**columns: Any) -> bytes:
        buffer = io.BytesIO()
        pq.write_table(pa.table(columns), buffer)
        return buffer.getvalue()

    def twice() -> bytes:
        buffer = io.BytesIO()
        column = pa.array(number)
        names = ["sequence", "a", "a", "target"]
        pq.write_table(
            pa.Table.from_arrays([pa.array(half), column, column, column], names), buffer
        )
        return buffer.getvalue()

    sound = written(sequence=half, a=number, target=half)
    made = [
        lambda cells=cells: written(sequence=half, a=cells, target=half)  # type: ignore[misc]
        for cells in odd
    ]
    made += [
        lambda cells=cells: written(sequence=cells, a=number, target=half)  # type: ignore[misc]
        for cells in odd[:5]
    ]
    made += [
        lambda cells=cells: written(sequence=half, a=number, target=cells)  # type: ignore[misc]
        for cells in odd[:5]
    ]

    def with_metadata(**entries: bytes) -> bytes:
        table = pa.table({"sequence": half, "a": number, "no target": ["x"] * 600})
        buffer = io.BytesIO()
        pq.write_table(table.replace_schema_metadata(entries), buffer)
        return buffer.getvalue()

    def renamed(old: bytes, new: bytes) -> bytes:
        return written(sequence=half, a=number, target=half).replace(old, new)

    return [
        *made,
        twice,
        lambda: with_metadata(pandas=b"{"),
        lambda: with_metadata(pandas=b'{"index_columns": ["nowhere"], "columns": 5}'),
        lambda: with_metadata(**{"ARROW:schema": b"AAAA"}),
        lambda: renamed(b"sequence", b"\xff\xfe\xfd\xfcence"),
        lambda: renamed(b"target", b"targe\0"),
        lambda: written(sequence=half, a=[[]] * 600, target=number),
        lambda: written(sequence=half, a=pa.array([[1.0] * (row % 3) for row in half])),
        lambda: written(sequence=half, a=pa.array([10**30] * 600, pa.decimal256(60))),
        lambda: written(sequence=half, a=pa.array(number, pa.float16()), b=["[x]"] * 600),
        lambda: written(**{"sequence": half, "a": number, "</script>": number}),
        lambda: written(sequence=[], a=[], target=[]),
        lambda: written(x=number),
        lambda: sound[:4] + bytes(40) + sound[-8:],
        lambda: sound[:-8] + struct.pack("<I", 2**31) + b"PAR1",
        lambda: sound[:-4] + b"PARE",
        lambda: b"PAR1PAR1",
        lambda: written(**{f"c{number}": [0.0] for number in range(3000)}),
    ]


def _tensors() -> list[Callable[[], bytes]]:
    def with_header(header: Any, content: bytes = bytes(64), length: int | None = None) -> bytes:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(text) if length is None else length) + text + content

    def tensor(
        shape: list[Any], begin: Any = 0, end: Any = 64, kind: Any = "F32"
    ) -> dict[str, Any]:
        return {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}

    def pair(one: Any, other: Any) -> dict[str, Any]:
        return {"inputs": one, "targets": other}

    headers: list[Any] = [
        pair(tensor([16]), tensor([16])),  # the same bytes
        pair(tensor([16]), tensor([16], 32, 96)),
        pair(tensor([16], 64, 0), tensor([16])),
        pair(tensor([2**62]), tensor([1])),
        pair(tensor([2**63]), tensor([1])),
        pair(tensor([-16]), tensor([16])),
        pair(tensor([0]), tensor([0], 0, 0)),
        pair(tensor([16.0]), tensor([16])),
        pair(tensor(["16"]), tensor([16])),
        pair(tensor([16], kind=7), tensor([16])),
        pair(tensor([16], "0", "64"), tensor([16])),
        pair([], {}),
        pair(None, None),
        [],
        {},
        {"__metadata__": {"a": 1}},
        {"__metadata__": "x"},
        {"\ud800": tensor([16])},
        {f"t{number}": tensor([0], 0, 0) for number in range(20_000)},
        pair(tensor([1] * 200, 0, 4), tensor([1], 4, 8)),
    ]
    sound = saved_tensors()
    return [
        *(lambda header=header: with_header(header) for header in headers),  # type: ignore[misc]
        lambda: with_header(b"{" * 60_000),
        lambda: with_header(b'{"a":' * 60_000),
        lambda: with_header(b'{"inputs": NaN}'),
        lambda: with_header(b"{}", length=2**63),
        lambda: with_header(b"{}", length=2**64 - 1),
        lambda: with_header(b"{}", length=0),
        lambda: with_header(b"{}", length=100_000_001),
        lambda: with_header(b'{"inputs": {}, "inputs": {}}'),
        lambda: sound[:8] + b" " + sound[9:],
        lambda: sound + b"more",
        lambda: sound[:-1],
        lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
    ]


def _llama2c() -> list[Callable[[], bytes]]:
    """Headers: width, hidden, layers, heads, heads of keys, vocabulary, length."""
    headers = [
        [0] * 7,
        [-8, 8, 1, 2, 2, 9, 8],
        [8, 8, 1, 0, 0, 9, 8],
        [8, 8, 1, 3, 2, 9, 8],
        [8, 8, 1, 2, 5, 9, 8],
        [2**31 - 1] * 7,
        [2**20, 2**20, 1000, 2, 2, 2**30, 2**30],
        [8, 8, 0, 2, 2, 9, 8],
        [8, 8, 1, 2, 2, 0, 8],
        [8, 8, 1, 2, 2, -(2**31), 8],
        [8, 8, 1, 2, 2, 9, 0],
        [7, 8, 1, 7, 7, 9, 8],
    ]
    return [
        *(
            lambda header=header: np.array(header, np.int32).tobytes() + bytes(4000)  # type: ignore[misc]
            for header in headers
        ),
        lambda: b"\x7fELF" + bytes(4000),
        lambda: np.array([8, 8, 1, 2, 2, 9, 8], np.int32).tobytes(),
        lambda: b"GGUF" + bytes(4000),
    ]
