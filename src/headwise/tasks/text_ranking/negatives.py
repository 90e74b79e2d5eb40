"""Hard negatives: those that come with a query, then the passages that BM25 ranks highest."""

from collections.abc import Sequence
from threading import RLock

import numpy as np
from jaxtyping import Int

from headwise.core.errors import InputError, require
from headwise.tasks.text_ranking.questions import Question


def candidates_of(
    questions: Sequence[Question], count: int, what: str
) -> tuple[list[str], Int[np.ndarray, "questions count"]]:
    """The pool of passages, and of every question `count` candidates by their place in the pool.

    The first is the answer. The pool is that of these questions alone: what they bring along.
    Equal scores are ordered by place, so that the candidates are a function of the questions.
    """
    pool = list(
        dict.fromkeys(text for each in questions for text in (*each.positives, *each.negatives))
    )
    place = {text: number for number, text in enumerate(pool)}
    most = max(len(each.positives) for each in questions) - 1  # other answers are no candidates
    require(
        len(pool) - most >= count,
        f"{len(pool):,} passages to {what} are too few for {count} candidates a query; give more "
        "queries, or a shorter list of candidates",
    )
    score = _bm25(pool)
    rows = np.zeros((len(questions), count), np.int64)
    for number, question in enumerate(questions):
        answers = {place[text] for text in question.positives}
        given = [place[text] for text in question.negatives if place[text] not in answers]
        ranked = _best(score(question.query), count + len(answers) + len(given))
        others = dict.fromkeys([*given, *(each for each in ranked if each not in answers)])
        rows[number] = [place[question.positives[0]], *list(others)[: count - 1]]
    return pool, rows


def _best(scores: np.ndarray, count: int) -> list[int]:
    """The places of the highest scores, highest first; of equal ones the earlier place first."""
    if count < len(scores):
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        above, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
        places = np.sort(np.concatenate([above, equal[: count - len(above)]]))
    else:
        places = np.arange(len(scores))
    order = np.argsort(-scores[places], kind="stable")
    return [int(each) for each in places[order]]


def _bm25(pool: list[str]):  # type: ignore[no-untyped-def]  # bm25s is untyped
    try:
        import bm25s
        from tqdm import tqdm
    except ImportError as error:
        raise InputError(
            "hard negatives need the package 'bm25s': pip install 'headwise[real-data]'"
        ) from error
    tqdm.set_lock(RLock())  # its own is a semaphore, which a worker that is ended leaves behind
    split = {"stopwords": None, "show_progress": False, "return_ids": False}
    words_of_pool = bm25s.tokenize(pool, **split)
    if not any(words_of_pool):  # words have two letters at least
        return lambda query: np.zeros(len(pool), np.float32)
    index = bm25s.BM25()
    index.index(words_of_pool, show_progress=False)

    def score(query: str) -> np.ndarray:
        words = bm25s.tokenize([query], **split)[0]
        known = [word for word in words if word in index.vocab_dict]
        return np.asarray(index.get_scores(known)) if known else np.zeros(len(pool), np.float32)

    return score
