"""Malformed input: what `fuzz.py` draws from, and what running it comes to."""

import contextlib
import io
import json
import os
import signal
import sqlite3
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from safetensors.numpy import save

from headwise.allocation import AllocationPlan
from headwise.cli import main as headwise
from headwise.core.spec import to_data
from headwise.lab.store import Store
from headwise.nets import AttentionShape
from headwise.tasks.retrieval import sum_of_maxima

LONGEST = 60  # seconds of the processor that any answer may take
LONGEST_WAIT = 600  # seconds by the clock: for what waits, and on a busy machine
CODES = {0: "answer", 1: "no", 2: "sentence", 3: "refused", 4: "out of time"}
OUTCOMES = (*CODES.values(), "traceback", "too slow", "other code")
DEFECTS = OUTCOMES[5:]
HERE = "{folder}"


@dataclass(frozen=True)
class Case:
    """A command with the files that it names; `{folder}` is where they lie.

    Beside them lie `pipe`, which nobody writes to, and `around`, a link to itself.
    """

    arguments: list[str]
    files: dict[str, bytes] = field(default_factory=dict)

    def run(self) -> tuple[str, str]:
        """The outcome, and what was printed."""
        with tempfile.TemporaryDirectory() as folder, _inside(folder), _limited():
            for name, content in self.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            pipe = Path(folder, "pipe")
            os.mkfifo(pipe)
            Path(folder, "around").symlink_to("around")
            arguments = [argument.replace(HERE, folder) for argument in self.arguments]
            output = io.StringIO()
            try:
                with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                    headwise(arguments)
                code: Any = 0
            except SystemExit as end:
                code = end.code or 0
            except TimeoutError:
                return "too slow", traceback.format_exc()
            except BaseException:
                return "traceback", traceback.format_exc()
            if not pipe.is_fifo():
                return "other code", "a file took the place of a pipe"
        said = output.getvalue()
        if "Traceback" in said:
            return "traceback", said
        return CODES.get(code, "other code"), said


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def late(number: int, frame: Any) -> None:
        raise TimeoutError(f"more than {LONGEST} seconds of work, or {LONGEST_WAIT} of waiting")

    limits = {
        signal.ITIMER_PROF: (signal.SIGPROF, LONGEST),
        signal.ITIMER_REAL: (signal.SIGALRM, LONGEST_WAIT),
    }
    before = {number: signal.signal(number, late) for number, _ in limits.values()}
    for timer, (_, seconds) in limits.items():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer in limits:
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


# What options and JSON values can be made of, beside what they should be.

WORDS = st.sampled_from(
    [
        "",
        "0",
        "-1",
        "1",
        "2.5",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "9" * 400,
        "abc",
        "[x]",
        "é",
        " ",
        ",",
        "1,2,x",
        "no/such",
        "/proc/no",
        HERE,
        "<script>",
        "%s%n",
        "os:system",
        "true",
        "1e-320",
    ]
) | st.text(max_size=8).filter(lambda text: "\0" not in text and not text.startswith("-"))
JSON_VALUES = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        2.5,
        1e308,
        "",
        "x",
        [],
        ["x"],
        {},
        {"type": ["x"]},
        {"type": "Run"},
        [[[]]],
        {"type": "Function", "function": "os:system", "count": 1},
        10**30,
        "é" * 200,
    ]
)
HOSTILE_JSON = st.sampled_from(
    [
        b"[" * 50000,
        b'{"a":' * 50000,
        b"1" * 100000,
        b"NaN",
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b"[]",
        b'{"type": ["x"]}',
        b'{"type": {}}',
        b'"text"',
        b'{"type": "AllocationPlan"}',
        b'{"type": "Run", "type": "AllocationPlan"}',
        b"1e999",
    ]
)


def changed_json(value: Any) -> SearchStrategy[bytes]:
    """The JSON with one value somewhere replaced, removed or nested."""
    places = list(_places(value))

    def change(place: tuple[Any, ...], new: Any, remove: bool) -> bytes:
        copy = json.loads(json.dumps(value))
        if not place:
            return json.dumps(new).encode()
        parent = copy
        for step in place[:-1]:
            parent = parent[step]
        if remove and isinstance(parent, dict):
            del parent[place[-1]]
        else:
            parent[place[-1]] = new
        return json.dumps(copy).encode()

    return st.builds(change, st.sampled_from(places), JSON_VALUES, st.booleans()) | HOSTILE_JSON


def _places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield here
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield from _places(item, (*here, key))


