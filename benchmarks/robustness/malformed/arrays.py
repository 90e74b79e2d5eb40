"""Data to probe and plan for: arrays, tables, and the probe's own state."""

import io
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from safetensors.numpy import save

from malformed.case import HERE, PLAN, PROBE, Case, InputClass, on_file
from malformed.draw import ANY_TEXT, changed_json, damaged

PROBE_FILE = f"probe {HERE}/a"

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


def array_classes() -> list[InputClass]:
    """Files of every format that data can be given in."""
    inputs, targets = sample_arrays()
    tables = ("errors", "train_errors", "removal_costs", "token_counts")
    descent = {name: {"1": 0.5} for name in tables}
    state = {
        "kind": "headwise probe, version 2",
        "probes": {"f": {"p": descent, "without attention, seed 0": 0.5}},
    }
    tensors = saved_tensors()
    return [
        InputClass(
            "file: npz",
            on_file(
                "a.npz",
                damaged(probe_data())
                | st.builds(lambda x, y: _npz(inputs=x, targets=y), STRANGE_ARRAYS, STRANGE_ARRAYS),
                f"{PROBE_FILE}.npz {PROBE}",
                f"{PLAN} --data {HERE}/a.npz",
            ),
        ),
        InputClass(
            "file: npy",
            st.builds(
                lambda x, y: Case(
                    f"probe {HERE}/x.npy {HERE}/y.npy {PROBE}".split(), {"x.npy": x, "y.npy": y}
                ),
                damaged(npy_bytes(inputs)) | STRANGE_ARRAYS.map(npy_bytes),
                damaged(npy_bytes(targets)) | STRANGE_ARRAYS.map(npy_bytes),
            ),
        ),
        InputClass(
            "file: csv",
            on_file(
                "a.csv",
                damaged(_frame().to_csv(index=False).encode()) | ANY_TEXT | _odd_tables(),
                f"{PROBE_FILE}.csv {PROBE}",
            ),
        ),
        InputClass(
            "file: parquet",
            on_file("a.parquet", damaged(_parquet()), f"{PROBE_FILE}.parquet {PROBE}"),
        ),
        InputClass(
            "file: safetensors",
            on_file(
                "a.safetensors",
                damaged(tensors) | st.sampled_from(_typed(tensors)),
                f"{PROBE_FILE}.safetensors {PROBE}",
            ),
        ),
        InputClass(
            "file: probe state",
            st.builds(
                lambda content: Case(
                    f"{PROBE_FILE}.npz {PROBE} --state {HERE}/s".split(),
                    {"a.npz": probe_data(), "s": content},
                ),
                changed_json(state),
            ),
        ),
    ]


def probe_data() -> bytes:
    """Sound data to probe."""
    inputs, targets = sample_arrays()
    return _npz(inputs=inputs, targets=targets)


def saved_tensors() -> bytes:
    """The same as safetensors."""
    inputs, targets = sample_arrays()
    return save({"inputs": inputs, "targets": targets})


def sample_arrays(shape: tuple[int, ...] = (520, 4, 2)) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and targets that follow from them."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal(shape).astype(np.float32)
    return inputs, inputs.max(1).sum(1) if len(shape) == 3 else inputs.sum(1)


def _npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def npy_bytes(array: np.ndarray) -> bytes:
    """An .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _frame() -> pd.DataFrame:
    inputs, targets = sample_arrays((60, 3, 2))
    rows = [(s, *token, targets[s]) for s in range(len(inputs)) for token in inputs[s]]
    return pd.DataFrame(rows, columns=["sequence", "a", "b", "target"])


def _parquet() -> bytes:
    buffer = io.BytesIO()
    _frame().to_parquet(buffer)
    return buffer.getvalue()


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


def _typed(tensors: bytes) -> list[bytes]:
    """The same bytes under types that numpy does not have."""
    return [
        tensors.replace(b'"F32"', name)
        for name in (b'"BF16"', b'"F8_E4M3"', b'"F8_E5M2"', b'"X99"')
    ]
