"""Data for the probe from files: .npz, a pair of .npy, safetensors, Parquet and CSV.

Parquet and CSV are long: one row a token, with a column that names the sequence and, if the order
matters, rows in order. All other numeric columns are the token, save the target's, which is
constant within a sequence.
"""

import csv
from collections import Counter
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from headwise.core.array_files import read_npy, read_npz
from headwise.core.errors import InputError, require
from headwise.core.files import check_is_file

INPUT_NAMES = ("inputs", "X", "x")
TARGET_NAMES = ("targets", "y", "Y", "labels", "target", "label")
MASK_NAMES = ("mask", "attention_mask")
SEQUENCE_NAMES = ("sequence", "sequence_id", "sample", "id")
POSITION_NAMES = ("position", "token", "t")
MOST_COLUMNS = 10_000
_NUMPY_HAS = {
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.float32, torch.float64),
}


class ProbeData(NamedTuple):
    """What `headwise.probe` takes."""

    inputs: Any
    targets: Any
    mask: Any


def read(
    files: Sequence[str | Path],
    inputs: str | None = None,
    targets: str | None = None,
    mask: str | None = None,
    sequence: str | None = None,
) -> ProbeData:
    """Read one file, or a pair of .npy files: inputs, then targets.

    `inputs`, `targets` and `mask` name arrays of an .npz or .safetensors file; of a table they
    name columns (several of a token are joined by commas), and `sequence` the one by which rows
    belong together. Usual names are found without being told.
    """
    paths = [Path(file) for file in files]
    for path in paths:
        check_is_file(path)
    endings = [path.suffix.lower() for path in paths]
    if endings == [".npy", ".npy"]:
        return ProbeData(read_npy(paths[0]), read_npy(paths[1]), None)
    require(
        len(paths) == 1 and endings[0] != ".npy",
        "give one .npz, .safetensors, .parquet or .csv file, or two .npy files: inputs, targets",
    )
    (file,), (ending,) = paths, endings
    if ending in (".npz", ".safetensors"):
        arrays = read_npz(file) if ending == ".npz" else _safetensors(file)
        return ProbeData(
            arrays[_named(arrays, inputs, INPUT_NAMES, file, "inputs")],
            arrays[_named(arrays, targets, TARGET_NAMES, file, "targets")],
            _optional(arrays, mask, file),
        )
    require(
        ending in (".parquet", ".csv"),
        f"{file} is no .npz, .npy, .safetensors, .parquet or .csv file",
    )
    return _long(_frame(file, ending), file, inputs, targets, sequence)


