"""Training by epochs: every example once a pass, members as if alone, ties are wrong."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from headwise.core.errors import InputError
from headwise.nets import AttentionShape, RankerShape, VisionShape
from headwise.tasks import Images, TextRanking, four_gram
from headwise.training import Checkpoint, ChoiceTraining, Streaming, train
from headwise.training.choices.data import dropout, rows_of_step
from headwise.training.choices.loop import rank_of
from tiny_checkpoint import DIM, write_checkpoint, write_questions

TRAINING = ChoiceTraining(steps=30, rate=5e-3, batch=8)
LAYER = AttentionShape(heads=2, qk_dim=8, v_dim=8)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def images(tmp_path: Path) -> Images:
    """Reddish and bluish noise: easy to tell apart."""
    rng = np.random.default_rng(0)
    for name, channel in (("red", 0), ("blue", 2)):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for index in range(20):
            pixels = rng.integers(0, 100, (8, 8, 3), np.uint8)
            pixels[..., channel] += 120
            Image.fromarray(pixels).save(tmp_path / "pictures" / name / f"{index}.png")
    return Images.from_folder(tmp_path / "pictures", frame=12, patch=4, size=8)


def vision(task: Images, width: int = 16, **options: float) -> VisionShape:
    return VisionShape(
        token_dim=task.token_dim,
        patches=task.patches,
        outputs=2,
        width=width,
        layers=(LAYER,),
        ffn=32,
        **options,
    )


def test_every_pass_reads_every_example_once() -> None:
    rows = np.concatenate([rows_of_step(10, 4, seed=3, step=step) for step in range(10)])
    for epoch in range(4):
        assert sorted(rows[10 * epoch : 10 * epoch + 10]) == list(range(10))
    assert list(rows[:10]) != list(rows[10:20])
    other = np.concatenate([rows_of_step(10, 4, seed=4, step=step) for step in range(10)])
    assert list(other) != list(rows)


def test_ties_and_nonsense_count_as_wrong() -> None:
    logits = torch.tensor([[[1.0, 0.0, 0.5], [1.0, 1.0, 0.0], [torch.nan, 0.0, 0.0]]])
    answers = torch.zeros(1, 3, dtype=torch.int64)
    assert rank_of(logits, answers).tolist() == [[1, 2, 3]]
    assert rank_of(logits, answers + 2).tolist() == [[2, 3, 3]]


def test_dropout_of_a_member_is_its_own() -> None:
    stream = torch.ones(2, 50, 40)
    both = dropout(0.3, [5, 6], 7, "cpu")(stream)
    alone = dropout(0.3, [6], 7, "cpu")(stream[1:])
    assert torch.equal(both[1:], alone)
    assert not torch.equal(both[0], both[1])
    assert (both == 0).double().mean() == pytest.approx(0.3, abs=0.03)
    assert float(both.max()) == pytest.approx(1 / 0.7)


def test_a_vision_transformer_learns_colours(images: Images) -> None:
    (made,) = train(images, vision(images), TRAINING, [0])
    assert made.error == pytest.approx(1 - made.facts["train_accuracy"])
    assert made.facts["train_accuracy"] > 0.95
    assert made.facts["held_out_accuracy"] > 0.85
    assert made.facts["train_mrr"] >= made.facts["train_accuracy"]


@pytest.mark.parametrize("width", [16, 48])  # stacked, and one after the other
def test_a_member_is_trained_as_if_alone(images: Images, width: int) -> None:
    shape = replace(vision(images, width), dropout=0.1)
    training = replace(TRAINING, steps=6)
    together = train(images, shape, training, [0, 1, 2])
    (alone,) = train(images, shape, training, [1])
    assert all(torch.equal(together[1].params[k], v) for k, v in alone.params.items())
    assert together[1].curve == alone.curve


def test_a_training_that_was_killed_goes_on(images: Images, tmp_path: Path) -> None:
    shape, training = vision(images), replace(TRAINING, steps=12, evaluations=3)
    whole = train(images, shape, training, [0, 1])
    file = Checkpoint(tmp_path / "state.safetensors", seconds=0.0)

    def stop(fraction: float, doing: str) -> None:
        if 0.7 < fraction < 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(images, shape, training, [0, 1], stop, checkpoint=file)
    again = train(images, shape, training, [0, 1], checkpoint=file)
    for first, second in zip(whole, again, strict=True):
        assert first.curve == second.curve
        assert all(torch.equal(first.params[k], v) for k, v in second.params.items())


@pytest.mark.parametrize("packing", ["pairs", "candidates"])
def test_a_ranker_fits_its_queries(tmp_path: Path, packing: str) -> None:
    task = TextRanking.from_source(
        write_questions(tmp_path / "q.jsonl"),
        write_checkpoint(tmp_path / "model"),
        length=4,
        train=16,
        held_out=10,
        tokens=16,
        packing=packing,  # type: ignore[arg-type]
    )
    layers = (LAYER,) * 2
    shape = RankerShape(token_dim=DIM, width=16, layers=layers, ffn=32, packing=packing)  # type: ignore[arg-type]
    (made,) = train(task, shape, replace(TRAINING, steps=60), [0])
    assert made.facts["train_accuracy"] > 0.8
    assert 0 <= made.facts["held_out_accuracy"] <= made.facts["held_out_mrr"] <= 1


def test_what_does_not_fit_is_refused(images: Images) -> None:
    shape = vision(images)
    with pytest.raises(InputError, match="trained by ChoiceTraining"):
        train(images, shape, Streaming(steps=1, rate=0.1), [0])
    with pytest.raises(InputError, match="learns from examples to choose from"):
        train(four_gram(), shape, TRAINING, [0])
    with pytest.raises(InputError, match="9 patches and 2 classes; the network takes 9 and has 3"):
        train(images, replace(shape, outputs=3), TRAINING, [0])
    ranker = RankerShape(token_dim=48, width=16, layers=(LAYER,), ffn=32, packing="pairs")
    with pytest.raises(InputError, match="RankerShape learns from TextRanking"):
        train(images, ranker, TRAINING, [0])