def damaged(content: bytes) -> SearchStrategy[bytes]:
    """The file cut short, with bytes changed, doubled, or something else altogether."""
    size = len(content)

    def flip(places: list[int], values: bytes) -> bytes:
        copy = bytearray(content)
        for place, new in zip(places, values * len(places), strict=False):
            copy[place] = new
        return bytes(copy)

    return st.one_of(
        st.integers(0, size - 1).map(lambda cut: content[:cut]),
        st.builds(
            flip,
            st.lists(st.integers(0, size - 1), min_size=1, max_size=30),
            st.binary(min_size=1, max_size=9),
        ),
        st.builds(
            flip,
            st.lists(st.integers(0, min(99, size - 1)), min_size=1, max_size=4),
            st.binary(min_size=1, max_size=4),
        ),
        st.binary(max_size=60),
        st.just(content * 2),
        st.just(b""),
    )


# Whole files to begin with.


def _data(shape: tuple[int, ...] = (520, 4, 2)) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal(shape).astype(np.float32)
    return inputs, inputs.max(1).sum(1) if len(shape) == 3 else inputs.sum(1)


def _npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _frame() -> pd.DataFrame:
    inputs, targets = _data((60, 3, 2))
    rows = [(s, *token, targets[s]) for s in range(len(inputs)) for token in inputs[s]]
    return pd.DataFrame(rows, columns=["sequence", "a", "b", "target"])


def _parquet() -> bytes:
    buffer = io.BytesIO()
    _frame().to_parquet(buffer)
    return buffer.getvalue()


STRANGE_ARRAYS = st.sampled_from(
    [
        np.zeros((0, 4, 2)),
        np.zeros((600, 0, 2)),
        np.zeros(600),
        np.zeros((600, 4, 2, 2)),
        np.float64(1),
        np.full((600, 4, 2), np.nan),
        np.full((600, 4, 2), 1e300),
        np.zeros((600, 4, 2), complex),
        np.full((600, 4, 2), "x"),
        np.ones((600, 4, 2), bool),
        np.zeros((600, 4), "datetime64[s]"),
        np.zeros((600, 4, 2), [("a", "f4")]),
        np.ones((600, 1, 1)),
        np.zeros((3, 4, 2)),
        np.full(600, np.inf),
        np.array(["a"] * 600),
        np.arange(600),
        np.zeros((600, 200)),
        np.full((600, 4, 2), 2**62),
    ]
)


def _store(folder: Path) -> bytes:
    path = folder / "a.db"
    with Store(path, write=True) as store:
        store.plan("study/head-count", "quick", {"a": ["k"]})
    with sqlite3.connect(path) as database:
        row = ("k", "{}", 0, "done", "{}", "{}", 1.0, 1.0, "cpu", "now")
        database.execute(f"INSERT INTO runs VALUES ({', '.join('?' * 10)})", row)
        database.execute("PRAGMA journal_mode = DELETE")
    database.close()
    return path.read_bytes()


def tampered_store(whole: bytes) -> SearchStrategy[bytes]:
    """A store whose rows, owners or schema were changed with SQL."""
    texts = st.sampled_from(
        [
            "",
            "{",
            "[]",
            "{}",
            "null",
            "x",
            "[" * 50000,
            '{"error": "x"}',
            "1" * 5000,
            "\ud7ff",
            "os:system",
            '{"kind": "class-token", "type": "Run"}',
            '{"kind": ["x"]}',
            '{"kind": "my-own"}',
            "study/[red]x",
        ]
    )
    statements = st.sampled_from(
        [
            "UPDATE runs SET specification = ?",
            "UPDATE runs SET result = ?",
            "UPDATE runs SET versions = ?",
            "UPDATE planned SET owner = 'study/' || ?",
            "UPDATE planned SET tier = ?",
            "UPDATE runs SET key = ?",
            "DELETE FROM runs WHERE ? IS NOT NULL",
            "UPDATE planned SET part = ?",
            "UPDATE runs SET status = ?",
        ]
    )
    schemas = st.sampled_from(
        [
            "DROP TABLE runs",
            "DROP TABLE planned",
            "PRAGMA user_version = 99",
            "PRAGMA application_id = 7",
            "ALTER TABLE runs DROP COLUMN cpu",
            "CREATE VIEW v AS SELECT 1",
            "ALTER TABLE runs RENAME TO r",
        ]
    )

    def edit(changes: list[tuple[str, str]], schema: str | None) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.db")
            path.write_bytes(whole)
            database = sqlite3.connect(path)
            for statement, value in changes:
                database.execute(statement, (value,))
            if schema:
                database.execute(schema)
            database.commit()
            database.close()
            return path.read_bytes()

    pairs = st.lists(st.tuples(statements, texts), max_size=3)
    return st.builds(edit, pairs, st.none() | schemas)


