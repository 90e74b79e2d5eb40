"""The frozen embeddings of a BERT-like checkpoint: words, positions and segments, with their norm.

They are read from the checkpoint's safetensors and kept in the cache with its tokenizer, under the
hash of both.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from jaxtyping import Float, Int
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from headwise.core.cache import cache_folder
from headwise.core.errors import InputError, require
from headwise.core.files import appearing, is_folder
from headwise.tasks.corpus import load_tokenizer

_TABLES = {
    "words": "word_embeddings.weight",
    "positions": "position_embeddings.weight",
    "segments": "token_type_embeddings.weight",
    "gain": "LayerNorm.weight",
    "shift": "LayerNorm.bias",
}
_MARKS = (("[CLS]", "[SEP]"), ("<s>", "</s>"))  # what begins a sequence, what ends a part of it
_EPSILON = 1e-12


@dataclass(frozen=True)
class FrozenEmbeddings:
    """Tables of a checkpoint, its tokenizer, and the tokens that begin and end parts."""

    tables: dict[str, Tensor]
    tokenizer: Any
    begin: int
    end: int

    def __call__(
        self, words: Int[Tensor, "*rows tokens"], segments: Int[Tensor, "*rows tokens"]
    ) -> Float[Tensor, "*rows tokens dim"]:
        """Words, positions and segments added and normed, as the checkpoint does it."""
        tables = self.tables
        total = functional.embedding(words, tables["words"])
        total += tables["positions"][: words.shape[-1]]
        total += functional.embedding(segments, tables["segments"])
        size = total.shape[-1:]
        return functional.layer_norm(total, size, tables["gain"], tables["shift"], _EPSILON)

    @property
    def longest(self) -> int:
        """How many positions there are."""
        return len(self.tables["positions"])


def add_checkpoint(source: str | Path) -> tuple[str, int, int]:
    """Put a checkpoint's embeddings into the cache: hash, dimension, and positions.

    `source` is a folder with model.safetensors and tokenizer.json, or a name on the hub.
    """
    folder = Path(source) if is_folder(Path(source)) else _from_hub(str(source))
    tables = _read_tables(folder / "model.safetensors")
    definition = load_tokenizer(str(folder)).to_str()
    sha = hashlib.sha256(definition.encode())
    for name, table in tables.items():
        sha.update(f"{name}{tuple(table.shape)}".encode() + table.numpy().tobytes())
    digest = sha.hexdigest()
    path = cache_folder() / embeddings_file(digest)
    if not path.exists():
        with appearing(path) as scratch:
            save_file(tables, scratch, {"tokenizer": definition})
    return digest, tables["words"].shape[1], len(tables["positions"])


def embeddings_file(digest: str) -> str:
    """Where the embeddings of that hash lie in the cache folder."""
    return f"ranking/{digest[:32]}-embeddings.safetensors"


@lru_cache(maxsize=2)
def stored_embeddings(digest: str) -> FrozenEmbeddings:
    """The embeddings of that hash, which must be in the cache."""
    check_embeddings(digest)
    from tokenizers import Tokenizer

    path = cache_folder() / embeddings_file(digest)
    try:
        with safe_open(path, "pt") as file:
            tables = {name: file.get_tensor(name) for name in _TABLES}
            definition = file.metadata()["tokenizer"]
        tokenizer = Tokenizer.from_str(definition)
    except Exception as error:  # tokenizers raises bare Exception
        raise InputError(f"the cached embeddings {path} are damaged; delete it") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    for begin, end in _MARKS:
        first, last = tokenizer.token_to_id(begin), tokenizer.token_to_id(end)
        if first is not None and last is not None:
            return FrozenEmbeddings(tables, tokenizer, first, last)
    raise InputError("the tokenizer knows neither [CLS] and [SEP] nor <s> and </s>")


def check_embeddings(digest: str) -> None:
    """Refuse, with a sentence, if they are not on this machine."""
    require(
        (cache_folder() / embeddings_file(digest)).exists(),
        f"the embeddings (SHA-256 {digest[:12]}…) are not on this machine: fetch MiniLM's with: "
        "headwise study fetch text-ranking, or give a checkpoint of your own",
    )


def _from_hub(name: str) -> Path:
    try:
        from huggingface_hub import hf_hub_download

        file = hf_hub_download(name, "model.safetensors")
        hf_hub_download(name, "tokenizer.json")
    except Exception as error:  # the hub's errors are of many kinds, all with a sentence
        raise InputError(f"there is no folder {name}, and the hub says: {error}") from error
    return Path(file).parent


def _read_tables(path: Path) -> dict[str, Tensor]:
    require(path.is_file(), f"{path.parent} holds no {path.name}")
    try:
        with safe_open(path, "pt") as file:
            names = {
                kind: [name for name in file.keys() if name.endswith(f"embeddings.{ending}")]  # noqa: SIM118
                for kind, ending in _TABLES.items()
            }
            missing = [_TABLES[kind] for kind, found in names.items() if len(found) != 1]
            require(
                not missing,
                f"{path} is no BERT-like checkpoint: it has no {', '.join(missing)}",
            )
            return {kind: file.get_tensor(found[0]).float() for kind, found in names.items()}
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is damaged: {error}") from error
