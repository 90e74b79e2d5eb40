"""Next-token prediction: split, windows, hashes, and texts that cannot be used."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.core.errors import InputError
from headwise.core.spec import canonical_json, spec_hash
from headwise.tasks import Language, corpus


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "cache"))
    corpus.tokens.cache_clear()
    return tmp_path / "cache"


def numbered(tmp_path: Path, count: int = 60_000) -> Path:
    """A text in which every place is known by its content: the numbers 0, 1, 2, … as 3 bytes."""
    path = tmp_path / "numbers.bin"
    path.write_bytes(b"".join(number.to_bytes(3, "big") for number in range(count)))
    return path


def places(windows: torch.Tensor) -> np.ndarray:
    """Where each window begins, read off its content."""
    found = []
    for window in windows.numpy():
        for offset in range(3):
            digits = window[offset : offset + 6].reshape(2, 3) @ np.array([1 << 16, 1 << 8, 1])
            if digits[1] == digits[0] + 1:
                found.append(3 * digits[0] - offset)
                break
    assert len(found) == len(windows)
    return np.array(found)


@pytest.mark.parametrize("held_out", [0.1, 0.25])
def test_no_window_crosses_the_boundary(tmp_path: Path, held_out: float) -> None:
    task = Language.from_file(numbered(tmp_path), 50, held_out=held_out)
    boundary = 180_000 - round(180_000 * held_out)
    assert task.boundary == boundary
    train = np.concatenate([places(task.batch(64, seed=1, step=step)) for step in range(200)])
    assert train.min() >= 0
    assert train.max() + 51 <= boundary  # the window's last token is the last before the boundary
    assert train.max() > boundary - 300
    assert train.min() < 300
    held = places(task.validation())
    assert held.min() == boundary
    assert held.max() + 51 <= 180_000
    assert (np.diff(np.sort(held)) == 50).all()  # every token is predicted once
    some = places(task.validation(7))
    assert len(set(some)) == 7
    assert set(some) <= set(held)


def test_what_is_unseen_is_what_the_whole_text_holds_out(tmp_path: Path) -> None:
    path = numbered(tmp_path)
    whole, begun = Language.from_file(path, 50), Language.from_file(path, 50, unseen=0.1)
    assert begun.tokens <= whole.boundary < begun.tokens + 4  # cut before a character
    assert begun.boundary < begun.tokens
    assert places(begun.validation()).max() + 51 <= places(whole.validation()).min()


def test_a_text_is_cut_before_a_character(tmp_path: Path) -> None:
    path = tmp_path / "accents.txt"
    path.write_text("é" * 1005, encoding="utf-8")  # 2,010 bytes, of which 201 are unseen
    assert Language.from_file(path, 8, unseen=0.1).tokens == 1808


def test_the_last_training_window_ends_at_the_boundary(tmp_path: Path) -> None:
    path = tmp_path / "short.txt"
    path.write_bytes(bytes(range(100)))
    task = Language.from_file(path, 8, held_out=0.2)
    seen = {int(token) for step in range(300) for token in task.batch(8, 0, step).flatten()}
    assert seen == set(range(80))
    assert {int(token) for token in task.validation().flatten()} <= set(range(80, 100))


def test_a_batch_is_a_function_of_seed_and_step(tmp_path: Path) -> None:
    task = Language.from_file(numbered(tmp_path), 16)
    assert torch.equal(task.batch(4, 1, 2), task.batch(4, 1, 2))
    others = [task.batch(4, 1, 3), task.batch(4, 2, 2), task.batch(4, 2, 1)]
    assert not any(torch.equal(task.batch(4, 1, 2), other) for other in others)


def test_a_text_is_known_by_its_content_and_not_by_its_place(tmp_path: Path, cache: Path) -> None:
    first = numbered(tmp_path)
    content = first.read_bytes()
    task = Language.from_file(first, 16, name="n")
    assert task.sha256 == hashlib.sha256(content).hexdigest()
    second = tmp_path / "moved" / "other.txt"
    second.parent.mkdir()
    first.rename(second)
    assert spec_hash(Language.from_file(second, 16, name="n")) == spec_hash(task)
    assert str(tmp_path) not in canonical_json(task)
    second.write_bytes(content[:-1] + b"!")
    assert Language.from_file(second, 16, name="n").sha256 != task.sha256
    corpus.tokens.cache_clear()
    assert torch.equal(task.batch(2, 0, 0), task.batch(2, 0, 0))  # the file is no longer needed


def test_tokens_are_memory_mapped_and_checked(tmp_path: Path, cache: Path) -> None:
    task = Language.from_file(numbered(tmp_path), 16)
    assert isinstance(corpus.tokens(task.sha256, task.tokenizer, "n"), np.memmap)
    (file,) = (cache / "texts").iterdir()
    damaged = bytearray(file.read_bytes())
    damaged[-5] ^= 1
    file.write_bytes(damaged)
    corpus.tokens.cache_clear()
    with pytest.raises(InputError, match="not what its name says"):
        task.batch(1, 0, 0)
    file.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="is damaged"):
        task.batch(1, 0, 0)
    file.unlink()
    with pytest.raises(InputError, match=r"not on this machine: give the file with --text"):
        task.batch(1, 0, 0)


def test_a_tokenizer_makes_tokens_and_is_part_of_the_specification(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    text = "to be or not to be that is the question " * 200
    path, definition = tmp_path / "text.txt", tmp_path / "tokenizer.json"
    path.write_text(text)
    words = {word: number for number, word in enumerate(sorted(set(text.split())))}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="be"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(definition))
    task = Language.from_file(path, 8, tokenizer=str(definition))
    assert (task.tokens, task.vocabulary) == (2000, 8)
    assert task.bytes_per_token == pytest.approx(4.0)
    names = {number: word for word, number in words.items()}
    spoken = " ".join(names[int(token)] for token in task.validation()[0])
    assert spoken == "to be or not to be that is the"
    assert len(task.tokenizer) == 64
    assert task.tokenizer != Language.from_file(path, 8).tokenizer
    path.write_bytes(b"\xff\xfe bad " * 100)
    with pytest.raises(InputError, match="byte 0 of the text is not"):
        Language.from_file(path, 8, tokenizer=str(definition))
    with pytest.raises(InputError, match="cannot load the tokenizer"):
        Language.from_file(path, 8, tokenizer=str(path))
    assert Language.from_file(path, 8).tokens == 700  # as bytes anything can be read


def test_texts_that_cannot_be_used_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the text"):
        Language.from_file(tmp_path / "none.txt", 8)
    with pytest.raises(InputError, match="cannot read the text"):
        Language.from_file(tmp_path, 8)
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(InputError, match="is empty"):
        Language.from_file(tmp_path / "empty.txt", 8)
    (tmp_path / "short.txt").write_text("x" * 500)
    with pytest.raises(InputError, match="too few for a length of 64"):
        Language.from_file(tmp_path / "short.txt", 64)
    with pytest.raises(InputError, match="held_out is a share"):
        Language.from_file(tmp_path / "short.txt", 8, held_out=1.0)
