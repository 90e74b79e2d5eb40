"""Text ranking: forms of queries, candidates, splits, packings, and what is wrong with bad data."""

import json
import os
from dataclasses import replace
from math import log
from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.core.errors import InputError
from headwise.tasks import TextRanking
from headwise.tasks.text_ranking import Question, read_questions
from headwise.tasks.text_ranking.embeddings import add_checkpoint, stored_embeddings
from headwise.tasks.text_ranking.known import paragraph_questions
from headwise.tasks.text_ranking.negatives import candidates_of
from tiny_checkpoint import DIM, write_checkpoint, write_questions


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "cache"))


def tiny_task(tmp_path: Path, **options: object) -> TextRanking:
    asked = {"length": 4, "train": 12, "held_out": 10, "tokens": 16} | options
    checkpoint = write_checkpoint(tmp_path / "model")
    return TextRanking.from_source(write_questions(tmp_path / "q.jsonl"), checkpoint, **asked)  # type: ignore[arg-type]


def test_the_forms_of_ms_marco_and_ones_own(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{"id": 1, "query": "a", "positive": ["x"]}]))
    offered = [
        {"query": "b", "passages": ["y", "z"], "is_selected": [0, 1]},
        {"query": "nobody knows", "passages": ["y"], "is_selected": [0]},
        {"query": "c", "passages": {"passage_text": ["u", "v"], "is_selected": [1, 0]}},
    ]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, offered)))
    own = [
        {"query": "d", "positives": ["s", "t"], "negatives": ["r"]},
        {"query": "a", "positives": ["again"]},
    ]
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, own)))
    assert sorted(read_questions(tmp_path), key=lambda question: question.query) == [
        Question("a", ("x",)),
        Question("b", ("z",), ("y",)),
        Question("c", ("u",), ("v",)),
        Question("d", ("s", "t"), ("r",)),
    ]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"query": "a", "positives": []}', "query 1 of .* has no positives"),
        ('{"query": "a", "answer": "x"}', "columns query, answer and no positives"),
        ('{"positives": ["x"]}', "no text under 'query'"),
        ('{"query": "a", "positives": "x"}', "'positives' must be a list of texts"),
        ('{"query": "a", "positives": [""]}', "none of them empty"),
        ('{"query": "a", "passages": ["x"], "is_selected": [1, 0]}', "1 passages and not as many"),
        ('{"query": "a", "passages": ["x"], "is_selected": [0]}', "no query with a passage"),
        ('{"query": "a"', "line 1 of .* is not JSON"),
        ("[1, 2]", "no text under 'query'"),
    ],
)
def test_bad_queries_get_a_sentence(tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "q.jsonl").write_text(line)
    with pytest.raises(InputError, match=sentence):
        read_questions(tmp_path / "q.jsonl")


def test_missing_files_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_questions(tmp_path / "nowhere.jsonl")
    with pytest.raises(InputError, match=r"no \.json or \.jsonl"):
        read_questions(tmp_path)
    questions = write_questions(tmp_path / "q.jsonl")
    options = {"length": 4, "train": 12, "held_out": 10}
    (tmp_path / "bare").mkdir()
    with pytest.raises(InputError, match=r"no model\.safetensors"):
        TextRanking.from_source(questions, tmp_path / "bare", **options)  # type: ignore[arg-type]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    for source in (tmp_path / "a.jsonl", tmp_path):
        with pytest.raises(InputError, match="it is a pipe or a device"):
            read_questions(source)


def test_too_few_candidates_or_queries_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="12 passages to train on are too few for 13 candidates"):
        tiny_task(tmp_path, length=13)
    with pytest.raises(InputError, match="10 passages to hold out are too few for 11"):
        tiny_task(tmp_path, length=11)
    with pytest.raises(InputError, match="has 30 queries; 25 to train on and 10 held out"):
        tiny_task(tmp_path, train=25)
    with pytest.raises(InputError, match="the checkpoint has 64 positions"):
        tiny_task(tmp_path, tokens=65)


def bm25_by_hand(query: str, pool: list[str]) -> np.ndarray:
    """The formula of Robertson as Lucene has it, k1 = 1.5, b = 0.75."""
    texts = [text.lower().split() for text in pool]
    mean = np.mean([len(text) for text in texts])
    scores = np.zeros(len(texts))
    for word in query.lower().split():
        having = sum(word in text for text in texts)
        idf = log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for number, text in enumerate(texts):
            count = text.count(word)
            scores[number] += idf * count / (count + 1.5 * (0.25 + 0.75 * len(text) / mean))
    return scores


