"""Text that fits the terminal: no broken word, no cut header, no lost cell."""

import pytest

from headwise.core.lines import in_columns, wrapped


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