def _safetensors(file: Path) -> dict[str, Any]:
    try:
        with safe_open(file, "pt") as opened:
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        return {name: _as_numpy(tensor) for name, tensor in tensors.items()}
    except (SafetensorError, OSError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error


def _as_numpy(tensor: Tensor) -> np.ndarray:
    """Numbers of a type that numpy does not have, such as bfloat16, become float32."""
    return (tensor if tensor.dtype in _NUMPY_HAS else tensor.to(torch.float32)).numpy()


def _frame(file: Path, ending: str) -> pd.DataFrame:
    try:
        if ending == ".parquet":
            return pd.read_parquet(file)
        with file.open(encoding="utf-8-sig", newline="") as lines:
            names = [name for name in next(filter(None, csv.reader(lines)), []) if name]
        _check_names(file, names)
        frame = pd.read_csv(file)
        _check_cells(file, frame)
        return frame
    except InputError:
        raise
    except Exception as error:  # pandas and pyarrow have many kinds of errors for a bad file
        raise InputError(f"{file} cannot be read: {error}") from error


def _check_names(file: Path, names: Sequence[str]) -> None:
    require(
        len(names) <= MOST_COLUMNS,
        f"{file} has {len(names):,} columns; at most {MOST_COLUMNS:,} are read, a row is a token",
    )
    once = Counter(names)  # pandas would call the second one name.1
    twice = sorted(name for name, count in once.items() if count > 1)
    require(not twice, f"{file} has two columns of the name {', '.join(twice)}; rename one")


def _check_cells(file: Path, frame: pd.DataFrame) -> None:
    """Refuse what pandas would make something of that nobody wrote."""
    with file.open("rb") as whole:
        blocks = iter(lambda: whole.read(1 << 20), b"")
        require(not any(b"\0" in block for block in blocks), f"{file} holds NUL characters")
    require(
        isinstance(frame.index, pd.RangeIndex),  # else the first column became the rows' names
        f"the rows of {file} have more cells than its first line has names",
    )


def _named(have: Any, wanted: str | None, usual: tuple[str, ...], file: Path, what: str) -> str:
    names = [wanted] if wanted else [name for name in usual if name in have]
    require(
        len(names) > 0 and names[0] in have,
        f"{file} has {', '.join(map(str, have)) or 'nothing'}; name the {what} with --{what} "
        f"(in Python {what}=)",
    )
    return names[0]


def _optional(arrays: dict[str, Any], mask: str | None, file: Path) -> Any:
    if mask is not None:
        return arrays[_named(arrays, mask, MASK_NAMES, file, "mask")]
    return next((arrays[name] for name in MASK_NAMES if name in arrays), None)


def _long(
    frame: pd.DataFrame, file: Path, inputs: str | None, targets: str | None, sequence: str | None
) -> ProbeData:
    columns = list(frame.columns)
    key = _named(columns, sequence, SEQUENCE_NAMES, file, "sequence")
    target = _named(columns, targets, TARGET_NAMES, file, "targets")
    order = next((name for name in POSITION_NAMES if name in columns and not inputs), None)
    rest = [name for name in columns if name not in (key, target, order)]
    tokens = inputs.split(",") if inputs else rest
    _check_table(frame, file, key, target, tokens)
    for name in tokens:
        require(
            pd.api.types.is_numeric_dtype(frame[name]),
            f"column {name!r} of {file} is not numeric; choose the token's columns with --inputs "
            "(in Python inputs=)",
        )
    if order is not None:
        _check_order(frame, file, key, order)
        frame = frame.sort_values([key, order], kind="stable")
    groups = frame.groupby(key, sort=False)
    require(
        bool((groups[target].nunique(dropna=False) == 1).all()),
        f"column {target!r} of {file} changes within a sequence",
    )
    sequences = [group.to_numpy(np.float64) for _, group in groups[tokens]]
    return ProbeData(sequences, groups[target].first().to_numpy(), None)


def _check_table(
    frame: pd.DataFrame, file: Path, key: str, target: str, tokens: Sequence[str]
) -> None:
    """Refuse a table that could be read in two ways, or of which a part would be left out."""
    columns = set(frame.columns)
    for name in tokens:
        require(name in columns, f"{file} has no column {name!r}")
    require(len(tokens) > 0, f"{file} has no column left for the tokens")
    require(len(frame) > 0, f"{file} has columns and no rows")
    nameless = [name for name in tokens if str(name).startswith("Unnamed: ")]
    require(
        not nameless,
        f"{file} has a column without a name, perhaps row numbers; choose the token's columns with "
        "--inputs (in Python inputs=)",
    )
    for name in (key, target):
        require(
            name not in tokens,
            f"column {name!r} of {file} cannot be a token's and the "
            + ("sequence's name" if name == key else "target"),
        )
    require(key != target, f"column {key!r} of {file} cannot be the sequence's name and the target")
    missing = int(frame[key].isna().sum())
    require(missing == 0, f"{missing} rows of {file} name no sequence in column {key!r}")
    for name in (key, target):
        _check_one_kind(frame[name], file)
        require(
            all(isinstance(cell, Hashable) for cell in frame[name]),
            f"column {name!r} of {file} holds lists or the like; it may hold numbers or text",
        )


def _check_order(frame: pd.DataFrame, file: Path, key: str, order: str) -> None:
    """Refuse positions that leave open which token comes first."""
    numeric = pd.api.types.is_numeric_dtype(frame[order]) and bool(frame[order].notna().all())
    require(
        numeric and not frame.duplicated([key, order]).any(),
        f"by column {order!r} of {file} tokens are put in order, so it holds numbers, each once in "
        "a sequence; if it is no position, rename it or name the token's columns with --inputs "
        "(in Python inputs=)",
    )


def _check_one_kind(column: pd.Series, file: Path) -> None:
    """Refuse a column of numbers of which some cells are none: with a typing error all are text."""
    texts = pd.Series([cell for cell in column if isinstance(cell, str)], dtype=object)
    no_numbers = texts[pd.to_numeric(texts, errors="coerce").isna()]
    require(
        len(no_numbers) in (0, int(column.notna().sum())),
        f"column {column.name!r} of {file} holds numbers, and text such as "
        f"{str(next(iter(no_numbers), ''))[:40]!r}; it may hold either",
    )
