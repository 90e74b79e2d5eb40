"""A worker does not outlive its parent, however busy it is."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

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
