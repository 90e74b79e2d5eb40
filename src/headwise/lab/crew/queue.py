"""What is to be done next: packs of jobs, and second and third tries of those that failed.

Jobs whose time is known are packed together until a pack takes some seconds, so that a million
small jobs are neither a million messages nor a million tasks. Towards the end packs shrink, so that
no worker waits for another's pack. A job whose time is not known yet is a pack of its own.

A job that fails is tried again by itself, and the last time when nothing else runs: a job that
needs a machine's memory for itself gets it.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Sequence

from headwise.core.errors import InputError
from headwise.lab.crew.messages import Failed, Finished, Job
from headwise.lab.crew.pace import Pace

TRIES = 3
MOST_IN_A_PACK = 500
_LOST_NODES = 20  # so often a job may lose its machine, through no fault of its own


class JobQueue:
    """The jobs that are neither running nor done, by their numbers."""

    def __init__(self, jobs: Sequence[Job], pack_seconds: float, tries: int = TRIES) -> None:
        self._jobs, self._pack_seconds, self._tries = jobs, pack_seconds, tries
        self._waiting = deque(range(len(jobs)))
        self._again: deque[int] = deque()
        self._last: deque[int] = deque()
        self._failures: Counter[int] = Counter()
        self._lost: Counter[int] = Counter()
        self._costs: dict[str, float] = defaultdict(float)  # of waiting jobs, by label
        for job in jobs:
            self._costs[job.label] += job.cost
        self._pace = Pace()

    def __bool__(self) -> bool:
        return bool(self._waiting or self._again or self._last)

    def take(self, slots: int, busy: int) -> list[int]:
        """The next pack; none if what is left must wait until the `busy` packs are done."""
        if self._again:
            return [self._again.popleft()]
        if self._waiting:
            return self._pack(slots)
        return [self._last.popleft()] if self._last and busy == 0 else []

    def _pack(self, slots: int) -> list[int]:
        expected = [self._pace.expected(label, cost) for label, cost in self._costs.items()]
        share = sum(seconds or 0.0 for seconds in expected) / (2 * max(1, slots))
        limit = min(self._pack_seconds, share)
        pack: list[int] = []
        spent = 0.0
        while self._waiting and len(pack) < MOST_IN_A_PACK:
            job = self._jobs[self._waiting[0]]
            seconds = self._pace.expected(job.label, job.cost)
            if pack and (seconds is None or spent + seconds > limit):
                break
            pack.append(self._waiting.popleft())
            self._costs[job.label] -= job.cost
            if seconds is None:
                break
            spent += seconds
        return pack

    def finished(self, done: Finished) -> None:
        """A job is done; how long it took says how long others will."""
        self._pace.learn(self._jobs[done.job], done.seconds)

    def put_back(self, numbers: Sequence[int]) -> None:
        """These were not begun."""
        self._again.extend(numbers)

    def failed(self, numbers: Sequence[int], error: Exception, lost: bool = False) -> list[Failed]:
        """The pack of these jobs failed: those that will not be tried again.

        `lost`: not by a fault of theirs, for the machine is gone.
        """
        given_up = []
        for number in numbers:
            blamed = self._lost if lost else self._failures
            blamed[number] += 1
            tries = self._failures[number]
            refused = isinstance(error, InputError)
            if refused or tries >= self._tries or self._lost[number] >= _LOST_NODES:
                given_up.append(Failed(number, error, tries + self._lost[number]))
            elif tries == self._tries - 1:
                self._last.append(number)
            else:
                self._again.append(number)
        return given_up
