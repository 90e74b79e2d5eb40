"""Training decoders on text: the same record alone, in company, and after being killed."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn import functional

from headwise.core.errors import InputError
from headwise.core.spec import to_data
from headwise.nets import AttentionShape, DecoderNet, DecoderShape
from headwise.tasks import Language, NGram, corpus
from headwise.training import Checkpoint, Outcome, Streaming, TextTraining, learning_rates, train
from headwise.training.state import TrainingState
from headwise.training.text import company
from headwise.training.text.company import members_of_a_stack, products
from headwise.training.text.loop import flops_per_token

SHAPE = DecoderShape(
    vocabulary=256,
    width=16,
    layers=(AttentionShape(heads=4, qk_dim=2, v_dim=6), AttentionShape(heads=1, qk_dim=8, v_dim=8)),
    ffn=24,
    length=24,
    positions="rope",
    qk_norm=True,
)
TRAINING = TextTraining(steps=30, rate=1e-2, batch=4, validation=20, evaluations=3)
TIMES = {"tokens_per_second"}


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Language]:
    folder = tmp_path_factory.mktemp("text")
    text = " ".join(f"{n} and {n + 1} make {2 * n + 1}." for n in range(1500))
    (folder / "sums.txt").write_text(text)
    corpus.tokens.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADWISE_CACHE", str(folder / "cache"))
        yield Language.from_file(folder / "sums.txt", 24)


def same(first: Outcome, second: Outcome) -> bool:
    facts = [{k: v for k, v in o.facts.items() if k not in TIMES} for o in (first, second)]
    numbers = [(o.seed, o.error, o.error_last, list(map(tuple, o.curve))) for o in (first, second)]
    return (
        facts[0] == facts[1]
        and numbers[0] == numbers[1]
        and all(torch.equal(first.params[name], second.params[name]) for name in first.params)
    )


def test_a_seed_does_not_depend_on_its_company(task: Language) -> None:
    together = train(task, SHAPE, TRAINING, [0, 1, 2])
    for seed in (2, 0):
        assert same(train(task, SHAPE, TRAINING, [seed])[0], together[seed])
    assert not same(together[0], replace(together[1], seed=0))


@pytest.mark.parametrize("positions", ["learned", "rope"])
def test_members_of_stacks_are_as_if_alone(task: Language, positions: str) -> None:
    """Also in a last stack of two, after one of eight."""
    layers = (AttentionShape(heads=2, qk_dim=8, v_dim=8),) * 2
    shape = replace(SHAPE, width=32, layers=layers, positions=positions, qk_norm=False)
    training = replace(TRAINING, steps=8, evaluations=1)
    assert members_of_a_stack(shape, training.batch, task.length, 10) in (1, 8)
    together = train(task, shape, training, range(10))
    for seeds in ([0], [9], [7, 8, 3]):
        assert all(same(made, together[made.seed]) for made in train(task, shape, training, seeds))


def test_wide_decoders_and_variants_are_computed_one_after_the_other() -> None:
    wide = replace(SHAPE, width=1024, ffn=64)
    assert members_of_a_stack(wide, 16, 24, 4) == 1
    grouped = AttentionShape(heads=4, qk_dim=4, v_dim=4)
    assert (
        members_of_a_stack(replace(SHAPE, layers=(grouped,), attention="grouped:2"), 4, 24, 4) == 1
    )


def test_so_are_all_where_a_library_multiplies_stacks_in_another_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One last bit of one product of the last member tells."""

    def other(rows: Tensor, slopes: Tensor, weight: Tensor) -> list[Tensor]:
        found = products(rows, slopes, weight)
        if len(rows) == 3:
            found[-1][-1, 0, 0] *= 1 + 2**-23
        return found

    monkeypatch.setattr(company, "products", other)
    shape = replace(SHAPE, ffn=40)  # of no other test: what a machine does is asked once
    assert members_of_a_stack(shape, 4, 24, 3) == 1


