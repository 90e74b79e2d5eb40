"""How a model reads text: in windows or passages, in halves, masked, as many at once as fit."""

import inspect
from typing import Any

from torch import Tensor

from headwise.core.errors import require
from headwise.pretrained.adapters import family_of
from headwise.pretrained.measure.language import MaskedToken, NextToken
from headwise.pretrained.measure.objectives import Embedding, objective_for
from headwise.pretrained.text.calibration import (
    SHORTEST,
    Piece,
    Sample,
    documents,
    equal_length_batches,
)
from headwise.pretrained.text.limits import DECODER_LENGTH, longest_input
from headwise.pretrained.text.masking import mask_tokens
from headwise.pretrained.text.numbering import Numbering
from headwise.pretrained.text.paragraphs import paragraphs

FEW = 5  # documents: with fewer, every sequence counts as one
_LETTERS = 4  # about as many as a token has
_PARAGRAPH = 40  # letters: what is shorter is a title or a name
_LOGITS_AT_ONCE = 2**24  # bounds a batch by what its predictions take: 64 MB of float32


class Reader:
    """Cuts texts as one model reads them."""

    def __init__(
        self, model: Any, tokenizer: Any, length: int | None, seed: int, *, cache: bool
    ) -> None:
        self.model, self.tokenizer, self.seed = model, tokenizer, seed
        self.numbers = Numbering(tokenizer, cache=cache)
        objective = objective_for(model)
        self.decoder = isinstance(objective, NextToken)
        self.masked = isinstance(objective, MaskedToken)
        self.pairs = _reads_pairs(model)
        longest = longest_input(model, tokenizer)
        require(
            length is None or longest is None or length <= longest,
            f"length is {length}; this model takes at most {longest} tokens",
        )
        require(
            longest is None or longest >= SHORTEST,
            f"this model takes at most {longest} tokens; an input has at least {SHORTEST}",
        )
        self.length = length or min(DECODER_LENGTH if self.decoder else 512, longest or 2**20)

    def pieces(self, text: str, source: str) -> list[Piece]:
        """All sequences of a text, whole as far as the model reads."""
        texts = documents(text)
        require(bool(texts), f"{source} has end-of-text marks and no text between them")
        cut = windows if self.decoder else passages
        found = cut(self.numbers, texts, self.length)
        if len(found) < FEW and not self.decoder:  # a file that is one line, or a few
            found = cut(self.numbers, _in_lines(texts, self.length), self.length) or found
        require(bool(found), f"{source} is too short: no piece of it has {SHORTEST} tokens")
        if len(texts) >= FEW:
            return found
        return [Piece(number, piece.ids) for number, piece in enumerate(found)]

    def evened(self, pieces: list[Piece]) -> list[Piece]:
        """These with few different lengths, which are quicker to calibrate on; what judges stays
        whole, for half of a short text is another text."""
        for multiple in (16, SHORTEST):
            sizes = [len(piece.ids) // multiple * multiple for piece in pieces]
            cut = [
                Piece(piece.document, piece.ids[:size] if self.decoder else closed(piece.ids, size))
                for piece, size in zip(pieces, sizes, strict=True)
                if size >= SHORTEST
            ]
            if cut:
                break
        return cut

    def batches(self, pieces: list[Piece], part: int) -> tuple[list[Any], list[list[int]]]:
        """Model inputs, and the documents they are of; `part` tells the texts' masks apart."""
        at_once = max(self.length, min(2048, _LOGITS_AT_ONCE // _classes(self.model)))
        if _reads_one_at_a_time(self.model):
            at_once = 1
        found, names = equal_length_batches(pieces, at_once)
        if self.pairs:
            found = [_in_halves(batch["input_ids"]) for batch in found]
        if self.masked:
            found = mask_tokens(found, self.tokenizer, self.seed, part)
        return found, names

    def sample(
        self, pieces: list[Piece], source: str, part: int, kinds: tuple[str, ...] = ()
    ) -> Sample:
        """These pieces to judge by."""
        batches, documents = self.batches(pieces, part)
        return Sample(batches, source, documents, kinds)


def _in_lines(texts: list[str], length: int) -> list[str]:
    """The texts in lines of about so many tokens, wherever words or sentences end."""
    size = _LETTERS * length
    return [
        "\n".join(text[start : start + size] for start in range(0, len(text), size))
        for text in (" ".join(text.split()) for text in texts)
    ]


def _reads_pairs(model: Any) -> bool:
    """Encoder–decoders that go on with a text; those that classify give their decoder the whole of
    it themselves, and of some only one half is there."""
    goes_on = isinstance(objective_for(model), NextToken | Embedding)
    takes_two = "decoder_input_ids" in inspect.signature(model.forward).parameters
    return family_of(model).reads == "text pairs" and takes_two and goes_on


def _in_halves(ids: Tensor) -> dict[str, Tensor]:
    """The first half for the encoder, the second for the decoder to go on with."""
    half = ids.shape[1] // 2
    return {"input_ids": ids[:, :half], "decoder_input_ids": ids[:, half:]}


def _classes(model: Any) -> int:
    return (
        int(model.config.vocab_size)
        if hasattr(model, "get_output_embeddings") and (model.get_output_embeddings() is not None)
        else 1024
    )


def _reads_one_at_a_time(model: Any) -> bool:
    """Decoders that classify look for the last token by the padding before it; without a padding
    token they take one sequence at a time."""
    return (
        type(model).__name__.endswith("ForSequenceClassification")
        and getattr(model.config, "pad_token_id", None) is None
        and not isinstance(objective_for(model), NextToken)
    )


def windows(numbers: Numbering, texts: list[str], length: int) -> list[Piece]:
    """What a decoder reads: each document in windows of `length` tokens and what is left over."""
    pieces = [
        Piece(number, ids[start : start + length])
        for number, ids in enumerate(numbers(texts))
        for start in range(0, len(ids), length)
    ]
    return [piece for piece in pieces if len(piece.ids) >= SHORTEST]


def passages(numbers: Numbering, texts: list[str], length: int) -> list[Piece]:
    """What an encoder reads: every paragraph, and every document's beginning, as an input alone."""
    inputs: list[tuple[int, str]] = []
    for number, text in enumerate(texts):
        parts = [part for part in paragraphs(text) if len(part) >= _PARAGRAPH]
        inputs += [(number, each) for each in ([text, *parts] if len(parts) > 1 else [text])]
    pieces = [
        Piece(number, closed(ids, length))
        for (number, _), ids in zip(inputs, numbers([each for _, each in inputs]), strict=True)
    ]
    return [piece for piece in pieces if len(piece.ids) >= SHORTEST]


def closed(ids: list[int], length: int) -> list[int]:
    """An input that is too long is cut; its closing token stays."""
    return ids if len(ids) <= length else [*ids[: length - 1], ids[-1]]
