"""`headwise probe` and `headwise probe-eval` as a user meets them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import run
from safetensors.numpy import save_file

import headwise
from headwise.advise.probe import probe_eval, read
from headwise.advise.probe.descent import screening, search
from headwise.core.errors import InputError
from headwise.core.lines import fit
from headwise.tasks import sum_of_maxima


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little training: what is tested here is the way in and out."""
    for name, value in {"WIDE_STEPS": 600, "TUNING_STEPS": 200, "MORE_SEEDS": ()}.items():
        monkeypatch.setattr(search, name, value)
    monkeypatch.setattr(screening, "SCREENING_STEPS", 50)


@pytest.fixture
def arrays() -> tuple[np.ndarray, np.ndarray]:
    inputs, targets = sum_of_maxima(5, 1, token_dim=2).sample(800, seed=3)
    return inputs.numpy(), targets.numpy()


@pytest.fixture
def files(tmp_path: Path, arrays: tuple[np.ndarray, np.ndarray]) -> dict[str, list[Path]]:
    """The same data in every format."""
    inputs, targets = arrays
    names = {name: tmp_path / f"data.{name}" for name in ("npz", "safetensors", "parquet", "csv")}
    pair = [tmp_path / "x.npy", tmp_path / "y.npy"]
    np.savez(names["npz"], X=inputs, y=targets)
    np.save(pair[0], inputs)
    np.save(pair[1], targets)
    save_file({"inputs": inputs, "targets": targets}, names["safetensors"])
    long = pd.DataFrame(inputs.reshape(-1, 2), columns=["a", "b"])
    long.insert(0, "sequence", np.repeat(np.arange(800), 5))
    long.insert(1, "position", np.tile(np.arange(5), 800))
    long["y"] = np.repeat(targets, 5)
    shuffled = long.sample(frac=1, random_state=0)
    shuffled.to_parquet(names["parquet"])
    long.to_csv(names["csv"], index=False)
    return {**{name: [path] for name, path in names.items()}, "npy": pair}


@pytest.mark.parametrize("format", ["npz", "npy", "safetensors", "parquet", "csv"])
def test_every_format_holds_the_same_data(
    format: str, files: dict[str, list[Path]], arrays: tuple[np.ndarray, np.ndarray]
) -> None:
    data = read(files[format])
    inputs, targets = np.array(data.inputs), np.array(data.targets)
    if format == "parquet":  # sequences come in the order of the rows
        order, wanted = np.argsort(targets), np.argsort(arrays[1])
        inputs, targets = inputs[order], targets[order]
        arrays = arrays[0][wanted], arrays[1][wanted]
    np.testing.assert_allclose(inputs, arrays[0], rtol=1e-6)
    np.testing.assert_allclose(targets, arrays[1], rtol=1e-6)


def test_sequences_of_a_table_may_differ_in_length(tmp_path: Path) -> None:
    rows = pd.DataFrame({"id": [0, 0, 1], "x": [1.0, 2.0, 3.0], "label": ["u", "u", "v"]})
    rows.to_csv(tmp_path / "a.csv", index=False)
    data = read([tmp_path / "a.csv"])
    assert [len(sequence) for sequence in data.inputs] == [2, 1]
    assert list(data.targets) == ["u", "v"]


