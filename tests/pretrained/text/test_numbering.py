"""Token numbers are kept on disk, and are no others for that."""

from pathlib import Path
from typing import Any

import pytest
from small_models import common_words, small_model, word_tokenizer

from headwise.pretrained import Material, text_material


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "measurements").glob("*.tokens.safetensors"))


def numbers(material: Material) -> list[Any]:
    samples = [sample.batches for sample in material.samples]
    batches = [*material.calibration, *material.more, *(b for part in samples for b in part)]
    return [batch["input_ids"].tolist() for batch in batches]


@pytest.mark.parametrize("family", ["llama", "bert"])  # one reads windows, the other passages
def test_texts_are_numbered_as_without_a_cache(family: str, text: Path, tmp_path: Path) -> None:
    model = small_model(family)
    options: dict[str, Any] = {"tokens": 400, "length": 32}
    fresh = numbers(text_material(model, common_words(), text, cache=False, **options))
    assert kept(tmp_path) == []
    assert numbers(text_material(model, common_words(), text, **options)) == fresh
    files = {path: path.stat().st_size for path in kept(tmp_path)}
    assert files
    assert numbers(text_material(model, common_words(), text, **options)) == fresh
    assert {path: path.stat().st_size for path in kept(tmp_path)} == files


def test_another_tokenizer_or_text_is_numbered_anew(text: Path) -> None:
    model = small_model("llama")
    options: dict[str, Any] = {"tokens": 400, "length": 32}
    first = numbers(text_material(model, common_words(), text, **options))
    other = numbers(text_material(model, word_tokenizer(), text, **options))
    assert other == numbers(text_material(model, word_tokenizer(), text, cache=False, **options))
    assert other != first
    text.write_text(text.read_text("utf-8")[::-1], "utf-8")
    turned = numbers(text_material(model, common_words(), text, **options))
    assert turned == numbers(text_material(model, common_words(), text, cache=False, **options))
    assert turned != first


class Asked:
    """A tokenizer that counts the texts that it numbers."""

    def __init__(self) -> None:
        self.inner, self.count = common_words(), 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __call__(self, texts: list[str], **options: Any) -> Any:
        self.count += len(texts)
        return self.inner(texts, **options)


def test_the_second_time_one_text_of_each_source_is_numbered(text: Path, tmp_path: Path) -> None:
    model, tokenizer = small_model("bert"), Asked()
    text_material(model, tokenizer, text, tokens=400, length=32)
    first, tokenizer.count = tokenizer.count, 0
    text_material(model, tokenizer, text, tokens=400, length=32)
    assert tokenizer.count == len(kept(tmp_path)) < first


def test_a_damaged_file_is_made_again(text: Path, tmp_path: Path) -> None:
    model = small_model("llama")
    found = numbers(text_material(model, common_words(), text, tokens=400, length=32))
    for path in kept(tmp_path):
        path.write_bytes(path.read_bytes()[:50])
    assert numbers(text_material(model, common_words(), text, tokens=400, length=32)) == found
    assert all(path.stat().st_size > 50 for path in kept(tmp_path))
