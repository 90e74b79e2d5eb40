"""How long jobs take: seconds a unit of cost, learnt from those that ran."""

from collections import defaultdict

from headwise.lab.crew.messages import Job

_MEMORY = 50  # jobs after which an old one hardly counts


class Pace:
    """Seconds of a job, by what jobs of its label took before.

    A label's seconds a unit of cost are a mean in which early jobs fade: the first ones of a
    process also load libraries and compile kernels.
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)
        self._cost: dict[str, float] = defaultdict(float)

    def learn(self, job: Job, seconds: float) -> None:
        """A job took so long."""
        keep = 1 - 1 / _MEMORY
        self._seconds[job.label] = keep * self._seconds[job.label] + seconds
        self._cost[job.label] = keep * self._cost[job.label] + job.cost

    def expected(self, label: str, cost: float) -> float | None:
        """Seconds for so much cost; None while no job of the label has finished."""
        if self._cost[label] <= 0:
            return None
        return cost * self._seconds[label] / self._cost[label]

    def known(self, label: str) -> bool:
        """Has a job of the label finished?"""
        return self._cost[label] > 0
