"""One train: the network's shape decides how it is trained, and a wrong pairing gets a sentence."""

from typing import Any

import pytest
import torch

import headwise.training
from headwise.core.errors import InputError
from headwise.nets import AttentionShape, ClassTokenShape, DecoderShape, EncoderShape
from headwise.tasks import Language, Neighbours, NGram, sum_of_maxima
from headwise.training import Outcome, Streaming, TextTraining, Training, train

LAYER = AttentionShape(heads=2, qk_dim=2, v_dim=2)
CLASS_TOKEN = ClassTokenShape.standard(token_dim=4, heads=1, head_dim=2, width=4)
ENCODER = EncoderShape.paper(token_dim=4, rank=2, ffn=4)
TEXT_DECODER = DecoderShape(vocabulary=256, width=4, layers=(LAYER,), ffn=4, length=8)
REAL_DECODER = DecoderShape(
    vocabulary=0, width=4, layers=(LAYER,), ffn=4, length=8, token_dim=4, outputs=4
)
SAMPLES = Training(steps=2, rate=1e-3, batch=4, samples=16, validation=8, evaluations=1)
STREAM = Streaming(steps=2, rate=1e-3, batch=4, validation=8, evaluations=1)
TEXT = TextTraining(steps=2, rate=1e-3, batch=2, validation=2, evaluations=1)
RETRIEVAL, POINTS = sum_of_maxima(4), Neighbours(dim=4, points=3, form="self")
NGRAM = NGram(length=8, lags=(0, 1), dim=4)
LANGUAGE = Language(name="absent", sha256="0" * 64, tokens=1000, bytes=1000, length=8)


@pytest.mark.parametrize(
    ("task", "shape", "training", "unit"),
    [
        (RETRIEVAL, CLASS_TOKEN, SAMPLES, "share of the target's variance"),
        (POINTS, ENCODER, STREAM, "share of the target's mean square"),
        (NGRAM, REAL_DECODER, STREAM, "share of the target's mean square"),
    ],
)
def test_the_shape_decides_and_the_error_has_a_unit(
    task: Any, shape: Any, training: Any, unit: str
) -> None:
    heard: list[tuple[float, str]] = []
    outcomes = train(task, shape, training, [3, 1], lambda *told: heard.append(told))
    assert [outcome.seed for outcome in outcomes] == [3, 1]
    assert all(isinstance(outcome, Outcome) and outcome.unit == unit for outcome in outcomes)
    assert heard[-1][0] == 1.0
    assert heard[-1][1]


@pytest.mark.parametrize(
    ("task", "shape", "training", "sentence"),
    [
        (RETRIEVAL, CLASS_TOKEN, STREAM, "a ClassTokenShape is trained by Training, not by Stream"),
        (POINTS, ENCODER, TEXT, "an EncoderShape is trained by Streaming, not by TextTraining"),
        (LANGUAGE, TEXT_DECODER, STREAM, "with a vocabulary is trained by TextTraining"),
        (NGRAM, REAL_DECODER, TEXT, "without vocabulary is trained by Streaming"),
        (LANGUAGE, CLASS_TOKEN, SAMPLES, "one target each.*Language is no such task"),
        (POINTS, CLASS_TOKEN, SAMPLES, "one target each.*Neighbours is no such task"),
        (RETRIEVAL, ENCODER, STREAM, "answers for tokens.*Retrieval is no such task"),
        (NGRAM, TEXT_DECODER, TEXT, "learns from a text.*NGram is no such task"),
        (POINTS, LAYER, STREAM, "AttentionShape is no network's shape"),
    ],
)
def test_a_wrong_pairing_gets_a_sentence_before_any_work(
    task: Any, shape: Any, training: Any, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        train(task, shape, training, [0])


def test_the_function_is_not_shadowed_by_a_module() -> None:
    assert callable(headwise.training.train)


def test_numbers_too_small_for_a_float_are_zero_only_while_it_trains() -> None:
    seen = []

    def look(fraction: float, said: str) -> None:
        seen.append(float(torch.full((), 1e-39).mul(0.5)) == 0)

    train(RETRIEVAL, CLASS_TOKEN, SAMPLES, seeds=[0], on_progress=look)
    assert seen
    assert all(seen)
    assert float(torch.full((), 1e-39).mul(0.5)) > 0
