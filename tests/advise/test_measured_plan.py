"""Plans that are measured: interrupted and resumed, on text and on tokens, from tiny trials."""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from headwise.advise.plan.ask import _task
from headwise.advise.plan.candidates import HALF, SOLVED, candidates
from headwise.advise.plan.default import DEFAULT
from headwise.advise.plan.measured import measured_plan
from headwise.advise.plan.race import Rungs
from headwise.advise.plan.request import PlanRequest
from headwise.advise.plan.scale import choose_scale
from headwise.allocation import (
    SCHEDULES,
    AllocationPlan,
    attention_parameters,
    read_allocation,
    write_allocation,
)
from headwise.core.errors import InputError
from headwise.core.progress import Deadline
from headwise.lab.store import Store
from headwise.nets.decoder import DecoderShape
from headwise.tasks import Language, TokenArray

FEW = (Rungs(seeds=(1,), enter=(1000,), fresh=2),)
REQUEST = PlanRequest(layers=2, width=32, length=16, budget=8 * 32 * 32, seconds=120, rungs=FEW)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is; the tests of what happens when time is over say when it is."""
    monkeypatch.setattr(Deadline, "after", lambda seconds: Deadline())


@pytest.fixture
def text(tmp_path: Path) -> Path:
    words = ["the", "head", "looks", "back", "at", "every", "token", "before", "it"]
    drawn = np.random.default_rng(0).choice(words, 4000)
    path = tmp_path / "words.txt"
    path.write_text(" ".join(drawn))
    return path


class Stop(Exception):
    """What the user's Ctrl-C does."""


@pytest.mark.parametrize("rows", [0, 1, 30])
def test_the_end_that_the_study_scores_decides_nothing(rows: int, tmp_path: Path) -> None:
    path = tmp_path / "tokens.npz"
    ids = np.arange(3000).reshape((rows, -1) if rows else -1)
    np.savez(path, tokens=ids)
    planned = _task(None, path)
    assert planned is not None
    task, scored = planned(16), TokenArray.from_file(path, 16)
    seen = [task.validation(), *(task.batch(8, seed=0, step=step) for step in range(50))]
    assert max(int(windows.max()) for windows in seen) < int(scored.validation().min())


