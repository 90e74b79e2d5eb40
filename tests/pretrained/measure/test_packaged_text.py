"""The packaged texts: of other sources than what is calibrated on, each kind of them counting."""

from collections import Counter
from pathlib import Path

import pytest
from small_models import common_words, small_model
from torch import Tensor

import headwise
from headwise.core.errors import InputError
from headwise.pretrained import text_material
from headwise.pretrained.text.calibration import (
    calibration_kinds,
    documents,
    few_tokens,
    packaged_text,
    token_count,
)

KINDS = {"encyclopaedia", "speech", "novel", "poem", "play", "code", "another language"}


def test_packaged_kinds_of_text_count_alike_and_each_has_its_damage() -> None:
    model = small_model("llama")
    material = text_material(model, common_words(), tokens=2000, length=32)
    (judged, other) = material.samples
    rows = [name for names in judged.documents for name in names]
    sizes = Counter(judged.kinds[name] for name in rows)
    assert set(sizes) == {"novel", "report", "encyclopaedia", "dictionary", "dialogue"}
    assert max(sizes.values()) <= 1.1 * min(sizes.values())
    result = headwise.compress(model, text=material, keep=0.5, time_it=False)
    verdict, second = result.evaluation.verdicts
    mean = sum(verdict.kinds[kind] * size for kind, size in sizes.items()) / len(rows)
    assert verdict.damage == pytest.approx(mean, rel=1e-3)
    assert len(set(verdict.kinds.values())) == 5
    assert f"encyclopaedia {verdict.kinds['encyclopaedia']:.4f}" in str(result)
    assert (other.kinds, second.kinds) == ((), {})


def test_no_calibration_text_is_held_out_text() -> None:
    seen = {line for line in packaged_text("calibration").splitlines() if len(line) > 60}
    for name in ("held_out", "other"):
        lines = [line for line in packaged_text(name).splitlines() if len(line) > 60]
        assert lines
        assert not seen & set(lines)


def test_kinds_of_calibration_documents_are_what_they_are_said_to_be() -> None:
    by_kind: dict[str, list[str]] = {}
    for kind, text in zip(
        calibration_kinds(), documents(packaged_text("calibration")), strict=True
    ):
        by_kind.setdefault(kind, []).append(text)
    assert set(by_kind) == KINDS
    assert all(text.startswith("CHAPTER") for text in by_kind["novel"])
    assert all(text.startswith("Book") for text in by_kind["poem"])
    assert all("def " in text or "import " in text for text in by_kind["code"])
    assert all(" the " not in text for text in by_kind["another language"])
    titled = [text.split("\n")[0] for text in by_kind["encyclopaedia"]]
    assert all(len(title) < 50 for title in titled)
    assert all(":\n" in text for text in by_kind["play"])


def test_long_windows_and_tried_ones_are_of_all_kinds_of_text() -> None:
    model = small_model("llama", max_position_embeddings=512)
    for windows in (5, 7, 14):
        material = text_material(model, common_words(), tokens=2 * windows * 512, length=512)
        kinds = [
            kind
            for batch, names in zip(material.calibration, material.calibration_kinds, strict=True)
            for kind in names
            if batch["input_ids"].shape[1] == 512
        ]
        sizes = Counter(kinds)
        assert sum(sizes.values()) == windows
        assert len(sizes) == min(windows, len(KINDS))
        assert max(sizes.values()) == -(-windows // len(KINDS))
    kind_of = {
        tuple(row[:64].tolist()): kind
        for batch, names in zip(material.calibration, material.calibration_kinds, strict=True)
        for row, kind in zip(batch["input_ids"], names, strict=True)
    }
    some = few_tokens(material.calibration, 7 * 64, 64, material.calibration_kinds)
    assert {kind_of[tuple(each["input_ids"][0].tolist())] for each in some} == KINDS
    assert len(some) == len(KINDS)


def test_a_recovery_reads_more_of_the_text_and_nothing_that_is_held_out(tmp_path: Path) -> None:
    documents = [line for line in packaged_text("calibration").splitlines() if len(line) > 400]
    path = tmp_path / "text.txt"
    path.write_text("\n<|endoftext|>\n".join(documents[:60]), "utf-8")
    material = text_material(small_model("llama"), common_words(), path, tokens=400, length=32)

    def inputs(batches: list[dict[str, Tensor]]) -> set[tuple[int, ...]]:
        return {tuple(row) for batch in batches for row in batch["input_ids"].tolist()}

    assert token_count(material.more) > 4 * token_count(material.calibration)
    assert not inputs(material.more) & inputs(material.held_out)


def test_a_text_of_many_short_documents_is_read(tmp_path: Path) -> None:
    """Questions to a search engine have some ten tokens; windows usually have a multiple of 16."""
    path = tmp_path / "text.txt"
    words = ["the", "of", "and", "to", "in", "is", "that", "it", "was", "for", "on"]
    path.write_text(
        "<|endoftext|>".join(" ".join(words[1 + i % 5 :] + words[:5]) for i in range(300))
    )
    material = text_material(small_model("llama"), common_words(), path, tokens=400, length=32)
    assert {batch["input_ids"].shape[1] for batch in material.calibration} == {8}
    assert token_count(material.calibration) >= 390


def test_marks_without_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("<|endoftext|>\n" * 50)
    with pytest.raises(InputError, match="no text between them"):
        text_material(small_model("llama"), common_words(), path)
