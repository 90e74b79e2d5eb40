"""Conducting a study: same results whatever happens to the process that runs it."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny_study

from headwise.lab.conduct import StudyState, conduct
from headwise.lab.crew import Place
from headwise.lab.store import Store

HERE = Path(__file__).parent
STUDY = "tiny_study:TINY"
LONG = "tiny_study:LONG"  # the same and more, which is never over when it is stopped
OWNER = f"study/{STUDY}"
KILLS = int(os.environ.get("HEADWISE_KILLS", "3"))


def command(store: Path, *options: str, study: str = STUDY) -> list[str]:
    base = [sys.executable, "-m", "headwise", "study", "run", study, "--store", str(store)]
    return [*base, *options]


def environment() -> dict[str, str]:
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def finish(store: Path, *options: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(store, *options), env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def contents(store: Path, study: str = STUDY) -> dict[str, object]:
    """Everything that must not depend on how the study was run."""
    with Store(store) as opened:
        return {
            record.key: (
                record.specification,
                record.seed,
                record.status,
                record.result,
                record.cpu,
            )
            for _, record in opened.records(f"study/{study}", "quick")
        }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    store = tmp_path_factory.mktemp("undisturbed") / "a.db"
    finish(store, "--jobs", "2")
    found = contents(store)
    assert len(found) == 18
    return found


def test_the_number_of_workers_changes_nothing(
    undisturbed: dict[str, object], tmp_path: Path
) -> None:
    finish(tmp_path / "a.db", "--jobs", "1")
    assert contents(tmp_path / "a.db") == undisturbed


def test_the_folder_of_checkpoints_stays_while_a_worker_may_write_into_it(tmp_path: Path) -> None:
    folder, stays = Path(f"{tmp_path / 'a.db'}.unfinished"), []

    def on_state(state: StudyState) -> None:
        if not state.complete:
            stays.append(folder.exists())
            folder.mkdir(exist_ok=True)

    with Store(tmp_path / "a.db", write=True) as store:
        conduct(store, OWNER, "quick", tiny_study.parts(), Place(jobs=1), on_state)
    assert len(stays) > 1
    assert all(stays[1:])
    assert not folder.exists()


def test_killed_at_random_moments_and_rerun_the_records_are_the_same(
    undisturbed: dict[str, object], tmp_path: Path
) -> None:
    store, moments = tmp_path / "a.db", random.Random(0)
    for _ in range(KILLS):
        process = subprocess.Popen(
            command(store, "--jobs", "2"),
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(moments.uniform(1, 9))
        process.kill()
        process.wait()
    finish(store, "--jobs", "2")
    assert contents(store) == undisturbed


def test_a_finished_study_runs_nothing_twice(
    undisturbed: dict[str, object], tmp_path: Path
) -> None:
    store = tmp_path / "a.db"
    finish(store)
    stamps = {record.finished for _, record in Store(store).records(OWNER, "quick")}
    time.sleep(1.1)
    finish(store)
    assert {record.finished for _, record in Store(store).records(OWNER, "quick")} == stamps


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(
    undisturbed: dict[str, object], tmp_path: Path
) -> None:
    store = tmp_path / "a.db"
    process = subprocess.Popen(
        command(store, "--jobs", "1", study=LONG),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # CI may ignore it
    )
    wait_for_a_record(store, LONG)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Stopped." in errors
    assert "Traceback" not in errors
    assert len(contents(store, LONG)) > 0
    assert no_process_is_left(process.pid)
    finish(store)
    assert contents(store) == undisturbed


def test_a_second_run_on_the_same_store_is_refused(tmp_path: Path) -> None:
    with Store(tmp_path / "a.db", write=True):
        done = subprocess.run(
            command(tmp_path / "a.db"), env=environment(), capture_output=True, text=True
        )
    assert done.returncode == 2
    assert "another run is writing" in done.stderr


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds workers in /proc")
def test_a_worker_that_dies_costs_its_job_and_nothing_else(
    undisturbed: dict[str, object], tmp_path: Path
) -> None:
    store = tmp_path / "a.db"
    process = subprocess.Popen(
        command(store, "--jobs", "1"), env=environment(), stderr=subprocess.PIPE, text=True
    )
    wait_for_a_record(store)
    for worker in workers_of(process.pid):
        os.kill(worker, signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert contents(store) == undisturbed


def workers_of(parent: int) -> list[int]:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [
        int(child)
        for child in children
        if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()
    ]


def no_process_is_left(group: int) -> bool:
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def wait_for_a_record(store: Path, study: str = STUDY) -> None:
    for _ in range(1800):
        if store.exists() and len(contents_or_nothing(store, study)) > 0:
            return
        time.sleep(0.1)
    raise AssertionError("no run finished within three minutes")


def contents_or_nothing(store: Path, study: str) -> dict[str, object]:
    try:
        return contents(store, study)
    except Exception:  # the file may be half a second old
        return {}
