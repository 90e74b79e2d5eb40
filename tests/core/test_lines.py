"""Text that fits the terminal: no broken word, no cut header, no lost cell."""

import pandas as pd
import pytest

from headwise.core.lines import fit, fitted, in_columns, listed, wrapped


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_lines_fit_and_hold_everything(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    cells = [[f"{row}-{column}" for column in range(12)] for row in range(3)]
    lines = in_columns(cells)
    assert all(len(line) <= columns for line in lines)
    seen = [word for line in lines for word in line.split()]
    assert {*seen} == {cell for row in cells for cell in row}
    assert seen.count("2-11") == 1
    assert all(line.split()[0] in ("0-0", "1-0", "2-0") for line in lines)
    sentence = "a sentence that is longer than forty columns, of short words"
    assert " ".join(wrapped(sentence)) == sentence
    assert all(len(line) <= columns for line in wrapped(sentence))


@pytest.mark.parametrize("columns", [40, 80])
def test_rows_whose_names_fill_the_terminal_are_paragraphs(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    name = "8,000 steps on 8,000 sequences from a small start, without any residual connection"
    lines = in_columns([["training", "T = 8", "T = 16"], [name, "1.2e-04", "3.4e-05"]])
    assert all(len(line) <= columns for line in lines)
    said = " ".join(line.strip() for line in lines)
    assert said == f"training: {name} T = 8: 1.2e-04; T = 16: 3.4e-05"
    assert in_columns([["", "T = 8"], [name, "1.2e-04"]])[0].startswith("8,000 steps")


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_a_table_of_words_wraps_between_words(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [["rank-random-features", "How good can one layer of rank-1 heads be?", "quick, full"]]
    head = ["study", "question", "tiers"]
    lines = listed(head, rows)
    assert all(len(line) <= columns for line in lines)
    words = {word for line in lines for word in line.split()}
    assert words >= {word for cell in rows[0] for word in cell.split()}
    long = listed(head, [["a-name-that-is-as-wide-as-forty-columns-are", "why", ""]])
    assert any("a-name-that-is-as-wide-as-forty-columns-are" in line for line in long)


def test_every_key_of_a_row_stands_beside_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    table = pd.DataFrame(
        {"layer": [0, 1], "way": ["count", "size"]} | {f"c{k}": k for k in range(12)}
    )
    lines = fitted(table, keys=2).splitlines()
    assert all(len(line) <= 40 for line in lines)
    assert sum(line.split()[:2] == ["1", "size"] for line in lines) > 1
    monkeypatch.setenv("COLUMNS", "200")
    assert len(fitted(table, keys=2).splitlines()) == 3


def test_a_result_fits_the_terminal_and_a_pipe_keeps_its_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "- a reason that is wider than any terminal of forty columns\nshort"
    monkeypatch.setenv("COLUMNS", "40")
    assert fit(text).splitlines() == [
        "- a reason that is wider than any",
        "  terminal of forty columns",
        "short",
    ]
    monkeypatch.delenv("COLUMNS")
    assert fit(text) == text
