"""Who does the work: packs, second tries, what a failure costs, and how long is left."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.core.errors import InputError
from headwise.lab.conduct import RunsFailed
from headwise.lab.crew import (
    Failed,
    Finished,
    Job,
    Place,
    WorkerDied,
    results_of,
)
from headwise.lab.crew.cargo import unpack_sources
from headwise.lab.crew.node import Luggage, check_versions, installed, run_pack
from headwise.lab.crew.queue import MOST_IN_A_PACK, JobQueue
from headwise.lab.store import Store
from headwise.lab.time_left import TimeLeft
from headwise.studies import run_study, status

sys.path.insert(0, str(Path(__file__).parent))
import poor_study
import random_study

CRASH = WorkerDied("gone")


def jobs(*costs: float, label: str = "") -> list[Job]:
    return [Job("headwise.core.progress:quiet", (), cost, label) for cost in costs]


@given(
    costs=st.lists(st.floats(0.1, 100), min_size=1, max_size=60),
    fate=st.randoms(use_true_random=False),
    slots=st.integers(1, 8),
)
def test_whatever_fails_every_job_is_finished_or_failed_once(
    costs: list[float], fate: object, slots: int
) -> None:
    queue, ends, flying = JobQueue(jobs(*costs), pack_seconds=20.0), [], []
    for _ in range(20_000):
        while pack := queue.take(slots, len(flying)):
            flying.append(pack)
            if len(flying) >= 2 * slots:
                break
        if not flying:
            break
        pack = flying.pop(fate.randrange(len(flying)))  # type: ignore[attr-defined]
        what = fate.random()  # type: ignore[attr-defined]
        if what < 0.3:
            ends += [failed.job for failed in queue.failed(pack, CRASH)]
        elif what < 0.4:
            ends += [failed.job for failed in queue.failed(pack, CRASH, lost=True)]
        else:
            for number in pack:
                queue.finished(Finished(number, None, costs[number]))
                ends.append(number)
    assert sorted(ends) == list(range(len(costs)))
    assert not queue


def test_small_jobs_are_packed_once_their_time_is_known_and_large_ones_are_not() -> None:
    small = JobQueue(jobs(*[1.0] * 10_000), pack_seconds=20.0)
    (first,) = small.take(2, 0)
    small.finished(Finished(first, None, 0.1))
    assert len(small.take(2, 0)) in (199, 200)  # of a tenth of a second each
    large = JobQueue(jobs(*[1.0] * 100), pack_seconds=20.0)
    large.finished(Finished(large.take(2, 0)[0], None, 30.0))
    assert len(large.take(2, 0)) == 1
    trivial = JobQueue(jobs(*[1.0] * 100_000), pack_seconds=20.0)
    trivial.finished(Finished(trivial.take(2, 0)[0], None, 1e-5))
    assert len(trivial.take(2, 0)) <= MOST_IN_A_PACK


def test_a_job_is_tried_in_company_then_by_itself_then_alone() -> None:
    queue = JobQueue(jobs(*[1.0] * 50), pack_seconds=20.0)
    queue.finished(Finished(queue.take(1, 0)[0], None, 1.0))
    pack = queue.take(1, 0)
    assert len(pack) > 2
    assert queue.failed(pack, CRASH) == []
    again = [queue.take(1, 1) for _ in pack]
    assert again == [[number] for number in pack]
    assert queue.failed(again[0], CRASH) == []
    while rest := queue.take(1, 1):  # the others come first, and it waits for an empty cluster
        assert again[0][0] not in rest
    assert queue.take(1, 0) == again[0]
    assert queue.failed(again[0], CRASH) == [Failed(again[0][0], CRASH, 3)]
    assert not queue


def test_refused_input_is_not_tried_twice_and_a_lost_machine_is_not_the_jobs_fault() -> None:
    queue = JobQueue(jobs(1.0), pack_seconds=20.0)
    for _ in range(10):
        assert queue.failed(queue.take(1, 0), CRASH, lost=True) == []
    (refused,) = queue.failed(queue.take(1, 0), InputError("no"))
    assert isinstance(refused.error, InputError)


def test_the_time_left_is_that_of_jobs_like_those_that_are_left() -> None:
    """Costs of two kinds differ by a factor of a thousand in what they mean."""
    work = [*jobs(*[1000.0] * 10, label="slow"), *jobs(*[1000.0] * 10, label="fast")]
    left = TimeLeft(work, [0] * 20)
    left.slots = 2
    assert left.seconds() is None
    left.progressed(0, 0.5, 10.0)
    left.progressed(10, 0.5, 0.01)
    assert left.seconds() == pytest.approx((9.5 * 20 + 9.5 * 0.02) / 2)
    for number in range(9):
        left.finished(number, 20.0)
    left.progressed(9, 0.25, 5.0)
    assert left.seconds() == pytest.approx(15.0)  # the last job: nobody can help with it
    left.finished(9, 20.0)
    assert left.seconds() == pytest.approx(9.5 * 0.02 / 2)


def test_a_long_silence_is_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three quick jobs are done; the process of the fourth dies again and again."""
    clock = [100.0]
    monkeypatch.setattr("headwise.lab.time_left.time.monotonic", lambda: clock[0])
    left = TimeLeft(jobs(*[1.0] * 4), [0] * 4)
    clock[0] += 30.0  # until the first worker is up
    for number in range(3):
        left.finished(number, 0.001)
    assert left.seconds() == pytest.approx(0.001)
    clock[0] += 60.0
    assert left.seconds() == pytest.approx(60.0)
    assert left.fraction() == pytest.approx(90 / 150)