@dataclass(frozen=True)
class InputClass:
    """A kind of input, and how to draw one."""

    name: str
    cases: SearchStrategy[Case]


def _options(command: str, names: list[str], fixed: str = "") -> SearchStrategy[Case]:
    """The command with some of its options, at least one of which is drawn."""
    chosen = st.lists(st.tuples(st.sampled_from(names), WORDS), min_size=1, max_size=3)
    return chosen.map(
        lambda pairs: Case(
            [*command.split(), *fixed.split(), *(word for pair in pairs for word in pair)]
        )
    )


def _file(name: str, content: SearchStrategy[bytes], *commands: str) -> SearchStrategy[Case]:
    """One of the commands on the file."""
    return st.builds(
        lambda command, bytes_: Case(command.split(), {name: bytes_}),
        st.sampled_from(commands),
        content,
    )


PLAN = "plan --layers 1 --width 8 --length 4 --budget 999 --seconds 0.01"
PROBE = "--seconds 0.5 --jobs 1"
OUT = f"--out {HERE}/out"


def classes(folder: Path) -> list[InputClass]:
    """All of them; `folder` is for files to begin with."""
    inputs, targets = _data()
    task = to_data(sum_of_maxima(6, intrinsic_dim=2))
    layers = (AttentionShape(heads=2, qk_dim=8, v_dim=8),) * 2
    plan = AllocationPlan(
        width=16, length=8, layers=layers, budget=10_000, schedule="x", reasons=()
    )
    store, model = _store(folder), _model(folder)
    tensors = save({"inputs": inputs, "targets": targets})
    probe_file = f"probe {HERE}/a"
    tables = ("errors", "train_errors", "removal_costs", "token_counts")
    descent = {name: {"1": 0.5} for name in tables}
    state = {
        "kind": "headwise probe, version 2",
        "probes": {"f": {"p": descent, "without attention, seed 0": 0.5}},
    }
    reading = (
        f"study status --store {HERE}/a.db",
        f"report {HERE}/a.db {OUT}",
        f"study export head-count --store {HERE}/a.db",
    )
    writing = f"study run head-count --store {HERE}/a.db --jobs 0"
    build = f"build retrieval --task {HERE}/a.json --error 0.5 --seconds 0.05 {OUT}"
    memorise = f"build memorise --task {HERE}/a.json --error 0.5 --seconds 0.05 {OUT}"
    compress = f"compress {HERE}/model --keep 0.5 --tokens 200"
    text = st.binary(max_size=400) | st.just(b"") | st.just(b"a" * 50)
    with_model = {f"model/{name}": content for name, content in model.items()}
    return [
        InputClass(
            "options: bound",
            st.one_of(
                _options(
                    "bound head-count",
                    ["--heads", "--intrinsic-dim", "--length", "--head-dim", "--set-fraction"],
                    "--heads 1 --intrinsic-dim 2 --length 8 --head-dim 2",
                ),
                _options(
                    "bound rank",
                    ["--dim", "--rank", "--heads", "--error", "--values", "--highest-degree"],
                    "--dim 8 --rank 2",
                ),
                _options(
                    "bound saturation",
                    ["--epsilon", "--value-diameter", "--score-bound", "--length"],
                    "--epsilon 0.1",
                ),
                _options(
                    "bound phase-map",
                    ["--heads", "--lengths", "--set-fraction", "--out"],
                    f"--intrinsic-dim 2 --head-dim 2 --lengths x {OUT}",
                ),
            ),
        ),
        InputClass(
            "options: build",
            st.one_of(
                _options(
                    "build retrieval",
                    [
                        "--length",
                        "--preset",
                        "--error",
                        "--temperature",
                        "--heads",
                        "--low",
                        "--high",
                        "--out",
                    ],
                    f"--length 4 --error 0.5 --seconds 0.05 {OUT}",
                ),
                _options(
                    "build memorise",
                    ["--length", "--preset", "--error", "--low", "--high", "--out"],
                    f"--length 4 --error -1 --seconds 0.05 {OUT}",
                ),
                _options("build frontier", ["--lengths", "--out"], f"--lengths x {OUT}"),
                _options(
                    "build witness",
                    ["--preset", "--length", "--net", "--heads", "--steps", "--seeds", "--reach"],
                    f"--heads x {OUT}",
                ),
                _options(
                    "build trials", ["--count", "--seconds", "--seed"], "--count 1 --seconds 0.01"
                ),
            ),
        ),
        InputClass(
            "options: study, report",
            st.one_of(
                _options(
                    "study run head-count",
                    ["--tier", "--jobs", "--text", "--plan", "--report"],
                    f"--store {HERE}",
                ),
                _options("study export head-count", ["--format", "--tier", "--store", "--out"]),
                _options("study status", ["--store"]),
                _options("report no.db", ["--study", "--tier", "--out", "--trust"]),
                WORDS.map(lambda name: Case(["study", "show", name])),
                WORDS.map(lambda name: Case(["study", "run", name, "--store", HERE])),
            ),
        ),
        InputClass(
            "options: plan",
            _options(
                "plan",
                [
                    "--layers",
                    "--width",
                    "--length",
                    "--budget",
                    "--multiple",
                    "--intrinsic-dim",
                    "--seconds",
                    "--seed",
                    "--jobs",
                    "--text",
                    "--data",
                    "--out",
                ],
                "--layers 2 --width 16 --length 8 --budget 4096",
            ),
        ),
        InputClass(
            "options: probe",
            st.builds(
                lambda case: Case(case.arguments, {"a.npz": _npz(inputs=inputs, targets=targets)}),
                _options(
                    f"{probe_file}.npz {PROBE}",
                    [
                        "--inputs",
                        "--targets",
                        "--mask",
                        "--sequence",
                        "--kind",
                        "--max-heads",
                        "--seed",
                        "--state",
                        "--figure",
                        "--jobs",
                    ],
                ),
            ),
        ),
        InputClass(
            "options: compress, inspect",
            st.one_of(
                _options(
                    f"compress {HERE}/none",
                    [
                        "--out",
                        "--keep",
                        "--kv-bytes",
                        "--max-loss",
                        "--plan",
                        "--method",
                        "--finetune",
                        "--text",
                        "--eval-text",
                        "--tokens",
                        "--seed",
                    ],
                ),
                _options(f"inspect {HERE}/none", ["--text", "--tokens", "--report", "--seed"]),
            ),
        ),
        InputClass(
            "file: npz",
            _file(
                "a.npz",
                damaged(_npz(inputs=inputs, targets=targets))
                | st.builds(lambda x, y: _npz(inputs=x, targets=y), STRANGE_ARRAYS, STRANGE_ARRAYS),
                f"{probe_file}.npz {PROBE}",
                f"{PLAN} --data {HERE}/a.npz",
            ),
        ),
        InputClass(
            "file: npy",
            st.builds(
                lambda x, y: Case(
                    f"probe {HERE}/x.npy {HERE}/y.npy {PROBE}".split(), {"x.npy": x, "y.npy": y}
                ),
                damaged(_npy(inputs)) | STRANGE_ARRAYS.map(_npy),
                damaged(_npy(targets)) | STRANGE_ARRAYS.map(_npy),
            ),
        ),
        InputClass(
            "file: csv",
            _file(
                "a.csv",
                damaged(_frame().to_csv(index=False).encode()) | text | _odd_tables(),
                f"{probe_file}.csv {PROBE}",
            ),
        ),
        InputClass(
            "file: parquet",
            _file("a.parquet", damaged(_parquet()), f"{probe_file}.parquet {PROBE}"),
        ),
        InputClass(
            "file: safetensors",
            _file(
                "a.safetensors",
                damaged(tensors) | st.sampled_from(_typed(tensors)),
                f"{probe_file}.safetensors {PROBE}",
            ),
        ),
        InputClass(
            "file: probe state",
            st.builds(
                lambda content: Case(
                    f"{probe_file}.npz {PROBE} --state {HERE}/s".split(),
                    {"a.npz": _npz(inputs=inputs, targets=targets), "s": content},
                ),
                changed_json(state),
            ),
        ),
        InputClass("place: no file", _no_files(inputs, targets)),
        InputClass("file: task (json)", _file("a.json", changed_json(task), build, memorise)),
        InputClass(
            "file: plan (json)",
            st.builds(
                lambda content, command: Case(command.split(), {"a.json": content, **with_model}),
                changed_json(json.loads(plan.to_json())),
                st.sampled_from(
                    [
                        f"compress {HERE}/model --plan {HERE}/a.json --tokens 200",
                        f"study run allocation --plan {HERE}/a.json --store {HERE}",
                    ]
                ),
            ),
        ),
        InputClass(
            "file: text",
            _file(
                "a.txt",
                text,
                f"{PLAN} --text {HERE}/a.txt",
                f"study run allocation --text {HERE}/a.txt --store {HERE}",
                f"compress {HERE}/no --keep 0.5 --text {HERE}/a.txt",
            ),
        ),
        InputClass("file: store, damaged", _file("a.db", damaged(store), *reading, writing)),
        InputClass("file: store, tampered", _file("a.db", tampered_store(store), *reading)),
        InputClass(
            "file: checkpoint folder",
            st.builds(
                lambda name, content, command: Case(
                    command.split(), {**with_model, f"model/{name}": content}
                ),
                st.just("config.json"),
                changed_json(json.loads(model["config.json"])),
                st.just(compress),
            )
            | st.builds(
                lambda name, content: Case(
                    compress.split(), {**with_model, f"model/{name}": content}
                ),
                st.sampled_from(["model.safetensors", "tokenizer.json", "config.json"]),
                damaged(model["model.safetensors"]),
            ),
        ),
        InputClass(
            "file: llama2.c",
            _file(
                "a.bin",
                damaged(np.array([8, 8, 1, 2, 2, 9, 8], np.int32).tobytes() + bytes(4000)),
                f"convert llama2c {HERE}/a.bin {HERE}/new",
            ),
        ),
        InputClass(
            "file: network folder",
            st.builds(
                lambda config, weights: Case(
                    f"build witness --net {HERE}/n {OUT}".split(),
                    {"n/config.json": config, "n/model.safetensors": weights},
                ),
                changed_json(task),
                damaged(tensors),
            ),
        ),
    ]


