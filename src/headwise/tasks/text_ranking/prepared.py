"""Questions as arrays: candidates by number, texts as tokens or as pooled vectors.

Made once and kept in the cache under the hash of what they are a function of; whoever wants the
same waits for whoever makes it.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from filelock import FileLock
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from headwise.core.cache import cache_folder
from headwise.core.errors import InputError
from headwise.core.files import appearing
from headwise.core.spec import spec, spec_hash
from headwise.tasks.text_ranking.embeddings import FrozenEmbeddings, stored_embeddings
from headwise.tasks.text_ranking.negatives import candidates_of
from headwise.tasks.text_ranking.questions import stored_questions

_AT_ONCE = 256  # texts that are embedded at once


@spec
class Preparation:
    """All that the arrays of a split are a function of; `first` and `count` choose its queries."""

    questions: str
    embeddings: str
    first: int
    count: int
    candidates: int
    tokens: int


@dataclass(frozen=True)
class RankingArrays:
    """A split's arrays. A text is a row of token numbers, −1 behind its end."""

    query_tokens: Int[Tensor, "queries tokens"]
    passage_tokens: Int[Tensor, "passages tokens"]
    candidates: Int[Tensor, "queries candidates"]
    query_vectors: Float[Tensor, "queries dim"]
    passage_vectors: Float[Tensor, "passages dim"]

    @cached_property
    def scale(self) -> tuple[Float[Tensor, " dim"], Float[Tensor, " dim"]]:
        """Mean and standard deviation of the passages' vectors."""
        vectors = self.passage_vectors
        return vectors.mean(0), vectors.std(0).clamp_min(1e-6)


def prepare(wanted: Preparation, name: str) -> RankingArrays:
    """The arrays, from the cache or made now."""
    return _prepare(wanted, name, str(cache_folder()))


@lru_cache(maxsize=4)
def _prepare(wanted: Preparation, name: str, folder: str) -> RankingArrays:
    path = cache_folder() / "ranking" / f"{spec_hash(wanted)[:32]}-arrays.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(f"{path}.lock"):
            if not path.exists():
                made = _made(wanted, name)
                with appearing(path) as scratch:
                    save_file(made, scratch)
        return RankingArrays(**load_file(path))
    except (OSError, SafetensorError, TypeError) as error:
        raise InputError(f"the arrays {path} cannot be used ({error}); delete it") from error


def _made(wanted: Preparation, name: str) -> dict[str, Tensor]:
    everyone = stored_questions(wanted.questions, name)
    order = np.random.default_rng(0x9E51).permutation(len(everyone))  # the splits are at random
    chosen = order[wanted.first : wanted.first + wanted.count]
    asked = [everyone[number] for number in chosen]
    what = "train on" if wanted.first == 0 else "hold out"
    pool, candidates = candidates_of(asked, wanted.candidates, what)
    frozen = stored_embeddings(wanted.embeddings)
    queries = _tokens(frozen, [each.query for each in asked], wanted.tokens)
    passages = _tokens(frozen, pool, wanted.tokens)
    return {
        "query_tokens": queries,
        "passage_tokens": passages,
        "candidates": torch.from_numpy(candidates).to(torch.int32),
        "query_vectors": _pooled(frozen, queries, 0),
        "passage_vectors": _pooled(frozen, passages, 1),
    }


def _tokens(
    frozen: FrozenEmbeddings, texts: list[str], longest: int
) -> Int[Tensor, "texts tokens"]:
    found = frozen.tokenizer.encode_batch(texts, add_special_tokens=False)
    rows = torch.full((len(texts), longest), -1, dtype=torch.int32)
    for row, encoding in zip(rows, found, strict=True):
        ids = encoding.ids[:longest]
        row[: len(ids)] = torch.tensor(ids, dtype=torch.int32)
    return rows


def _pooled(
    frozen: FrozenEmbeddings, tokens: Int[Tensor, "texts tokens"], segment: int
) -> Float[Tensor, "texts dim"]:
    """The mean over a text's tokens; a text without tokens is zeros."""
    parts = []
    for piece in tokens.long().split(_AT_ONCE):
        there = (piece >= 0).unsqueeze(-1)
        segments = torch.full_like(piece, min(segment, len(frozen.tables["segments"]) - 1))
        total = (frozen(piece.clamp_min(0), segments) * there).sum(1)
        parts.append(total / there.sum(1).clamp_min(1))
    return torch.cat(parts)