@pytest.mark.parametrize(
    "on", ["", "raj", "ray:", "ray:host", "ray:http://a:1", "ray:auto:", "Ray"]
)
def test_places_that_are_none_get_a_sentence(on: str) -> None:
    with pytest.raises(InputError, match=r"on is local, ray \(started here\), or a cluster"):
        Place(on)


@pytest.mark.parametrize(
    ("on", "address"),
    [
        ("local", None),
        ("ray", None),
        ("ray:auto", "auto"),
        ("ray:10.0.0.1:6379", "10.0.0.1:6379"),
        ("ray:ray://head:10001", "ray://head:10001"),
    ],
)
def test_places(on: str, address: str | None) -> None:
    assert Place(on).address == address


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"jobs": 0}, "jobs is 0; it is a whole number, at least 1"),
        ({"jobs": "two"}, "jobs is 'two'; it is a whole number"),
        ({"on": None}, "cannot run on None; on is local, ray"),
        ({"on": "ray", "gpus_per_job": "half"}, "gpus_per_job is half; it is a share of a GPU"),
        ({"on": "ray", "gpus_per_job": float("nan")}, "a share of a GPU"),
        ({"on": "ray", "gpus_per_job": -1.0}, "a share of a GPU"),
        ({"on": "ray", "gpus_per_job": 1.5}, "a whole number"),
        ({"gpus_per_job": 0.5}, "leave --gpus-per-job out"),
        ({"device": "gpu"}, "there is no device 'gpu'; devices are auto, cpu, cuda, mps"),
    ],
)
def test_other_nonsense_gets_a_sentence(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Place(**options)  # type: ignore[arg-type]


def test_a_device_that_is_not_here_is_refused_before_a_process_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="torch finds no cuda device here"):
        run_study(poor_study.POOR, store=tmp_path / "a.db", device="cuda")


def test_without_ray_on_ray_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'headwise\[cluster\]'"):
        list(results_of(jobs(1.0), Place("ray")))


def test_ray_is_loaded_by_nobody_who_did_not_ask() -> None:
    code = "import sys, headwise.lab.conduct; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_node_of_other_versions_is_refused_by_name() -> None:
    ours = installed()
    check_versions(ours, dict(ours), "a")
    theirs = {**ours, "torch": "1.0"}
    theirs.pop("numba")
    with pytest.raises(InputError, match=r"node b .* torch 1\.0 \(here .*numba missing"):
        check_versions(ours, theirs, "b")
    with pytest.raises(InputError, match="has other versions"):
        run_pack([], Luggage({**ours, "numpy": "0"}, "cpu"), "c", bytes, print)


