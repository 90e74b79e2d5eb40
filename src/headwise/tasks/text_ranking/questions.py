"""Queries with the passages that answer them, in the forms that others keep them in.

- MS MARCO's positives: a JSON list, or lines, of {"query", "positive": [text]}.
- MS MARCO v2.1: lines of {"query", "passages": [text], "is_selected": [0 or 1]}, or as the hub has
  them, {"passages": {"passage_text", "is_selected"}}. Queries of which no passage is selected are
  left out, as is usual.
- One's own: lines of {"query", "positives": [text], "negatives": [text]}.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from headwise.core.cache import cache_folder
from headwise.core.errors import InputError, require
from headwise.core.files import is_folder, parse_json, read_bytes, read_json, write_file

_FORMS = (
    "accepted are {query, positive: [text]}, {query, passages: [text], is_selected: [0 or 1]} and "
    "{query, positives: [text], negatives: [text]}"
)


@dataclass(frozen=True)
class Question:
    """A query, the passages that answer it, and passages that were offered and do not."""

    query: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...] = ()


def read_questions(source: str | Path) -> list[Question]:
    """From a file, from all .json and .jsonl files of a folder, or from the hub by name."""
    path = Path(source)
    if is_folder(path):
        files = sorted(each for each in path.iterdir() if each.suffix in (".json", ".jsonl"))
        require(len(files) > 0, f"the folder {path} holds no .json or .jsonl file")
    elif path.exists() or path.suffix in (".json", ".jsonl") or str(source).startswith((".", "/")):
        files = [path]
    else:
        return _asked(_hub_rows(str(source)), str(source))
    found = [question for file in files for question in _asked(_rows(file), str(file))]
    distinct = {question.query: question for question in reversed(found)}  # the first counts
    return list(reversed(distinct.values()))


def store_questions(questions: Iterable[Question]) -> str:
    """Put questions into the cache: the hash under which they are found."""
    lines = (
        json.dumps([each.query, each.positives, each.negatives], ensure_ascii=False)
        for each in questions
    )
    content = "\n".join(lines).encode()
    digest = hashlib.sha256(content).hexdigest()
    path = cache_folder() / questions_file(digest)
    if not path.exists():
        write_file(path, content)
    return digest


def questions_file(digest: str) -> str:
    """Where the questions of that hash lie in the cache folder."""
    return f"ranking/{digest[:32]}-questions.jsonl"


@lru_cache(maxsize=2)
def stored_questions(digest: str, name: str) -> list[Question]:
    """The questions of that hash, which must be in the cache."""
    path = cache_folder() / questions_file(digest)
    check_questions(digest, name)
    content = path.read_bytes()
    require(
        hashlib.sha256(content).hexdigest() == digest,
        f"the cached questions {path} are not what their name says; delete the file",
    )
    rows = (json.loads(line) for line in content.decode().split("\n"))
    return [Question(query, tuple(yes), tuple(no)) for query, yes, no in rows]


def check_questions(digest: str, name: str) -> None:
    """Refuse, with a sentence, if they are not on this machine."""
    require(
        (cache_folder() / questions_file(digest)).exists(),
        f"the queries of {name} (SHA-256 {digest[:12]}…) are not on this machine: give them with "
        "--data FOLDER, or fetch the study's own with: headwise study fetch text-ranking",
    )


def _rows(path: Path) -> list[Any]:
    if path.suffix == ".json":
        data = read_json(path)
        require(isinstance(data, list), f"{path} must hold a list of queries; {_FORMS}")
        return list(data)
    try:
        lines = read_bytes(path).decode().split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text") from error
    rows = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                rows.append(parse_json(line))
            except InputError as error:
                raise InputError(f"line {number} of {path} {error}") from error
    return rows


def _hub_rows(name: str) -> list[Any]:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise InputError(
            f"there is no file {name}, and reading it from the hub needs the package 'datasets'"
        ) from error
    configuration = "v2.1" if name == "microsoft/ms_marco" else None
    try:
        return list(load_dataset(name, configuration, split="train"))
    except (OSError, ValueError) as error:  # the hub's errors are among these
        raise InputError(f"cannot load {name!r} from the hub: {error}") from error


def _asked(rows: list[Any], source: str) -> list[Question]:
    found = [_question(row, f"query {number} of {source}") for number, row in enumerate(rows, 1)]
    asked = [question for question in found if question is not None]
    require(len(asked) > 0, f"{source} holds no query with a passage that answers it")
    return asked


def _question(row: Any, where: str) -> Question | None:
    known = isinstance(row, dict) and isinstance(row.get("query"), str) and row["query"].strip()
    require(bool(known), f"{where} has no text under 'query'; {_FORMS}")
    query = str(row["query"]).strip()
    if "passages" in row:
        return _offered(query, row, where)
    key = "positives" if "positives" in row else "positive"
    require(
        key in row, f"{where} has the columns {', '.join(map(str, row))} and no positives; {_FORMS}"
    )
    positives = _texts(row[key], key, where)
    require(len(positives) > 0, f"{where} has no positives: at least one passage answers a query")
    negatives = row.get("negatives", row.get("negative", []))
    return Question(query, positives, _texts(negatives, "negatives", where))


def _offered(query: str, row: Any, where: str) -> Question | None:
    passages, selected = row["passages"], row.get("is_selected")
    if isinstance(passages, dict):
        selected = passages.get("is_selected")
        passages = passages.get("passage_text")
    texts = _texts(passages, "passages", where)
    fits = isinstance(selected, list) and len(selected) == len(texts)
    require(fits, f"{where} has {len(texts)} passages and not as many numbers in 'is_selected'")
    yes = tuple(text for text, chosen in zip(texts, selected, strict=True) if chosen)
    no = tuple(text for text, chosen in zip(texts, selected, strict=True) if not chosen)
    return Question(query, yes, no) if yes else None


def _texts(value: Any, key: str, where: str) -> tuple[str, ...]:
    whole = isinstance(value, list) and all(
        isinstance(text, str) and text.strip() for text in value
    )
    require(whole, f"{where}: '{key}' must be a list of texts, none of them empty")
    return tuple(text.strip() for text in value)
