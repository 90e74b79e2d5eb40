"""A real Ray cluster of two nodes on this machine: the same records, and failures cost one run.

`benchmarks/cluster.py` does the rest: lost nodes, killed tasks and drivers, many runs, overhead.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwise.lab.store import Store

pytest.importorskip("ray", reason="the cluster extra is not installed")

HERE = Path(__file__).parent


def environment() -> dict[str, str]:
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": "default"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, str(HERE / "small_cluster.py"), "2", "1"],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as cluster:
        assert cluster.stdout is not None
        assert cluster.stdin is not None
        yield cluster.stdout.readline().strip()
        cluster.stdin.close()
        cluster.wait(60)


def run(store: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headwise", "study", "run", "poor_study:POOR", "--json"]
    return subprocess.run(
        [*command, "--store", str(store), *options],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def contents(store: Path) -> dict[str, object]:
    with Store(store) as opened:
        return {
            record.key: (record.specification, record.status, record.result, record.cpu)
            for _, record in opened.records("study/poor_study:POOR", "quick")
        }


def test_a_cluster_gives_the_same_records_and_outlives_what_kills_its_tasks(
    address: str, tmp_path: Path
) -> None:
    there = run(tmp_path / "there.db", "--on", f"ray:{address}")
    assert there.returncode == 1, there.stderr  # of six runs one raises, and one dies
    assert "Traceback" not in there.stderr
    failed = {failure["setting"]: failure for failure in json.loads(there.stdout)["failed"]}
    assert len(failed) == 2
    assert {failure["tries"] for failure in failed.values()} == {3}
    assert "nothing can be divided by nothing" in there.stdout
    here = run(tmp_path / "here.db", "--jobs", "2")
    assert here.returncode == 1, here.stderr
    assert len(contents(tmp_path / "here.db")) == 4
    assert contents(tmp_path / "there.db") == contents(tmp_path / "here.db")


def test_a_cluster_that_is_not_there_and_a_gpu_that_is_not_there(
    address: str, tmp_path: Path
) -> None:
    away = run(tmp_path / "a.db", "--on", "ray:127.0.0.1:1")
    assert away.returncode == 2
    assert "nobody answers at 127.0.0.1:1" in away.stderr
    without = run(tmp_path / "a.db", "--on", f"ray:{address}", "--gpus-per-job", "0.25")
    assert without.returncode == 2
    assert "no node of the cluster has a GPU" in without.stderr
