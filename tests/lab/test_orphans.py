"""A worker does not outlive its parent, however busy it is; one that is kept works again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headwise.lab.crew import Job, Place, keeping_workers, results_of

sys.path.insert(0, str(Path(__file__).parent))  # for workers, which import `poor_study`

PARENT = """
import multiprocessing, sys, time
from headwise.core.workers import end_with_parent

def work():
    end_with_parent()
    print(multiprocessing.current_process().pid, flush=True)
    while True:  # never looks up from its work
        pass

if __name__ == "__main__":
    multiprocessing.get_context("spawn").Process(target=work).start()
    time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_busy_worker_of_a_killed_parent_is_gone(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        worker = Path(f"/proc/{int(parent.stdout.readline())}")
        assert worker.exists()
        parent.send_signal(signal.SIGKILL)
    for _ in range(600):
        if not worker.exists() or worker.joinpath("stat").read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    os.kill(int(worker.name), signal.SIGKILL)
    raise AssertionError("the worker is still there")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_kept_workers_do_the_next_jobs_and_are_gone_afterwards() -> None:
    two = [Job("poor_study:which_process", (), 1.0)] * 2

    def done() -> set[int]:
        return {process for _, process in results_of(two, Place(jobs=2))}

    assert not done() & done()
    with keeping_workers():
        first, second = done(), done()
        assert second <= first
    assert not [process for process in first if Path(f"/proc/{process}/cmdline").exists()]
