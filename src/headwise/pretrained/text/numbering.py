"""The token numbers of texts, kept on disk: a tokenizer takes seconds for a megabyte.

What is kept is taken if the shortest text still has these numbers. A tokenizer written in Python
does not say what it is made of, and is asked each time.
"""

import hashlib
from typing import Any

import torch

from headwise.pretrained.measure.store import Kept, Tensors

_MOST = 2**26  # tokens that are kept of a text: 256 MB


class Numbering:
    """Turns texts into token numbers, as a tokenizer does; with `cache` they are kept on disk."""

    def __init__(self, tokenizer: Any, *, cache: bool) -> None:
        self._tokenizer = tokenizer
        core: Any = getattr(tokenizer, "backend_tokenizer", None)
        self._made_of = core.to_str() if cache and hasattr(core, "to_str") else None

    def __call__(self, texts: list[str]) -> list[list[int]]:
        """The numbers of each text."""
        kept = Kept(self._key(texts))
        tensors = kept.read("tokens")
        known = None if tensors is None else _split(tensors)
        shortest = min(range(len(texts)), key=lambda index: len(texts[index]))
        if known is not None and known[shortest] == self._numbered([texts[shortest]])[0]:
            return known
        found = self._numbered(texts)
        sizes = [len(ids) for ids in found]
        if sum(sizes) <= _MOST:
            ids = torch.tensor([number for each in found for number in each], dtype=torch.int32)
            kept.finish({"ids": ids, "sizes": torch.tensor(sizes)}, "tokens")
        return found

    def _numbered(self, texts: list[str]) -> list[list[int]]:
        found: list[list[int]] = self._tokenizer(texts, verbose=False)["input_ids"]
        return found

    def _key(self, texts: list[str]) -> str | None:
        if self._made_of is None:
            return None
        digest = hashlib.sha256(f"{type(self._tokenizer).__name__} {self._made_of}".encode())
        for text in texts:
            content = text.encode()
            digest.update(f" {len(content)} ".encode())
            digest.update(content)
        return digest.hexdigest()[:32]


def _split(tensors: Tensors) -> list[list[int]]:
    return [part.tolist() for part in tensors["ids"].split(tensors["sizes"].tolist())]
