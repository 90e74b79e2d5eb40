"""`headwise build` and the phase map: files that can be used again, and sentences for mistakes."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import torch

from headwise import build
from headwise.core.spec import from_data
from headwise.nets import AttentionNet, ClassTokenNet
from headwise.theory.head_count import phase_map

Run = Callable[[str], tuple[int, str, str]]


def test_a_built_network_can_be_used_from_its_folder_alone(tmp_path: Path, run: Run) -> None:
    command = (
        f"build retrieval --preset paper --length 12 --error 1e-2 --seconds 0.1 --out {tmp_path}"
    )
    code, out, _ = run(f"{command} --json")
    answer = json.loads(out)
    assert code == 0
    assert answer["worst_found"] <= answer["certified_error"] <= 1e-2
    certificate = json.loads((tmp_path / "certificate.json").read_text())
    assert sum(term["value"] for term in certificate["terms"]) == pytest.approx(
        answer["certified_error"]
    )
    task = from_data(json.loads((tmp_path / "specification.json").read_text())["task"])
    net = ClassTokenNet.from_pretrained(tmp_path)
    inputs = task.sample(50, seed=0)[0].double()
    error = (net(inputs).squeeze(1) - task.oracle(inputs)).abs().max()
    assert float(error.detach()) <= answer["certified_error"]
    picked = pd.read_csv(tmp_path / "attention.csv")
    winners = picked.loc[picked.groupby(["sequence", "head"])["weight"].idxmax(), "wanted"]
    assert winners.all()
    assert (tmp_path / "attention.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (tmp_path / "attention.svg").read_text()[:200]

    code, out, _ = run(
        f"build retrieval --task {tmp_path}/specification.json --error 0.1 --seconds 0.1 "
        f"--out {tmp_path}/again",
    )
    assert code == 0
    assert "certified sup-norm error: 0.09951 (asked: 0.1)" in out


def test_a_memorising_network_is_written(tmp_path: Path, run: Run) -> None:
    code, out, _ = run(
        f"build memorise --length 4 --error 0.2 --seconds 0.1 --out {tmp_path} --json"
    )
    answer = json.loads(out)
    assert (code, answer["params"]["total"]) == (
        0,
        sum(p.numel() for p in ClassTokenNet.from_pretrained(tmp_path).parameters()),
    )


def test_the_frontier_has_two_curves_a_panel_and_no_invented_sizes(
    tmp_path: Path, run: Run
) -> None:
    code, out, _ = run(f"build frontier --lengths 16,32,64 --out {tmp_path} --json")
    rows = pd.DataFrame(json.loads(out))
    assert code == 0
    assert rows.groupby(["task", "length"])["curve"].nunique().tolist() == [2] * 6
    assert {file.name for file in tmp_path.iterdir()} == {
        "frontier.csv",
        "frontier.png",
        "frontier.svg",
        "frontier.pdf",
        "report.html",
    }
    built = rows.dropna(subset=["certified_error"])
    assert set(built["network"]) == {"built"}
    assert set(rows.loc[rows["certified_error"].isna(), "network"]) == {"counted"}
    assert rows.loc[~rows["assumptions_met"], "exponent"].isna().all()
    assert rows.loc[rows["assumptions_met"], "exponent"].notna().any()
    assert len(built) > 60
    assert (built["certified_error"] <= built["error"]).all()
    wide = rows.pivot_table(index=["task", "length", "error"], columns="curve", values="params")
    assert (wide["h = D"] < wide["one wide head"]).all()


def test_a_saved_network_is_witnessed_against(tmp_path: Path, run: Run) -> None:
    from headwise.nets import ClassTokenShape

    torch.manual_seed(0)
    ClassTokenNet(ClassTokenShape.standard(token_dim=4, heads=1)).save_pretrained(tmp_path)
    code, out, _ = run(
        f"build witness --net {tmp_path} --length 5 --search-steps 30 --out {tmp_path} --json"
    )
    answer = json.loads(out)
    assert code == 0
    assert answer["network_error"] >= answer["forced_error"] > 0


def test_the_witness_figure_has_trained_and_built_networks(tmp_path: Path, run: Run) -> None:
    code, out, _ = run(
        f"build witness --length 4 --heads 1,4 --steps 20 --seeds 1 --search-steps 8 "
        f"--out {tmp_path} --json",
    )
    rows = pd.DataFrame(json.loads(out))
    assert code == 0
    assert set(zip(rows["group"], rows["heads"], strict=True)) == {
        ("trained", 1),
        ("trained", 4),
        ("built", 4),
    }
    assert (tmp_path / "witness.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("draw", ["aligned", "published"])
def test_random_features_are_those_of_the_library(tmp_path: Path, run: Run, draw: str) -> None:
    layer = build.random_features_layer(8, 64, seed=2, draw=draw)  # type: ignore[arg-type]
    command = f"build random-features --dim 8 --heads 64 --seed 2 --draw {draw}"
    code, out, _ = run(command)
    assert (code, " ".join(out.split())) == (0, " ".join(str(layer).split()))
    code, out, _ = run(f"{command} --out {tmp_path} --json")
    assert (code, json.loads(out)) == (0, layer.to_data())
    tokens = torch.randn(5, 3, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(AttentionNet.from_pretrained(tmp_path)(tokens), layer.net(tokens))


def test_trials_pass(run: Run) -> None:
    code, out, _ = run("build trials --count 4 --seconds 0.1 --seed 5")
    assert code == 0
    assert out.startswith("4 of 4 certificates hold")


def test_the_phase_map_is_drawn_from_the_grid(tmp_path: Path, run: Run) -> None:
    code, out, _ = run(
        f"bound phase-map --intrinsic-dim 4 --head-dim 8 --heads 1,2,4 --lengths 32,128 "
        f"--out {tmp_path} --json",
    )
    found = phase_map([1, 2, 4], [32, 128], intrinsic_dim=4, head_dim=8)
    assert (code, json.loads(out)) == (0, found.records())
    assert (tmp_path / "phase-map.png").read_bytes()[:4] == b"\x89PNG"
    assert pd.read_csv(tmp_path / "phase-map.csv").shape == (6, 4)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("build retrieval --preset nothing --length 8 --error 0.1", "no preset 'nothing'"),
        ("build retrieval --error 0.1", "give the --length"),
        ("build retrieval --length 8 --error -1", "error must be a number above 0"),
        ("build retrieval --length 0 --error 0.1", "length"),
        ("build retrieval --length 8 --error 0.1 --heads 0", "heads must be a whole number"),
        ("build retrieval --length 8 --error 0.1 --low 1", "give --low and --high together"),
        ("build witness --steps 1000000000 --reach nan", "reach must be a number above 0"),
        ("build witness --steps 1000000000 --search-steps 1", "search_steps must be a whole"),
        ("build witness --steps 1000000000 --seed -1", "seed must be a whole number"),
        ("build retrieval --task nowhere.json --error 0.1", "cannot read nowhere.json"),
        ("build retrieval --length 8 --error 0.1 --seconds 0", "seconds must be a number above 0"),
        ("build memorise --preset paper --length 8 --error 0.1", "give a box"),
        ("build frontier --lengths 16,x", "is not a list of whole numbers"),
        ("build witness --heads 0 --steps 5", "heads is 0"),
        ("bound phase-map --intrinsic-dim 4 --head-dim 8 --heads a", "is not a list"),
    ],
)
def test_bad_input_gets_a_sentence_and_exit_code_2(
    command: str, sentence: str, tmp_path: Path, run: Run
) -> None:
    code, out, err = run(f"{command} --out {tmp_path}")
    assert (code, out) == (2, "")
    assert sentence in " ".join(err.split())
    assert "Traceback" not in err