def test_the_trajectory_is_that_of_a_plain_loop(task: Language) -> None:
    """torch's own module, optimiser, clipping and loss on the same batches."""
    (outcome,) = train(task, SHAPE, TRAINING, [5])
    net = DecoderNet(SHAPE, seed=5)
    adam = torch.optim.AdamW(net.parameters(), betas=(0.9, 0.95), weight_decay=0.0)
    for step, rate in enumerate(learning_rates(TRAINING)):
        tokens = task.batch(4, 5, step)
        loss = functional.cross_entropy(net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adam.param_groups[0]["lr"] = float(rate)
        adam.step()
    for name, value in net.named_parameters():
        torch.testing.assert_close(outcome.params[name], value.detach(), atol=2e-4, rtol=1e-3)
    windows = task.validation(20)
    with torch.no_grad():
        logits = net(windows[:, :-1]).flatten(0, 1)
    held_out = float(functional.cross_entropy(logits, windows[:, 1:].flatten()))
    assert outcome.error == pytest.approx(held_out, abs=1e-3)
    assert outcome.facts["bits_per_byte"] == pytest.approx(held_out / log(2), abs=2e-3)


def test_it_learns_what_can_be_learnt(task: Language) -> None:
    (outcome,) = train(task, SHAPE, replace(TRAINING, steps=200), [0])
    assert outcome.curve[0][1] is not None
    assert outcome.error is not None
    assert outcome.error < 2.2 < log(256)
    assert outcome.error == outcome.error_last == outcome.curve[-1][1]


KILLED = """
import json, torch
from pathlib import Path
from headwise.core.spec import from_data
from headwise.training import Checkpoint, train
torch.set_num_threads(1)
task, shape, training = from_data(json.loads(Path({spec!r}).read_text()))
train(task, shape, training, [3, 4], checkpoint=Checkpoint(Path({file!r}), seconds=0.0))
"""


def test_a_killed_training_goes_on_to_the_same_record(task: Language, tmp_path: Path) -> None:
    training = replace(TRAINING, steps=400, evaluations=7)
    spec, file = tmp_path / "spec.json", tmp_path / "one.safetensors"
    spec.write_text(json.dumps(to_data((task, SHAPE, training))))
    program = KILLED.format(spec=str(spec), file=str(file))
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.5)
        assert process.poll() is None, "it finished before it could be killed"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with safe_open(file, "pt") as saved:
        done = json.loads(saved.metadata()["numbers"])["done"]
    assert 0 < done < 400
    torch.set_num_threads(1)
    resumed = train(task, SHAPE, training, [3, 4], checkpoint=file)
    whole = train(task, SHAPE, training, [3, 4])
    assert all(map(same, resumed, whole))


class Stopped(Exception):
    """Stands for a kill at a known step."""


@pytest.mark.parametrize("step", [1, 9, 10, 11, 20, 29, 30])
def test_it_can_be_stopped_after_any_step(
    task: Language, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Also just before an evaluation (10, 20, 30) and just after one; both kinds of training."""
    save, file = TrainingState.save_if_due, tmp_path / "one.safetensors"

    def save_and_stop(state: TrainingState) -> None:
        save(state)
        if state.done == step:
            raise Stopped

    ngram = NGram(length=16, lags=(0, 1), dim=2)
    net = replace(SHAPE, vocabulary=0, token_dim=2, outputs=2)
    streaming = Streaming(steps=30, rate=1e-2, batch=12, validation=32, evaluations=3)
    for work in ((task, SHAPE, TRAINING, [3, 4]), (ngram, net, streaming, [3, 4])):
        with monkeypatch.context() as patch:
            patch.setattr(TrainingState, "save_if_due", save_and_stop)
            with pytest.raises(Stopped):
                train(*work, checkpoint=Checkpoint(file, seconds=0.0))
        assert all(map(same, train(*work, checkpoint=file), train(*work)))


def test_a_checkpoint_of_other_work_is_not_taken_and_a_damaged_one_is_named(
    task: Language, tmp_path: Path
) -> None:
    file = tmp_path / "one.safetensors"
    train(task, SHAPE, TRAINING, [0], checkpoint=Checkpoint(file, seconds=0.0))
    assert file.exists()
    (other,) = train(task, SHAPE, TRAINING, [1], checkpoint=file)
    assert same(other, train(task, SHAPE, TRAINING, [1])[0])
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(InputError, match="delete it to start again"):
        train(task, SHAPE, TRAINING, [0], checkpoint=file)


def test_operations_are_counted_as_the_formula_says() -> None:
    """Three products of every weight matrix (forward, two backward), and attention's blocks."""
    weights = sum(
        np.prod(size)
        for name, size in SHAPE.parameter_shapes().items()
        if len(size) == 2 and "norm" not in name
    )
    scores = sum(layer.heads * 24 * (layer.qk_dim + layer.v_dim) for layer in SHAPE.layers)
    assert flops_per_token(SHAPE, 24) == pytest.approx(6 * (weights + scores), rel=0.02)


@pytest.mark.parametrize(
    ("layer", "positions"),
    [
        (AttentionShape(heads=4, qk_dim=4, v_dim=4), "learned"),
        (AttentionShape(heads=3, qk_dim=2, v_dim=5), "rope"),
    ],
)
def test_decoders_train_on_real_tokens_too(layer: AttentionShape, positions: str) -> None:
    """In company or alone, to the last bit; and a 2-gram is learnt."""
    task = NGram(length=16, lags=(0, 1), dim=2)
    shape = DecoderShape(
        vocabulary=0, width=16, layers=(layer,), ffn=16, length=16, token_dim=2, outputs=2,
        positions=positions, qk_norm=True,  # type: ignore[arg-type]
    )  # fmt: skip
    training = Streaming(steps=60, rate=1e-2, batch=16, validation=64, evaluations=2)
    together = train(task, shape, training, [0, 1, 2])
    (alone,) = train(task, shape, training, [2])
    assert same(alone, together[2])
    assert together[0].error is not None
    assert together[0].error < 0.7


BAD = [
    ({"vocabulary": 100}, "the decoder one of 100"),
    ({"length": 16}, "takes up to 16"),
]


@pytest.mark.parametrize(("change", "sentence"), BAD)
def test_a_decoder_must_fit_the_text(task: Language, change, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=sentence):
        train(task, replace(SHAPE, **change), TRAINING, [0])
    with pytest.raises(InputError, match="seeds are distinct"):
        train(task, SHAPE, TRAINING, [1, 1])
