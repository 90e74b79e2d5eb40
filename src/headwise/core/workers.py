"""How many processes or threads work at once, and that none outlives its parent."""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time

from headwise.core.errors import check_whole

UNGUARDED = 78  # the exit code of a worker whose script would start the work again
_PR_SET_PDEATHSIG = 1


def worker_count(jobs: int | None = None) -> int:
    """As many as asked for; by default as many as cores that may be used."""
    if jobs is not None:
        check_whole(jobs, "jobs", 1)
        return jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return cores or 1


def end_with_parent() -> None:
    """Called by a worker process: whatever happens to its parent, the worker is soon gone, too.

    A killed parent cannot stop its workers, and one that computes for a minute without a word
    would not notice. Linux ends it at once; elsewhere, or if that fails, a thread looks twice a
    second.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_end_without, args=(parent.pid,), daemon=True).start()


def leave_if_imported() -> None:
    """Called before work is shared out: not while a worker imports the script that shares it out.

    A worker process imports its parent's script. One that does not keep its calls below
    `if __name__ == "__main__":` would begin anew in every worker; the worker ends instead, with a
    code that its parent knows.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        os._exit(UNGUARDED)


def _end_without(parent: int | None) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
