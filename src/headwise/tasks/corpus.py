"""Texts as memory-mapped token numbers, found by their content and not by their place.

A text is known by the SHA-256 of its bytes, a tokenizer by that of its definition; together they
name a file in the cache (`HEADWISE_CACHE`, else headwise in the user's cache folder). So a
specification that holds the hash means the same on every machine, and a file is read, hashed and
tokenised once. Cached files appear whole or not at all.
"""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from headwise.core.cache import ANOTHER_FOLDER, cache_folder
from headwise.core.errors import InputError, require
from headwise.core.files import appearing, read_bytes, reason

BYTES = "bytes"


def read_content(path: str | Path) -> bytes:
    """A file with something in it."""
    content = read_bytes(path, f"the text {path}")
    require(bool(content.strip()), f"the text {path} is empty")
    return content


def without_end(content: bytes, share: float) -> bytes:
    """The text without its last `share`, cut before a character."""
    stop = len(content) - round(len(content) * share)
    while 0 < stop < len(content) and content[stop] & 0xC0 == 0x80:  # inside a character of UTF-8
        stop -= 1
    return content[:stop]


def hub_content(dataset: str, split: str = "train", column: str = "text") -> bytes:
    """The texts of a hub dataset, a blank line between two; 'name:configuration' chooses one."""
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise InputError("reading a hub dataset needs the package 'datasets'") from error
    name, _, configuration = dataset.partition(":")
    try:
        rows = load_dataset(name, configuration or None, split=split)
    except (OSError, ValueError) as error:  # the hub's errors are among these
        raise InputError(f"cannot load {dataset!r}, split {split!r}: {error}") from error
    require(
        column in rows.column_names,
        f"{dataset} has no column {column!r}; it has {', '.join(rows.column_names)}",
    )
    content = "\n\n".join(text for text in rows[column] if text.strip()).encode()
    require(bool(content), f"{dataset}, split {split!r}, holds no text")
    return content


def load_tokenizer(source: str) -> Any:
    """A `tokenizers.Tokenizer`: a tokenizer.json, a folder with one, or the hub's by name."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise InputError(
            "a tokenizer needs the package 'tokenizers'; without it text is read as bytes"
        ) from error
    path = Path(source)
    path = path / "tokenizer.json" if path.is_dir() else path
    try:
        return (
            Tokenizer.from_file(str(path)) if path.exists() else Tokenizer.from_pretrained(source)
        )
    except Exception as error:  # tokenizers raises bare Exception
        raise InputError(f"cannot load the tokenizer {source!r}: {error}") from error


def add(content: bytes, tokenizer: Any | None = None) -> tuple[str, str, int, int]:
    """Put a text into the cache: its hash, the tokenizer's, tokens, and size of the vocabulary."""
    digest = hashlib.sha256(content).hexdigest()
    if tokenizer is None:
        _write(_file(digest, BYTES), np.frombuffer(content, np.uint8))
        return digest, BYTES, len(content), 256
    kind = hashlib.sha256(tokenizer.to_str().encode()).hexdigest()
    vocabulary = tokenizer.get_vocab_size()
    path = _file(digest, kind)
    if not path.exists():
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"a tokenizer reads UTF-8, and byte {error.start} of the text is not; convert it, "
                "or read the text as bytes"
            ) from error
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        require(len(ids) > 0, "the tokenizer makes no token of this text")
        _write(path, np.array(ids, np.uint16 if vocabulary <= 1 << 16 else np.uint32))
    return digest, kind, len(np.load(path, mmap_mode="r", allow_pickle=False)), vocabulary


def add_tokens(ids: np.ndarray) -> str:
    """Put token numbers into the cache as they are: the hash under which they are found."""
    digest = hashlib.sha256(f"{ids.dtype.str}{ids.shape}".encode() + ids.tobytes()).hexdigest()
    _write(_file(digest, "tokens"), ids)
    return digest


@lru_cache(maxsize=8)
def tokens(digest: str, kind: str, name: str) -> np.ndarray:
    """The memory-mapped token numbers of a text that is in the cache; bytes are checked."""
    path = _file(digest, kind)
    require(
        path.exists(),
        f"the text {name!r} (SHA-256 {digest[:12]}…) is not on this machine: give the file with "
        "--text FILE, or fetch a study's own texts with: headwise study fetch NAME",
    )
    try:
        ids: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"the cached text {path} is damaged ({error}); delete it") from error
    require(
        kind != BYTES or hashlib.sha256(ids.data).hexdigest() == digest,
        f"the cached text {path} is not what its name says; delete it",
    )
    return ids


def cached_file(digest: str, kind: str) -> str:
    """Where the token numbers of a text lie in the cache folder."""
    return f"texts/{digest[:32]}-{kind[:32]}.npy"


def _file(digest: str, kind: str) -> Path:
    return cache_folder() / cached_file(digest, kind)


def _write(path: Path, ids: np.ndarray) -> None:
    try:
        if not path.exists():
            with appearing(path) as scratch:
                np.save(scratch, ids, allow_pickle=False)
    except (OSError, InputError) as error:
        raise InputError(
            f"the cache {cache_folder()} cannot be used ({reason(error)}); {ANOTHER_FOLDER}"
        ) from error
