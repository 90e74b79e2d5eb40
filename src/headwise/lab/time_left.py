"""How much of the work's time is over, and how long the rest takes: from what jobs took so far.

Costs are relative and known to be off by some factor from one kind of run to the next, and the
first seconds go into starting processes. So the time left is not read off the share of the cost:
a job that runs is extrapolated from its own progress, one that waits from what jobs of its kind
took, and the sum is shared out over those who work. The rest cannot be shorter than its longest
job. And where nobody has said a word for a while, which jobs whose processes die do not, it will
not be over in less: a silence so far is the best guess of what is left of it.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Sequence

from headwise.lab.crew import Job
from headwise.lab.crew.pace import Pace

_EARLY = 0.02  # of a job: before, its own progress says little


class TimeLeft:
    """What is known of the time of some jobs; `slots` of them run at once."""

    def __init__(self, jobs: Sequence[Job], steps: Sequence[int]) -> None:
        self.slots = 1
        self._jobs, self._steps, self._pace = jobs, steps, Pace()
        self._begun = self._heard = time.monotonic()
        self._running: dict[int, tuple[float, float]] = {}  # job → fraction, seconds
        self._left: dict[str, Counter[float]] = defaultdict(Counter)  # label → costs to come
        for job in jobs:
            self._left[job.label][job.cost] += 1
        self._steps_done = 0.0

    def progressed(self, job: int, fraction: float, seconds: float) -> None:
        """A job is so far, after so many seconds."""
        self._running[job] = (fraction, seconds)
        self._heard = time.monotonic()

    def finished(self, job: int, seconds: float) -> None:
        """A job is done."""
        self._pace.learn(self._jobs[job], seconds)
        self._steps_done += self._steps[job]
        self.ended(job)

    def ended(self, job: int) -> None:
        """A job will not be run any more, done or not."""
        self._running.pop(job, None)
        self._heard = time.monotonic()
        costs = self._left[self._jobs[job].label]
        costs[self._jobs[job].cost] -= 1
        costs += Counter()  # drops zeros

    def seconds(self) -> float | None:
        """Until all is done; None while there is nothing to tell it from."""
        rates = self._rates()
        if not rates:
            return None
        usual = sum(rates.values()) / len(rates)
        waiting = {label: Counter(costs) for label, costs in self._left.items()}
        total = longest = 0.0
        for number, (fraction, seconds) in self._running.items():
            if fraction >= _EARLY:
                job = self._jobs[number]
                waiting[job.label][job.cost] -= 1
                rest = seconds * (1 - fraction) / fraction
                total, longest = total + rest, max(longest, rest)
        for label, costs in waiting.items():
            rate = rates.get(label, usual)
            for cost, count in costs.items():
                if count:
                    total, longest = total + rate * cost * count, max(longest, rate * cost)
        return max(total / self.slots, longest, time.monotonic() - self._heard)

    def _rates(self) -> dict[str, float]:
        """Seconds a unit of cost by label: from finished jobs, else from those that run."""
        rates = {}
        for label in self._left:
            known = self._pace.expected(label, 1.0)
            if known is not None:
                rates[label] = known
        seconds: dict[str, float] = defaultdict(float)
        cost: dict[str, float] = defaultdict(float)
        for number, (fraction, spent) in self._running.items():
            job = self._jobs[number]
            if job.label not in rates and fraction >= _EARLY:
                seconds[job.label] += spent
                cost[job.label] += fraction * job.cost
        return rates | {label: seconds[label] / cost[label] for label in seconds if cost[label]}

    def fraction(self) -> float:
        """The share of the expected time that is over; 0 while nothing is known."""
        left, spent = self.seconds(), time.monotonic() - self._begun
        return 0.0 if left is None else min(1.0, spent / max(spent + left, 1e-9))

    def steps_per_second(self) -> float:
        """Training steps, of all jobs together."""
        running = sum(fraction * self._steps[n] for n, (fraction, _) in self._running.items())
        return (self._steps_done + running) / max(time.monotonic() - self._begun, 1e-9)