def _odd_tables() -> SearchStrategy[bytes]:
    """Tables that could be read in two ways, or of which a part would be left out."""
    frame = _frame()
    twice = frame.to_csv(index=False).replace("a,b", "a,a", 1)
    return st.sampled_from(
        [
            frame.to_csv().encode(),  # row numbers, a column without a name
            twice.encode(),
            frame.assign(sequence=np.nan).to_csv(index=False).encode(),
            frame.assign(sequence=frame.sequence.where(frame.sequence > 3)).to_csv().encode(),
            frame[:0].to_csv(index=False).encode(),
            frame.to_csv(index=False, sep=";", decimal=",").encode(),
            frame.to_csv(index=False).encode("utf-16"),
            frame.to_csv(index=False).encode("utf-8-sig"),
        ]
    )


def _no_files(inputs: np.ndarray, targets: np.ndarray) -> SearchStrategy[Case]:
    """Wherever a file is named: a pipe, a folder, a link to itself, a name that is too long."""
    commands = [
        "probe PLACE",
        f"probe {HERE}/a.npz {PROBE} --state PLACE",
        "build retrieval --error 0.5 --task PLACE",
        "bound extraction --heads 1 --head-dim 1 --kernel PLACE",
        "bound calculator --out PLACE",
        "bound phase-map --intrinsic-dim 2 --head-dim 2 --lengths 8 --out PLACE",
        f"{PLAN} --text PLACE",
        f"{PLAN} --data PLACE",
        f"{PLAN} --out PLACE",
        "study run head-count --jobs 0 --store PLACE",
        "study status --store PLACE",
        f"report PLACE {OUT}",
        "report PLACE --all",
        "probe-eval --zoo --seed 0 --tasks 1 --seconds nan --out PLACE",
        f"convert llama2c PLACE {HERE}/new",
        "build assumptions --net PLACE",
    ]
    places = [f"{HERE}/pipe", f"{HERE}/around", HERE, f"{HERE}/{'n' * 300}", f"{HERE}/pipe/x"]
    content = {"a.npz": _npz(inputs=inputs, targets=targets)}
    return st.builds(
        lambda command, place: Case(command.replace("PLACE", place).split(), content),
        st.sampled_from(commands),
        st.sampled_from(places),
    )


def _typed(tensors: bytes) -> list[bytes]:
    """The same bytes under types that numpy does not have."""
    return [
        tensors.replace(b'"F32"', name)
        for name in (b'"BF16"', b'"F8_E4M3"', b'"F8_E5M2"', b'"X99"')
    ]


def _model(folder: Path) -> dict[str, bytes]:
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    names = {name: number for number, name in enumerate(pre_tokenizers.ByteLevel.alphabet())}
    core = Tokenizer(models.BPE(vocab=names, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    transformers.PreTrainedTokenizerFast(tokenizer_object=core).save_pretrained(folder / "model")
    config = transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=256, n_positions=32)
    torch.manual_seed(0)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder / "model")
    return {path.name: path.read_bytes() for path in (folder / "model").iterdir()}