def test_json_and_figure(
    files: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, picture = str(files["npz"][0]), tmp_path / "a.svg"
    options = ["--inputs", "X", "--targets", "y", "--max-heads", "3", "--figure", str(picture)]
    code = run("probe", path, *options, "--state", str(tmp_path / "s.json"), "--json")
    found = json.loads(capsys.readouterr().out)
    assert code == (0 if found["heads"] else 3)
    assert {row["method"] for row in found["evidence"]} >= {"transition", "ablation", "surrogate"}
    assert "<svg" in picture.read_text()[:500]
    run("probe", path, *options, "--state", str(tmp_path / "s.json"))  # from the state
    assert found["sentence"][:20] in capsys.readouterr().out


def test_the_function_reads_files_as_the_command_does(
    files: dict[str, list[Path]],
    arrays: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = {"max_heads": 2, "positions": False, "state": tmp_path / "state.json"}
    found = headwise.probe(*arrays, **options)
    same = headwise.probe(files["npz"][0], inputs="X", targets="y", **options)
    assert str(same) == str(found)
    assert str(headwise.probe(*map(str, files["npy"]), **options)) == str(found)
    state = str(options["state"])
    path = str(files["npz"][0])
    run("probe", path, "--max-heads", "2", "--no-positions", "--state", state)
    assert capsys.readouterr().out == f"{fit(found)}\n"
    with pytest.raises(InputError, match=r"cannot read none\.npz: No such file"):
        headwise.probe("none.npz")
    with pytest.raises(InputError, match="by position or by name, not both"):
        headwise.probe(*arrays, targets=arrays[1])
    with pytest.raises(InputError, match=r"the figure is a .png, .svg, .pdf, .html file"):
        headwise.probe(*arrays, figure="a.txt")


def test_a_refusal_has_an_exit_code_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "a.npz", X=np.random.default_rng(0).random((600, 3, 2)), y=np.ones(600))
    assert run("probe", str(tmp_path / "a.npz")) == 3
    assert "constant" in capsys.readouterr().out


def test_bad_files_get_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    (tmp_path / "bad.safetensors").write_bytes(b"no weights")
    (tmp_path / "bad.parquet").write_bytes(b"no table")
    (tmp_path / "a.txt").write_text("hello")
    np.savez(tmp_path / "names.npz", one=np.ones(3))
    np.savez(tmp_path / "odd.npz", X=np.ones((4, 2, 2)), y=np.ones(3))
    np.savez(tmp_path / "pickle.npz", X=np.array([{}], dtype=object), y=np.ones(1))
    changing = pd.DataFrame({"id": [0, 0], "x": [1.0, 2.0], "y": [0.0, 1.0]})
    changing.to_csv(tmp_path / "changing.csv", index=False)
    words = pd.DataFrame({"id": [0, 1], "x": ["a", "b"], "y": [0.0, 1.0]})
    words.to_csv(tmp_path / "words.csv", index=False)
    table = pd.DataFrame({"id": [0, 0, 1], "x": [1.0, 2.0, 3.0], "y": [0.0, 0.0, 1.0]})
    table.assign(id=[0, 0, None]).to_csv(tmp_path / "nameless.csv", index=False)
    table.to_csv(tmp_path / "numbered.csv")
    table[:0].to_csv(tmp_path / "no-rows.csv", index=False)
    (tmp_path / "twice.csv").write_text("id,x,x,y\n0,1,2,3\n")
    table.assign(id=[[0], [0], [1]]).to_parquet(tmp_path / "lists.parquet")
    for name, sentence in {
        "none.npz": "No such file",
        "bad.npz": "cannot be read",
        "bad.safetensors": "cannot be read",
        "bad.parquet": "cannot be read",
        "a.txt": "is no .npz",
        "names.npz": "name the inputs with --inputs",
        "odd.npz": "4 sequences but targets of shape",
        "pickle.npz": "cannot be read",
        "changing.csv": "changes within a sequence",
        "words.csv": "not numeric",
        "nameless.csv": "1 rows of",
        "numbered.csv": "a column without a name",
        "no-rows.csv": "columns and no rows",
        "twice.csv": "two columns of the name x",
        "lists.parquet": "column 'id'",
    }.items():
        assert run("probe", str(tmp_path / name)) == 2, name
        errors = capsys.readouterr().err
        assert sentence in errors, name
        assert "Traceback" not in errors
    table.to_csv(tmp_path / "table.csv", index=False)
    for options in ("--inputs x,y", "--inputs x,id", "--sequence y"):
        assert run("probe", str(tmp_path / "table.csv"), *options.split()) == 2
        assert "cannot be" in capsys.readouterr().err


def test_the_evaluation_prints_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("probe-eval", "--seed", "5", "--tasks", "2", "--no-data", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["summary"]
    assert (row["given"], row["tasks"], row["exact"]) == ("function", 2, 2)
    assert run("probe-eval", "--seed", "5", "--tasks", "1", "--no-data") == 0
    printed = capsys.readouterr()
    assert "exact" in printed.out
    assert printed.err.startswith("✓ function")
    found = probe_eval(5, 1, data=False)
    assert found.table.loc[0, "exact"] == len(found.rows) == 1
    assert str(found).splitlines()[:4] == printed.out.splitlines()[:4]
