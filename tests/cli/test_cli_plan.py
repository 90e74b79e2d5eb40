"""`headwise plan` without data, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import headwise
from headwise.allocation import read_allocation
from headwise.core.lines import fit

Run = Callable[[str], tuple[int, str, str]]
PLAN = "plan --layers 6 --width 384 --length 256 --budget 3538944"


def test_the_default_speaks_of_the_layers_that_it_has(run: Run) -> None:
    _, one, _ = run("plan --layers 1 --width 64 --length 32 --budget 20000 --intrinsic-dim 8")
    assert "layer is preferred" not in one  # there is no other
    _, more, _ = run("plan --layers 4 --width 64 --length 2 --budget 200000 --intrinsic-dim 3")
    assert "has 6 heads" in more
    assert "needs 3 or more" in " ".join(more.split())


def test_the_default_is_said_to_be_only_theory(tmp_path: Path, run: Run) -> None:
    code, out, _ = run(PLAN)
    assert code == 0
    assert "Only theory: nothing was trained" in out
    assert "checked: not at all" in out
    file = tmp_path / "plan.json"
    code, out, err = run(f"{PLAN} --intrinsic-dim 9 --json --out {file}")
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert data["layers"][0]["heads"] == 9
    assert {layer["heads"] for layer in data["layers"][1:]} == {6}
    assert data["against_uniform"] is None
    plan = read_allocation(file)
    assert plan.layers[0].heads == 9
    assert plan.parameters <= plan.budget == 3538944


def test_the_command_and_its_twin_write_the_same_page(tmp_path: Path, run: Run) -> None:
    ours, theirs = tmp_path / "a.html", tmp_path / "b.html"
    headwise.plan(layers=6, width=384, length=256, budget=3538944, report=ours)
    assert run(f"{PLAN} --report {theirs}")[0] == 0
    assert ours.read_text() == theirs.read_text()
    code, _, err = run(f"{PLAN} --report {tmp_path}/a.txt")
    assert (code, "does not end in .html" in err) == (2, True)


def test_the_command_prints_what_its_twin_returns(tmp_path: Path, run: Run) -> None:
    made = headwise.plan(layers=6, width=384, length=256, budget=3538944, out=tmp_path / "a.json")
    assert run(PLAN) == (0, f"{fit(made)}\n", "")
    assert run(f"{PLAN} --json") == (0, f"{made.to_json()}\n", "")
    assert read_allocation(tmp_path / "a.json") == made
    table = made.table()
    assert table["parameters"].sum() == made.parameters
    assert table["share"].sum() == pytest.approx(1)
    assert "<table" in made._repr_html_()
    made.figure(tmp_path / "a.svg")
    assert "6 × 64" in (tmp_path / "a.svg").read_text()


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (PLAN.replace("3538944", "100"), "smallest possible one, 36,864"),
        (f"{PLAN} --intrinsic-dim 1000", "1000 heads of dimension 4 in the first of 6 layers"),
        (f"{PLAN} --text a --data b", "--text or --data, not both"),
        (f"{PLAN} --text no-such-file", "cannot read the text no-such-file"),
        (f"{PLAN} --data no-such-file.npz", "cannot read no-such-file.npz: No such file"),
        (f"{PLAN} --layers 0", "layers must be"),
        (f"{PLAN} --multiple 1000", "multiple must be"),
        (f"{PLAN} --out no-such-folder/plan.json", "no folder no-such-folder"),
    ],
)
def test_what_cannot_be_gets_a_sentence(command: str, sentence: str, run: Run) -> None:
    code, out, err = run(command)
    assert (code, out) == (2, "")
    assert sentence in " ".join(err.split())
