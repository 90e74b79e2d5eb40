"""JSON, lines of JSON and tables of evidence that headwise did not write, or not like this."""

import json
from typing import Any

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
                st.sampled_from([b"", b"PAR1", b"PAR1" + bytes(40) + b"PAR1", b"text"]),
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
                st.sampled_from([*LINES, b"", b"\x89PNG\r\n\x1a\n" + bytes(50)]),
                st.sampled_from(["a.parquet", "a.jsonl", "d", "none", "pipe", "around", "."]),
                st.sampled_from(["text-ranking", "images"]),
            ),
            unusable=True,
        ),
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
