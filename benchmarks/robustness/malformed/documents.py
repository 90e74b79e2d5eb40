"""JSON, lines of JSON and tables of evidence that headwise did not write, or not like this."""

import io
import json
import struct
import zlib
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from malformed.arrays import probe_data
from malformed.case import HERE, OUT, PROBE, Case, InputClass, on_file
from malformed.texts import PLAN_FILE, TASK

LINES = [
    b"{",
    b"[]\n{}\n5\nnull\n",
    b'{"task": NaN}\n',
    b'{"name": "\\ud800"}\n',
    b'{"task": 1, "task": 2}\n',
    b"[" * 60_000,
    b"\xff\xfe\n",
    b"1" * 5000 + b"\n",
    b'{"seed": 1, "number": "one"}\n',
    b'{"seed": 1, "number": 0, "data": [], "right": {}}\n',
    b"\0\0\0\n",
    b'"text"\n',
]


def document_classes() -> list[InputClass]:
    """Files of text whose content somebody thought up."""
    return [
        InputClass(
            "hostile: attempts (jsonl)",
            on_file(
                "a.jsonl",
                st.sampled_from(LINES),
                f"probe-eval --zoo --seed 1 --tasks 1 --seconds nan --out {HERE}/a.jsonl",
                f"probe-eval --zoo --seed 1 --tasks 1 --jobs 0 --out {HERE}/a.jsonl",
            ),
            unusable=True,
        ),
        InputClass(
            "hostile: json",
            st.builds(
                lambda content, command: Case(
                    command.split(), {"a.json": content, "a.npz": probe_data()}
                ),
                st.sampled_from(_documents()),
                st.sampled_from(
                    [
                        f"build retrieval --task {HERE}/a.json --error 0.5 --seconds 0.05 {OUT}",
                        f"study run allocation --plan {HERE}/a.json --store {HERE}/a.db",
                        f"compress {HERE}/none --plan {HERE}/a.json",
                        f"probe {HERE}/a.npz {PROBE} --state {HERE}/a.json",
                    ]
                ),
            ),
            unusable=True,
        ),
        InputClass(
            "hostile: evidence",
            st.builds(
                lambda content, name, command: Case(command.split(), {f"e/{name}": content}),
                st.sampled_from(
                    [b"", b"PAR1", b"PAR1" + bytes(40) + b"PAR1", b"text", *_foreign_tables()]
                ),
                st.sampled_from(["head-count.parquet", "no-such.parquet", "a:b.parquet"]),
                st.sampled_from(
                    [
                        f"evidence page --folder {HERE}/e --docs {HERE}/e.md",
                        f"evidence check --folder {HERE}/e --docs {HERE}/e.md",
                        f"evidence page --folder {HERE}/none --docs {HERE}/e.md",
                        f"evidence add {HERE}/e/head-count.parquet --folder {HERE}/e",
                        f"report {HERE}/e --all {OUT}",
                    ]
                ),
            ),
            unusable=True,
        ),
        InputClass(
            "hostile: own data",
            st.builds(
                lambda content, name, study: Case(
                    f"study run {study} --data {HERE}/{name} --store {HERE}/a.db --jobs 0".split(),
                    {"a.parquet": content, "a.jsonl": content, "d/a.png": content},
                ),
                st.sampled_from([*LINES, b"", *_pictures()]),
                st.sampled_from(["a.parquet", "a.jsonl", "d", "none", "pipe", "around", "."]),
                st.sampled_from(["text-ranking", "images"]),
            ),
            unusable=True,
        ),
    ]


def _foreign_tables() -> list[bytes]:
    """Sound tables of something else, and of nothing."""

    def parquet(metadata: dict[str, bytes], **columns: Any) -> bytes:
        buffer = io.BytesIO()
        pq.write_table(pa.table(columns).replace_schema_metadata(metadata), buffer)
        return buffer.getvalue()

    return [
        parquet({}, a=[1.0]),
        parquet({}, key=["k"], specification=["{}"], seed=[0], status=["done"], result=["{}"]),
        parquet({"headwise": b"{"}, key=["k"]),
        parquet({"headwise": b'{"study": "head-count", "tier": ["x"]}'}, key=["k"]),
        parquet({"headwise": b"\xff"}, key=[None]),
        parquet({}, key=pa.array([], pa.string())),
    ]


def _pictures() -> list[bytes]:
    """Pictures that are none, and one that says it is large."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    start, side = b"\x89PNG\r\n\x1a\n", 200_000
    huge = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    small = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(bytes(1 << 20)))
    return [
        start + bytes(50),
        start + chunk(b"IHDR", huge) + pixels + chunk(b"IEND", b""),
        start + chunk(b"IHDR", small) + chunk(b"IEND", b""),
        start + chunk(b"IHDR", small) + chunk(b"IDAT", b"x") + chunk(b"IEND", b""),
        start + chunk(b"IHDR", bytes(13)) + pixels,
        b"\xff\xd8\xff\xe0" + bytes(40),
        b"GIF89a" + b"\xff" * 40,
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>",
        b"II*\0" + b"\xff" * 40,
    ]


def _documents() -> list[bytes]:
    def later(data: dict[str, Any], **entries: Any) -> bytes:
        return json.dumps({**data, **entries}).encode()

    task, plan = TASK, PLAN_FILE
    return [
        later(task, version=99),
        later(task, length=10**18),
        later(task, length=0),
        later(task, length=True),
        later(task, type="AllocationPlan"),
        later(plan, type="Retrieval"),
        later(plan, version=99),
        later(plan, width=10**18),
        later(plan, budget=-1),
        later(plan, layers=plan["layers"] * 50_000),
        later(plan, layers=[]),
        later(plan, layers=[*plan["layers"][:1], {}]),
        later(plan, layers=[{**plan["layers"][0], "heads": -2}]),
        later(plan, against_uniform={"type": "Comparison", "low": float("nan")}),
        later(plan, reasons=[[]]),
        json.dumps(plan).replace("16", "NaN").encode(),
        json.dumps(plan).replace("16", "Infinity").encode(),
        json.dumps(plan).replace("16", "1e5").encode(),
        json.dumps(plan).replace('"width"', '"length"').encode(),
        json.dumps(plan).encode("utf-16"),
        json.dumps(plan).encode() + b"\0",
        json.dumps(plan).encode() * 2,
        json.dumps(plan).replace(":", "=").encode(),
        b'{"kind": "headwise probe, version 1", "probes": {}}',
        b'{"kind": "headwise probe, version 3", "probes": {}}',
        b'{"kind": "headwise probe, version 2", "probes": []}',
        b'{"kind": "\\ud800"}',
        b'{"a":' * 300 + b"1" + b"}" * 300,
        b"-" * 1000,
        b"\xef\xbb\xbf",
        b"// comment\n{}",
    ]
