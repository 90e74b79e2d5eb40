"""A model is written as passed only where its damage is shown to be within the gate."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from small_models import measured, small_material, small_model
from typer.testing import CliRunner

import headwise
from headwise.cli import app
from headwise.core.errors import InputError
from headwise.pretrained import compress
from headwise.pretrained._evaluate import TextVerdict
from headwise.pretrained.text.calibration import Material
from headwise.pretrained.verdict.gate import answer, gate_sentence


def verdict(damage: float, low: float | None, high: float | None) -> TextVerdict:
    return TextVerdict("some text", damage, low, high, 9, 900, None)


def test_a_damage_that_is_small_is_not_shown_as_none() -> None:
    assert str(verdict(2.34e-5, 0.0, 4e-4)) == "2.3e-05 [0.0000, 0.0004]"
    assert str(verdict(0.0123, 0.0011, 0.5)) == "0.0123 [0.0011, 0.5000]"


@pytest.mark.parametrize(
    ("found", "allowed", "expected"),
    [
        (verdict(0.10, 0.08, 0.13), 0.14, "within"),
        (verdict(0.10, 0.08, 0.13), 0.13, "within"),
        (verdict(0.10, 0.08, 0.13), 0.12, "not told"),
        (verdict(0.10, 0.08, 0.13), 0.09, "not told"),
        (verdict(0.10, 0.08, 0.13), 0.08, "not told"),
        (verdict(0.10, 0.08, 0.13), 0.07, "above"),
        (verdict(0.10, -0.01, 0.30), 0.0, "above"),  # some damage is more than none
        (verdict(0.0, 0.0, 0.0), 0.0, "within"),
        (verdict(0.10, None, None), 9.0, "not told"),  # one document has no interval
    ],
)
def test_the_whole_interval_decides(found: TextVerdict, allowed: float, expected: str) -> None:
    assert answer(found, allowed) == expected
    assert ("nothing is written" in gate_sentence(found, allowed)) == (expected != "within")


def test_what_cannot_be_told_comes_with_what_would_tell() -> None:
    said = gate_sentence(verdict(0.10, 0.08, 0.13), 0.12)
    assert "0.1 [0.08, 0.13]" in said
    assert "within 0.12 CANNOT BE TOLD" in said
    assert "About 3 times as much held-out text" in said  # (0.03 / 0.02)² = 2.25
    assert "About 4 times" in gate_sentence(verdict(0.10, 0.08, 0.13), 0.09)
    assert "too close" in gate_sentence(verdict(0.10, 0.08, 0.13), 0.10)


def test_a_damage_within_the_gate_with_an_interval_across_it_is_not_written(tmp_path: Path) -> None:
    model, material, measurement = measured("llama")
    known: dict[str, Any] = {"text": material, "measurement": measurement, "time_it": False}
    first = compress(model, keep=0.5, **known).evaluation.verdicts[0]
    assert first.high is not None
    between = (first.damage + first.high) / 2
    result = compress(model, keep=0.5, max_loss=between, out=tmp_path / "out", **known)
    assert result.evaluation.damage < between
    assert (result.gate, result.passed) == ("not told", False)
    assert not (tmp_path / "out").exists()
    assert result.to_data()["gate"]["answer"] == "not told"
    assert "not told if within" in result._repr_html_() or "CANNOT BE TOLD" in str(result)
    with pytest.raises(InputError, match="CANNOT BE TOLD"):
        result.save(tmp_path / "out")
    result.max_loss = first.high * 1.01
    assert result.passed
    result.save(tmp_path / "out")
    assert headwise.from_pretrained(tmp_path / "out") is not None


def _ended(checkpoint: Path, text: Path, max_loss: float) -> Result:
    words = ["compress", checkpoint, "--keep", 0.5, "--text", text, "--max-loss", max_loss]
    return CliRunner().invoke(app, [str(word) for word in [*words, "--json"]])


def test_the_exit_code_tells_no_from_not_known(checkpoint: Path, text: Path) -> None:
    found = json.loads(_ended(checkpoint, text, 1e3).stdout)["evaluation"]["verdicts"][0]
    for max_loss, code in ((found["low"] / 2, 1), (found["damage"], 3), (2 * found["high"], 0)):
        assert _ended(checkpoint, text, max_loss).exit_code == code


def test_a_gate_on_one_document_is_refused_before_anything_is_measured() -> None:
    model = small_model("llama")
    material = small_material(model)
    one = [{"input_ids": material.held_out[0]["input_ids"][:1]}]
    alone = Material(material.calibration, one, "random tokens")
    for options in ({"keep": 0.5}, {}):
        with pytest.raises(InputError, match="is one document"):
            compress(model, text=alone, max_loss=9.0, on_progress=_never, **options)
    assert compress(model, text=alone, keep=0.5, time_it=False).gate is None


def _never(share: float, what: str) -> None:
    raise AssertionError(what)
