"""Where jobs run: `run_jobs(jobs, place)` is the one seam, with two sides.

A crew takes jobs and gives an iterator of messages: `Progress`, `Finished`, `Failed`, and now and
then a `Pulse`. Closing the iterator stops the work. `local` does the jobs in processes of this
machine; `on_ray` as tasks of a Ray cluster.
"""

from headwise.lab.crew._seam import capacity, results_of, run_jobs
from headwise.lab.crew.local import keeping_workers
from headwise.lab.crew.messages import (
    Failed,
    Finished,
    Job,
    JobError,
    Message,
    Progress,
    Pulse,
    WorkerDied,
)
from headwise.lab.crew.place import LOCAL, Place

__all__ = [
    "LOCAL",
    "Failed",
    "Finished",
    "Job",
    "JobError",
    "Message",
    "Place",
    "Progress",
    "Pulse",
    "WorkerDied",
    "capacity",
    "keeping_workers",
    "results_of",
    "run_jobs",
]