def test_negatives_are_bm25s_best_and_those_that_came_along(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words = [f"word{n}" for n in range(25)]
    questions = [
        Question(" ".join(rng.choice(words, 3)), (" ".join(rng.choice(words, 8)) + f" end{n}",))
        for n in range(40)
    ]
    questions[3] = replace(questions[3], negatives=("offered with it", "and another one"))
    pool, rows = candidates_of(questions, 6, "train on")
    assert len(pool) == 42
    for question, row in zip(questions, rows, strict=True):
        assert pool[row[0]] == question.positives[0]
        assert len(set(row)) == 6
        scores = bm25_by_hand(question.query, pool)
        given = [pool.index(text) for text in question.negatives]
        others = [n for n in np.argsort(-scores, kind="stable") if n not in (row[0], *given)]
        wanted = (given + others)[:5]
        assert np.allclose(scores[row[1:]], scores[wanted], atol=1e-5)
        assert list(row[1 : 1 + len(given)]) == given


def test_no_held_out_answer_was_seen_in_training(tmp_path: Path) -> None:
    task = tiny_task(tmp_path)
    seen, unseen = (task.prepared(part).passage_tokens for part in (False, True))
    assert not {tuple(row) for row in seen.tolist()} & {tuple(row) for row in unseen.tolist()}
    assert task.prepared(False).candidates.shape[0] == 12


def test_shorter_lists_are_the_beginning_of_longer_ones(tmp_path: Path) -> None:
    task = tiny_task(tmp_path, length=8)
    rows = np.array([2, 0, 2])
    longer, answers = task.examples(rows)
    shorter, _ = replace(task, length=3).examples(rows)
    assert longer.shape == (3, 9, DIM)
    assert torch.equal(longer[:, :4], shorter)
    assert torch.equal(longer[0], longer[2])
    assert answers.tolist() == [0, 0, 0]


def test_pairs_are_embedded_as_the_hubs_bert_does_it(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    task = tiny_task(tmp_path, packing="pairs", length=3)
    frozen = stored_embeddings(task.embeddings)
    config = transformers.BertConfig(
        vocab_size=44, hidden_size=DIM, num_attention_heads=2, max_position_embeddings=64
    )
    bert = transformers.models.bert.modeling_bert.BertEmbeddings(config).eval()
    names = {
        "word_embeddings.weight": "words",
        "position_embeddings.weight": "positions",
        "token_type_embeddings.weight": "segments",
        "LayerNorm.weight": "gain",
        "LayerNorm.bias": "shift",
    }
    bert.load_state_dict({k: frozen.tables[v] for k, v in names.items()}, strict=False)
    found, _ = task.examples(np.array([4]))
    arrays = task.prepared(False)
    for number, place in enumerate(arrays.candidates[4, :3].tolist()):
        query = [t for t in arrays.query_tokens[4].tolist() if t >= 0]
        passage = [t for t in arrays.passage_tokens[place].tolist() if t >= 0]
        ids = [2, *query, 3, *passage, 3]  # [CLS] query [SEP] passage [SEP]
        segments = [0] * (len(query) + 2) + [1] * (len(passage) + 1)
        with torch.no_grad():
            wanted = bert(torch.tensor([ids]), torch.tensor([segments]))[0]
        assert torch.allclose(found[0, number, : len(ids)], wanted, atol=1e-5)
        assert (found[0, number, len(ids) :] == 0).all()


def test_a_long_pair_is_cut_and_still_ends(tmp_path: Path) -> None:
    long = {"query": "w1 " * 30, "positives": ["w2 " * 60]}
    rows = [long, *({"query": f"w{n}", "positives": [f"w{n} x{n}"]} for n in range(3, 9))]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    checkpoint = write_checkpoint(tmp_path / "model")
    options = {"length": 2, "train": 4, "held_out": 3, "tokens": 12, "packing": "pairs"}
    task = TextRanking.from_source(tmp_path / "q.jsonl", checkpoint, **options)  # type: ignore[arg-type]
    for part, count in ((False, 4), (True, 3)):
        pairs, _ = task.examples(np.arange(count), part)
        assert pairs.shape == (count, 2, 12, DIM)
        assert torch.isfinite(pairs).all()


def test_no_checkpoint_of_another_kind(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "model")
    (folder / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(InputError, match="damaged"):
        add_checkpoint(folder)


def test_paragraphs_become_questions() -> None:
    text = "Title\nOne sentence here. " + "A second one, rather long. " * 9 + "And a last."
    (question,) = paragraph_questions(text)
    assert question.query.startswith("A second one")
    assert question.positives[0].startswith("One sentence here.")
    assert question.query not in ("", question.positives[0])


def test_data_that_are_not_here_are_asked_for() -> None:
    task = TextRanking(
        name="MS MARCO",
        questions="0" * 64,
        queries=100,
        embeddings="1" * 64,
        token_dim=384,
        length=8,
        train=50,
        held_out=50,
    )
    with pytest.raises(InputError, match="headwise study fetch text-ranking"):
        task.check()


def test_passages_without_a_word_are_taken_in_their_order() -> None:
    """BM25 has nothing to go by where no word has two letters."""
    asked = [Question(query="a?", positives=(letter,)) for letter in "abcd"]
    _, places = candidates_of(asked, 3, "training")
    assert places.shape == (4, 3)
    assert [row[0] for row in places.tolist()] == [0, 1, 2, 3]
