"""`headwise bound`: words for people, JSON for programs, sentences for mistakes."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headwise.theory.allocation import extraction_splits
from headwise.theory.head_count import lower_bound_exponent
from headwise.theory.rank import (
    banded_error_bound,
    error_lower_bound,
    exact_below_full_rank,
    heads_needed,
)
from headwise.theory.saturation import attention_shift, output_shift, row_distance

Run = Callable[[str], tuple[int, str, str]]

HEAD_COUNT = "bound head-count --heads 2 --intrinsic-dim 4 --length 128 --head-dim 8"


@pytest.mark.parametrize(
    ("command", "bound"),
    [
        (HEAD_COUNT, lower_bound_exponent(2, 4, 128, 8)),
        (f"{HEAD_COUNT} --set-fraction 1", lower_bound_exponent(2, 4, 128, 8, 1)),
        (
            f"{HEAD_COUNT} --readout-layers 5",
            lower_bound_exponent(2, 4, 128, 8, readout_layers=5),
        ),
        ("bound nearly-full-rank --dim 16", exact_below_full_rank(16)),
        ("bound nearly-full-rank --dim 15", exact_below_full_rank(15)),
        ("bound bands --dim 4 --rank 1 --heads 2", banded_error_bound(4, 1, 2)),
        ("bound bands --dim 4 --rank 4 --heads 2", banded_error_bound(4, 4, 2)),
        ("bound rank --dim 64 --rank 8 --heads 8", error_lower_bound(64, 8, 8)),
        ("bound rank --dim 64 --rank 8 --error 0.1", heads_needed(64, 8, 0.1)),
        (
            "bound rank --dim 64 --rank 1 --heads 64 --values scalar --highest-degree 9999",
            error_lower_bound(64, 1, 64, "scalar", highest_degree=9999),
        ),
        ("bound saturation --epsilon 0.2", attention_shift(0.2)),
        ("bound saturation --epsilon 0.2 --value-diameter 3", output_shift(0.2, 3)),
        (
            "bound saturation --epsilon 0.2 --score-bound 1 --length 1024",
            row_distance(0.2, 1, 1024),
        ),
    ],
)
def test_words_and_json_say_what_the_library_says(command: str, bound: object, run: Run) -> None:
    code, out, err = run(command)
    assert (code, out, err) == (0, f"{bound}\n", "")
    code, out, err = run(f"{command} --json")
    assert (code, json.loads(out), err) == (0, bound.to_data(), "")  # type: ignore[attr-defined]


def test_splits_of_a_budget_are_those_of_the_library(tmp_path: Path, run: Run) -> None:
    kernel = np.random.default_rng(0).standard_normal((4, 3, 3))
    np.save(tmp_path / "kernel.npy", kernel)
    found = extraction_splits(kernel, 12)
    command = f"bound extraction-splits --kernel {tmp_path / 'kernel.npy'} --budget 12"
    code, out, err = run(command)
    assert (code, out, err) == (0, f"{found}\n", "")
    code, out, err = run(f"{command} --json")
    assert (code, json.loads(out), err) == (0, found.records(), "")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("bound rank --dim 64 --rank 8", "give either heads or error"),
        ("bound rank --dim 64 --rank 8 --heads 8 --error 0.1", "give either heads or error"),
        ("bound rank --dim 64 --rank 80 --heads 8", "rank must be at most dim = 64"),
        ("bound rank --dim 64 --rank 8 --error -1", "error must be a number above 0"),
        ("bound rank --dim 64 --rank 8 --error nan", "error must be a number above 0"),
        ("bound saturation --epsilon 0", "epsilon must be a number above 0"),
        ("bound saturation --epsilon 1 --length 8", "score_bound and length together"),
        (f"{HEAD_COUNT} --heads 0", "heads must be a whole number"),
        (f"{HEAD_COUNT} --readout-layers 3", "readout_layers must be 2 or 5"),
        ("bound nearly-full-rank --dim 1", "dim must be a whole number"),
        ("bound bands --dim 65 --rank 1 --heads 1", "dim must be a whole number from 2 to 64"),
        (
            "bound extraction --kernel missing.npy --heads 3 --head-dim 8",
            "cannot read missing.npy: No such file",
        ),
        (f"{HEAD_COUNT} --length 0", "length must be a whole number"),
    ],
)
def test_bad_input_gets_a_sentence_and_exit_code_2(command: str, sentence: str, run: Run) -> None:
    code, out, err = run(command)
    assert (code, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err
