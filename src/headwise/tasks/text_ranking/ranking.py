"""The task: of T candidates, which passage answers the query?"""

from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.core.errors import check_whole, require
from headwise.core.spec import spec
from headwise.tasks.text_ranking.embeddings import (
    add_checkpoint,
    check_embeddings,
    embeddings_file,
    stored_embeddings,
)
from headwise.tasks.text_ranking.prepared import Preparation, RankingArrays, prepare
from headwise.tasks.text_ranking.questions import (
    check_questions,
    questions_file,
    read_questions,
    store_questions,
)

_PREPARED = 64  # candidates that are looked for, so that shorter lists share the work


@spec
class TextRanking:
    """`length` candidates a query: the answer, passages offered with the query, BM25's best.

    Training and held-out queries are drawn at random once; the candidates of either come from its
    own passages, so that no held-out answer was seen as a negative. `packing` "pairs": query and
    candidate are one sequence of up to `tokens` tokens, [CLS] query [SEP] passage [SEP];
    "candidates": one sequence of the query's vector and the candidates', each the mean of its
    (first `tokens`) tokens' frozen embeddings, standardised by the training passages' mean and
    spread, which the projection could undo. The answer is always candidate 0: the networks that
    read either packing cannot tell the order.

    `questions` and `embeddings` are hashes; the data are looked up in the cache, where
    `from_source` puts them.
    """

    name: str
    questions: str
    queries: int
    embeddings: str
    token_dim: int
    length: int
    train: int
    held_out: int
    packing: Literal["pairs", "candidates"] = "candidates"
    tokens: int = 64

    def __post_init__(self) -> None:
        for name in ("queries", "token_dim", "train", "held_out"):
            check_whole(getattr(self, name), name, 1)
        check_whole(self.length, "length", 2)
        check_whole(self.tokens, "tokens", 8)
        require(
            self.packing in ("pairs", "candidates"),
            f"packing is 'pairs' or 'candidates', not {self.packing!r}",
        )
        require(
            self.train + self.held_out <= self.queries,
            f"{self.name} has {self.queries:,} queries; {self.train:,} to train on and "
            f"{self.held_out:,} held out are more",
        )

    @classmethod
    def from_source(
        cls,
        source: str | Path,
        embeddings: str | Path,
        *,
        length: int,
        train: int,
        held_out: int,
        packing: Literal["pairs", "candidates"] = "candidates",
        tokens: int = 64,
        name: str = "",
    ) -> "TextRanking":
        """Queries from a file, a folder or the hub; embeddings from a checkpoint's folder or name.

        Everything is read and the candidates are looked for now, so that what is wrong with the
        data is said at once.
        """
        asked = read_questions(source)
        digest, dim, longest = add_checkpoint(embeddings)
        require(
            tokens <= longest,
            f"a text has up to {tokens} tokens here; the checkpoint has {longest} positions",
        )
        task = cls(
            name=name or Path(source).stem,
            questions=store_questions(asked),
            queries=len(asked),
            embeddings=digest,
            token_dim=dim,
            length=length,
            train=train,
            held_out=held_out,
            packing=packing,
            tokens=tokens,
        )
        for part in (False, True):
            task.prepared(part)
        return task

    @property
    def choices(self) -> int:
        """The candidates."""
        return self.length

    @property
    def cached_files(self) -> tuple[str, ...]:
        """What it reads, by place in the cache folder: a node that lacks it is sent it."""
        return questions_file(self.questions), embeddings_file(self.embeddings)

    def check(self) -> None:
        """Refuse, with a sentence, if queries or embeddings are not on this machine."""
        check_questions(self.questions, self.name)
        check_embeddings(self.embeddings)

    def prepared(self, held_out: bool) -> RankingArrays:
        """The arrays of a split; as many candidates as it has, up to 64, or `length`."""
        first, count = (self.train, self.held_out) if held_out else (0, self.train)
        wanted = max(self.length, min(_PREPARED, count))
        plan = Preparation(
            questions=self.questions,
            embeddings=self.embeddings,
            first=first,
            count=count,
            candidates=wanted,
            tokens=self.tokens,
        )
        return prepare(plan, self.name)

    def examples(
        self, rows: Int[np.ndarray, " batch"], held_out: bool = False
    ) -> tuple[Float[Tensor, "batch *sequence token_dim"], Int[Tensor, " batch"]]:
        """The packed candidates of these queries; the answer is number 0."""
        arrays = self.prepared(held_out)
        chosen = torch.from_numpy(np.asarray(rows))
        places = arrays.candidates[chosen, : self.length].long()
        answers = torch.zeros(len(chosen), dtype=torch.int64)
        if self.packing == "candidates":
            query = arrays.query_vectors[chosen].unsqueeze(1)
            vectors = torch.cat([query, arrays.passage_vectors[places]], 1)
            mean, spread = self.prepared(False).scale
            return (vectors - mean) / spread, answers
        query, passage = arrays.query_tokens[chosen].long(), arrays.passage_tokens[places].long()
        return self._pairs(query, passage), answers

    def _pairs(
        self, query: Int[Tensor, "batch limit"], passage: Int[Tensor, "batch candidates limit"]
    ) -> Float[Tensor, "batch candidates tokens token_dim"]:
        """[CLS] query [SEP] passage [SEP], embedded; zeros behind the end.

        A query has at most half of the tokens, the passage what is left.
        """
        frozen = stored_embeddings(self.embeddings)
        query = query[:, None, : self.tokens // 2].expand(-1, self.length, -1)
        mark = torch.ones_like(query[..., :1])
        begin, end = mark * frozen.begin, mark * frozen.end
        words = torch.cat([begin, query, end, passage], -1)
        second = torch.arange(words.shape[-1]) >= query.shape[-1] + 2
        segments = second.long().expand_as(words)
        # Real tokens move to the front, in order; room is left for the last [SEP].
        gaps = words < 0
        order = torch.sort(gaps.long(), dim=-1, stable=True).indices[..., : self.tokens - 1]
        words, segments, gaps = (part.gather(-1, order) for part in (words, segments, gaps))
        words = torch.cat([words, -mark], -1)
        segments = torch.cat([segments, mark], -1)
        last = (~gaps).sum(-1, keepdim=True)
        words = words.scatter(-1, last, end)
        segments = segments.scatter(-1, last, mark)
        there = (torch.arange(words.shape[-1]) <= last).unsqueeze(-1)
        few = len(frozen.tables["segments"]) - 1
        return frozen(words.clamp_min(0), segments.clamp_max(few)) * there
