"""How many processes or threads work at once."""

import os

from headwise.core.errors import check_whole


def worker_count(jobs: int | None = None) -> int:
    """As many as asked for; by default as many as cores that may be used."""
    if jobs is not None:
        check_whole(jobs, "jobs", 1)
        return jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return cores or 1