def test_an_interrupted_plan_goes_on_and_its_decoder_can_be_built(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwise.advise.plan.scale._MOST_STEPS", 60)
    monkeypatch.setattr("headwise.advise.plan.scale._TOKENS_A_STEP", 128)
    store = tmp_path / "plan.db"

    def stop_in_the_first_round(share: float, doing: str) -> None:
        if doing.startswith("round") and share > 0.3:
            raise Stop

    def task_at(length: int) -> Language:
        return Language.from_file(text, length)

    with pytest.raises(Stop):
        measured_plan(REQUEST, task_at, store, stop_in_the_first_round)
    with Store(store) as results:
        kept = results.keys()
    assert len(kept) > 20
    plan = measured_plan(REQUEST, task_at, store)
    with Store(store) as results:
        assert kept < results.keys()
    assert measured_plan(REQUEST, task_at, store) == plan  # from the store alone

    names = {each.name for each in plan.candidates}
    assert names == {*SCHEDULES, SOLVED, HALF}
    assert plan.schedule in names
    assert 0.9 * plan.budget < plan.parameters <= plan.budget
    assert plan.against_uniform is not None
    assert plan.against_uniform.low <= plan.against_uniform.difference <= plan.against_uniform.high
    assert "60 steps" in plan.checked
    decoder = DecoderShape(
        vocabulary=256, width=plan.width, layers=plan.layers, ffn=64, length=plan.length
    )
    assert decoder.params()["attention"] == plan.parameters
    write_allocation(plan, tmp_path / "plan.json")
    assert read_allocation(tmp_path / "plan.json") == plan


def test_a_plan_whose_time_is_over_answers_with_what_is_known(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Deadline, "after", lambda seconds: Deadline(0.0))
    store = tmp_path / "plan.db"
    plan = measured_plan(REQUEST, lambda length: Language.from_file(text, length), store)
    assert (plan.schedule, plan.checked, plan.against_uniform) == (DEFAULT, "", None)
    assert "Unmeasured" in plan.reasons[-1]
    assert "goes on from there" in plan.reasons[-1]
    assert len(set(plan.layers)) == 1


class UntilKept(Deadline):
    """The time is over when the store holds so many runs, however fast the machine is."""

    store: ClassVar[Path]
    runs: ClassVar[int]

    @property
    def left(self) -> float:
        with Store(self.store) as results:
            return float(max(0, self.runs - len(results.keys())))


def test_each_command_knows_more_than_the_one_before(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwise.advise.plan.scale._FEWEST_STEPS", 8)
    monkeypatch.setattr("headwise.advise.plan.scale._MOST_STEPS", 8)
    monkeypatch.setattr("headwise.advise.plan.scale._TOKENS_A_STEP", 128)
    monkeypatch.setattr(Deadline, "after", lambda seconds: UntilKept())
    request = replace(REQUEST, seconds=0.5)  # the quickest trials take longer: they are begun
    made = []
    for UntilKept.runs in (1, 3, 10, 999):
        UntilKept.store = tmp_path / "plan.db"
        made.append(measured_plan(request, lambda n: Language.from_file(text, n), UntilKept.store))
    assert [plan.in_time for plan in made] == [False, False, False, True]
    compared = [sum(each.seeds > 0 for each in plan.candidates) for plan in made]
    assert compared == sorted(compared)
    assert compared[0] >= 1
    assert compared[1] > 1  # uniform and another, before any decoder was cut
    assert "worth no more than the theory's default" in made[0].reasons[0] or compared[0] > 1
    assert "on one seed, which tells nothing" in made[1].reasons[0]
    assert "goes on from there" in made[2].reasons[-1]
    assert {each.name for each in made[3].candidates} == {*SCHEDULES, SOLVED, HALF}
    UntilKept.store = tmp_path / "another.db"
    whole = measured_plan(request, lambda n: Language.from_file(text, n), UntilKept.store)
    assert whole == made[3]


def test_candidates_have_the_plans_heads_at_every_scale() -> None:
    budget = 4 * 4 * 256**2
    request = PlanRequest(
        layers=4, width=256, length=64, budget=budget, intrinsic_dim=9, seconds=200
    )
    scale = choose_scale(request, vocabulary=256, candidates=9, others=4)
    assert scale.factor > 1
    solved = candidates(request, scale, None)["early-heavy"]
    small, full = candidates(request, scale, solved), candidates(request, request, solved)
    assert list(small) == list(full) == [*SCHEDULES, DEFAULT, SOLVED, HALF]
    for name, layers in full.items():
        assert [each.heads for each in small[name]] == [each.heads for each in layers], name
        assert 0.9 * request.budget < attention_parameters(256, layers) <= request.budget
        spent = attention_parameters(scale.width, small[name])
        assert 0.9 * scale.budget < spent <= scale.budget
    assert full[DEFAULT][0].heads == 9
    assert [each.qk_dim for each in full[SOLVED]] == pytest.approx(
        [each.qk_dim for each in full["early-heavy"]], abs=4
    )


def test_impossible_requests_are_refused_before_anything_is_trained(
    text: Path, tmp_path: Path
) -> None:
    store = tmp_path / "plan.db"

    def make(**changes: int | float) -> AllocationPlan:
        request = replace(REQUEST, **changes)  # type: ignore[arg-type]
        return measured_plan(request, lambda length: Language.from_file(text, length), store)

    with pytest.raises(InputError, match="smallest possible one, 1,024"):
        make(budget=1000)
    with pytest.raises(InputError, match="too few for a length of 5000"):
        make(length=5000)
    with pytest.raises(InputError, match="8 heads of dimension 4 in the first"):
        make(budget=2048, intrinsic_dim=8)
    assert not store.exists()


def test_token_arrays_are_split_without_overlap(tmp_path: Path) -> None:
    path = tmp_path / "tokens.npz"
    np.savez(path, tokens=np.arange(1000) % 500, other=np.zeros(3))
    stream = TokenArray.from_file(path, 16)
    assert (stream.rows, stream.columns, stream.vocabulary) == (1, 1000, 500)
    np.savez(path, np.arange(40 * 20).reshape(40, 20))
    rows = TokenArray.from_file(path, 16)
    windows = rows.batch(500, 0, 0)
    assert windows.shape == (500, 17)
    assert (windows[:, -1] - windows[:, 0] == 16).all()  # never across two sequences
    assert (windows // 20 == windows[:, :1] // 20).all()
    assert int(windows.max()) < 36 * 20 <= int(rows.validation().min())
    np.savez(path, np.arange(1000))
    stream = TokenArray.from_file(path, 16)
    assert int(stream.batch(500, 0, 0).max()) < 900 == int(stream.validation().min())
    assert len(stream.validation(3)) == 3


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"x": np.zeros((5, 3))}, "one array of token numbers.*x float64.*headwise probe"),
        ({"x": np.zeros(50, int), "y": np.zeros(50, int)}, "called 'tokens' if there are several"),
        ({"tokens": np.zeros(50, int) - 1}, "0 or more"),
        ({"tokens": np.arange(50)}, "takes 17 tokens in a row, and tokens has 5 in its held-out"),
        ({"tokens": np.zeros((50, 10), int)}, "has 10 in a sequence"),
        ({"tokens": np.zeros((5, 40), int)}, "5 sequences; 10 or more"),
        ({"tokens": np.full(999, 1 << 30)}, "that is no token"),
    ],
)
def test_arrays_that_are_no_tokens_get_a_sentence(
    arrays: dict[str, np.ndarray], sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "tokens.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=sentence):
        TokenArray.from_file(path, 16)


def test_a_file_that_is_no_npz_gets_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "tokens.npz"
    path.write_bytes(b"not an archive")
    with pytest.raises(InputError, match=r"cannot be read as an \.npz"):
        TokenArray.from_file(path, 16)
    with pytest.raises(InputError, match=r"cannot read .*none\.npz: No such file"):
        TokenArray.from_file(tmp_path / "none.npz", 16)
