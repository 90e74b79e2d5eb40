"""A real Ray cluster of two nodes on this machine: the same records, and failures cost one run.

`benchmarks/robustness/cluster.py` does the rest: lost nodes, killed tasks, many runs, overhead.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from headwise.core.errors import InputError
from headwise.lab.crew import Job, Place, results_of
from headwise.lab.store import Store
from headwise.studies import run_study

sys.path.insert(0, str(Path(__file__).parent))
import poor_study
from small_cluster import small_cluster

pytest.importorskip("ray", reason="the cluster extra is not installed")

HERE = Path(__file__).parent
STUDY = "poor_study:LUCKLESS"


def environment(folder: Path) -> dict[str, str]:
    """Of the cluster and of who uses it: a task that dies once leaves its mark in the folder."""
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONWARNINGS": "default",
        "POOR_STUDY_FILE": str(folder / "died"),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with small_cluster(2, 1, environment(folder)) as (address, _):
        yield address


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headwise", "study", "run", STUDY, "--json"]
    return subprocess.run(
        [*command, "--store", str(folder / "there.db"), *options],
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )


def contents(store: Path, owner: str) -> dict[str, object]:
    with Store(store) as opened:
        return {
            record.key: (record.specification, record.status, record.result, record.cpu)
            for _, record in opened.records(owner, "quick")
        }


def test_a_cluster_gives_the_same_records_and_outlives_what_kills_its_tasks(
    address: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = run(folder, "--on", f"ray:{address}")
    assert there.returncode == 1, there.stderr  # of six runs one raises; another is killed once
    assert "Traceback" not in there.stderr
    (failed,) = json.loads(there.stdout)["failed"]
    assert failed["tries"] == 3
    assert "nothing can be divided by nothing" in failed["error"]
    assert (folder / "died").exists()
    monkeypatch.setenv("POOR_STUDY_FILE", str(folder / "died"))
    local = run_study(poor_study.LUCKLESS, store=folder / "here.db", jobs=1)
    here = contents(folder / "here.db", local.study.owner)
    assert len(here) == 5
    assert contents(folder / "there.db", f"study/{STUDY}") == here


def test_a_gpu_that_no_node_has_is_refused(address: str, folder: Path) -> None:
    without = run(folder, "--on", f"ray:{address}", "--gpus-per-job", "0.25")
    assert without.returncode == 2
    assert "no node of the cluster has a GPU" in without.stderr


def test_addresses_where_no_cluster_answers_are_refused_at_once() -> None:
    job = [Job("builtins:print", ())]
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))  # taken, and nobody listens
        silent = Place(f"ray:127.0.0.1:{other.getsockname()[1]}")
        with pytest.raises(InputError, match="nobody answers at 127"):
            list(results_of(job, silent))
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as page:
        Thread(target=page.serve_forever, daemon=True).start()
        for kind, name in (("", "the head"), ("ray://", "a client server")):
            with pytest.raises(InputError, match=f"is not {name} of a Ray cluster"):
                list(results_of(job, Place(f"ray:{kind}127.0.0.1:{page.server_port}")))
        page.shutdown()
