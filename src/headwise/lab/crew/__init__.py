"""Where jobs run: `run_jobs(jobs) -> Progress | Finished | Failed` is the one seam.

A crew takes jobs (runs that are done together), and gives an iterator of these messages; closing
the iterator stops the work. `local` does them in processes of this machine.
"""

from headwise.lab.crew.local import run_jobs
from headwise.lab.crew.messages import Failed, Finished, Progress, WorkerDied

__all__ = ["Failed", "Finished", "Progress", "WorkerDied", "run_jobs"]