def test_a_node_gets_the_texts_and_modules_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path])
    sources = {"sent_along": b"def answer(report, folder):\n    return 42\n"}
    luggage = Luggage(installed(), "cpu", ["sent_along"], sources, {"texts/a.npy": "reference"})
    job = Job("sent_along:answer", ())
    done = run_pack([(7, job)], luggage, "here", lambda what: str(what).encode(), print)
    assert [(each.job, each.result) for each in done] == [(7, 42)]  # type: ignore[union-attr]
    assert (tmp_path / "texts/a.npy").read_bytes() == b"reference"
    unpack_sources(sources)  # it is there by now
    unreachable = Luggage(installed(), "cpu", ["not_sent"])
    with pytest.raises(InputError, match="a node cannot import"):
        run_pack([(0, job)], unreachable, "here", bytes, print)


def test_checkpoints_are_for_nodes_that_see_the_folder(tmp_path: Path) -> None:
    luggage = Luggage({}, "cpu", folder=tmp_path)
    assert luggage.shared is None
    (tmp_path / luggage.token).touch()
    assert luggage.shared == tmp_path


def test_failures_cost_their_runs_and_are_tried_again(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    result = run_study(poor_study.POOR, store=store, jobs=2)
    assert len(result.table) == 4
    assert {failure.tries for failure in result.failures} == {3}
    errors = sorted(failure.error for failure in result.failures)
    assert errors[0] == "ZeroDivisionError: nothing can be divided by nothing"
    assert "exit code -9" in errors[1]
    assert "2 of 6 runs failed" in str(result)
    assert [row["failed"] for row in status(store)] == [2]
    assert result.to_data()["failed"][0]["tries"] == 3
    page = result.report(tmp_path / "out").read_text()
    assert "Failed runs" in page
    assert "nothing can be divided by nothing" in page
    with Store(store) as opened:
        assert len(opened.keys()) == 4  # the failed are missing, so that a rerun tries them


def test_all_failed_refused_and_fail_fast(tmp_path: Path) -> None:
    with pytest.raises(RunsFailed, match="all 1 runs failed: ZeroDivisionError"):
        run_study(poor_study.HOPELESS, store=tmp_path / "a.db", jobs=1)
    with pytest.raises(InputError, match="this is no number"):
        run_study(poor_study.REFUSED, store=tmp_path / "b.db", jobs=1)
    with pytest.raises(RunsFailed, match="a run failed"):
        run_study(poor_study.POOR, store=tmp_path / "c.db", jobs=1, fail_fast=True)


def test_a_run_that_fails_once_is_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POOR_STUDY_FILE", str(tmp_path / "tried"))
    result = run_study(poor_study.RECOVERING, store=tmp_path / "a.db", jobs=2)
    assert len(result.table) == 5
    assert result.failures == ()


def test_the_records_of_a_random_study_are_those_known_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 41 runs one dies once, two raise; `benchmarks/robustness/cluster_random.py` has more."""
    monkeypatch.setenv(random_study.MARKS, str(tmp_path))
    study, well, failing = random_study.draw(3)
    result = run_study(study, store=tmp_path / "a.db", jobs=2)
    with Store(tmp_path / "a.db") as opened:
        found = {r.key: r.result["error"] for _, r in opened.records(study.owner, "quick")}
        failed = {r.key for _, r in opened.records(study.owner, "quick", failed=True)}
    assert (found, failed) == (well, failing)
    assert len(result.failures) == 2


def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    """Its workers import it and would begin anew; none prints a traceback."""
    script = tmp_path / "careless.py"
    script.write_text(
        "import headwise\n"
        f"headwise.run_study('head-count', tier='quick', store={str(tmp_path / 's.db')!r}, jobs=1)"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert "if __name__ == '__main__':" in done.stderr.splitlines()[-1]
