"""Text that can tell nothing is refused: copies of what was calibrated on, or of itself."""

from pathlib import Path
from typing import Any

import pytest
import torch
from small_models import common_words, small_material, small_model

import headwise
from headwise.core.errors import InputError
from headwise.pretrained import text_material
from headwise.pretrained.text.calibration import BOUNDARY, packaged_text
from headwise.pretrained.text.material import readable

LINE = "the house of a man who was not in the town where it was said that he had been\n"


def same_letters() -> Any:
    """A tokenizer of letters, NUL among them."""
    import transformers
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    letters = ["[UNK]", "[PAD]", "[MASK]", "\0", *map(chr, range(32, 124))]
    core = Tokenizer(models.WordLevel({c: i for i, c in enumerate(letters)}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="[PAD]", mask_token="[MASK]"
    )


TEXTS = {
    "NULs": "\0" * 20_000,
    "one letter": "a" * 20_000,
    "spaces": "a" + " " * 20_000 + "a",
    "a line": LINE * 300,
    "NULs in documents": BOUNDARY.join(["\0" * 400] * 50),
    "a text ten times": 10 * packaged_text("held_out")[:6_000],
}
MODELS = ("llama", "bert-masked", "bert", "t5")
# An encoder reads lines, and of one line nothing can be held out.
REFUSED = "can tell nothing: .* word for word|too short to hold some of it out"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_repeats_itself_is_refused(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(TEXTS[text], "utf-8")
    works = {"inspect": headwise.inspect, "compress": headwise.compress}
    for work, options in (("inspect", {}), ("compress", {"keep": 0.5})):
        with pytest.raises(InputError, match=REFUSED):
            works[work](
                small_model(name, vocab_size=128),
                text=path,
                tokenizer=same_letters(),
                **options,
            )


def test_so_is_one_that_only_judges_and_a_copy_of_what_was_calibrated_on(tmp_path: Path) -> None:
    model = small_model("llama", vocab_size=128)
    real, null = tmp_path / "real.txt", tmp_path / "null.txt"
    real.write_text(packaged_text("held_out")[:9_000], "utf-8")
    null.write_text(TEXTS["NULs"], "utf-8")
    options: dict[str, Any] = {"tokenizer": same_letters(), "keep": 0.5}
    for eval_text in (null, real):
        with pytest.raises(InputError, match="can tell nothing"):
            headwise.compress(model, text=real, eval_text=eval_text, **options)
    material = text_material(model, same_letters(), null, eval_text=real, tokens=4_000)
    assert "repeats itself" in " ".join(material.warnings)


@pytest.mark.parametrize("name", MODELS)
def test_the_packaged_text_is_new_to_any_tokenizer(name: str) -> None:
    for tokenizer in (same_letters(), common_words()):
        model = small_model(name, vocab_size=128)
        readable(model, text_material(model, tokenizer, tokens=4_000))


def _proses(size: int) -> list[str]:
    text = packaged_text("held_out")
    return [text[start : start + size] for start in range(0, 120 * size, size)]


def _log() -> str:
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0"
    numbers = torch.randint(100_000, (300, 4), generator=torch.Generator().manual_seed(0)).tolist()
    return "\n".join(f"10.0.{a % 256} GET /user/{b} 200 {c} {d} {agent}" for a, b, c, d in numbers)


LICENCE = "You may use, copy and change this file as long as this sentence stays.\n"
LIKE_ITSELF = {
    "few words": "\n".join(_proses(60)[:30]),
    "a log": _log(),
    "sources": BOUNDARY.join(3 * LICENCE + text for text in _proses(300)),
    "refrains": "\n\n".join(f"{text}\n{LINE}" for text in _proses(200)),
    "a conversation": "\n".join(f"{'AB'[n % 2]}: {text}" for n, text in enumerate(_proses(50))),
    "short documents": BOUNDARY.join(text.replace(". ", ".\n") for text in _proses(250)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("text", LIKE_ITSELF)
def test_what_repeats_a_part_of_itself_is_judged_by(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(LIKE_ITSELF[text], "utf-8")
    model = small_model(name, vocab_size=128)
    readable(model, text_material(model, same_letters(), path, tokens=4_000, length=64))


def test_what_is_mostly_repetition_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    model = small_model("llama", vocab_size=128)
    path.write_text(packaged_text("held_out")[:6_000], "utf-8")
    assert "word for word" not in " ".join(text_material(model, same_letters(), path).warnings)
    path.write_text(BOUNDARY.join(8 * [LINE] + 2 * _proses(400)[:20]), "utf-8")
    assert "% of held-out part" in " ".join(text_material(model, same_letters(), path).warnings)


@pytest.mark.parametrize("name", ["vit-classifier", "llama"])
def test_held_out_batches_of_the_calibration_are_refused(name: str) -> None:
    model = small_model(name)
    material = small_material(model)
    with pytest.raises(InputError, match="can tell nothing"):
        headwise.compress(
            model, text=material._replace(held_out=material.calibration[:2]), keep=0.5
        )


def test_an_original_that_says_one_thing_to_all_inputs_is_told_of() -> None:
    model = small_model("vit-classifier")
    with torch.no_grad():
        model.classifier.weight.zero_()
    material = small_material(model)
    result = headwise.compress(model, text=material, keep=0.5, method="random", time_it=False)
    assert any("gives one answer to all" in warning for warning in result.warnings)
