"""How many processes or threads work at once."""

import os

from headwise.core.errors import require


def worker_count(jobs: int | None = None) -> int:
    """As many as asked for; by default as many as cores that may be used."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    workers = (cores or 1) if jobs is None else jobs
    require(workers >= 1, f"jobs is {workers}; at least one worker is needed")
    return workers
