"""One task of the zoo, probed one way, and what to think of the answer."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from headwise.advise.probe.ask import probe
from headwise.advise.probe.finding import Finding
from headwise.advise.probe.verdict import CONFIDENT
from headwise.advise.probe.zoo import REFUSE, ZooTask, draw_task
from headwise.core.device import chosen_device

Way = Literal["function", "data"]
Outcome = Literal["right", "wrong", "refused rightly", "refused wrongly", "failed"]
_DATA = 1


@dataclass(frozen=True)
class Assignment:
    """Which task, in which way, with how many samples (data alone) and seconds at most."""

    seed: int
    index: int
    given: Way
    samples: int
    seconds: float


@dataclass(frozen=True)
class ZooAttempt:
    """What the probe said of an assignment, beside what is right. Plain data, so that it keeps."""

    assignment: Assignment
    name: str
    about: str
    acceptable: tuple[int | str, ...]
    heads: int | None
    interval: tuple[int, int] | None
    confidence: float
    sentence: str
    seconds: float
    layers: int | None = None
    precision: float | None = None
    failed: bool = False

    @property
    def outcome(self) -> Outcome:
        """Right, wrong, refused rightly or wrongly; failed where the probe broke."""
        if self.failed:
            return "failed"
        if not self.answered:
            return "refused rightly" if REFUSE in self.acceptable else "refused wrongly"
        return "right" if self.heads in self.acceptable else "wrong"

    @property
    def answered(self) -> bool:
        """There is a number for one layer; who says that it takes more layers has refused."""
        return self.heads is not None and (self.layers or 1) == 1

    @property
    def confident_and_wrong(self) -> bool:
        """A wrong number, said with the confidence that the probe calls confident."""
        return self.outcome == "wrong" and self.confidence >= CONFIDENT

    @property
    def covered(self) -> bool:
        """A right number lies in the interval of the answer."""
        if not self.answered or self.interval is None:
            return False
        low, high = self.interval
        return any(low <= each <= high for each in self.acceptable if isinstance(each, int))

    def __str__(self) -> str:
        mark = {"right": "✓", "refused rightly": "✓", "wrong": "✗"}.get(self.outcome, "–")
        said = f"{self.heads} at {self.confidence:.2f}" if self.answered else "no answer"
        said = "failed" if self.failed else said
        shout = "  CONFIDENT AND WRONG" if self.confident_and_wrong else ""
        wanted = " or ".join(map(str, self.acceptable))
        return (
            f"{mark} {self.assignment.index} {self.assignment.given}: {said} (right: {wanted}; "
            f"{self.seconds:.0f} s)  {self.about}{shout}"
        )

    def to_data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)

    @staticmethod
    def from_data(data: dict[str, Any]) -> "ZooAttempt":
        """The attempt that `to_data` gave."""
        interval = data["interval"]
        return ZooAttempt(
            **{
                **data,
                "assignment": Assignment(**data["assignment"]),
                "acceptable": tuple(data["acceptable"]),
                "interval": None if interval is None else (int(interval[0]), int(interval[1])),
            }
        )


def make_attempt(assignment: Assignment) -> ZooAttempt | None:
    """Draw the task and ask the probe; None for the function of a task that has none.

    Whatever the probe raises is kept as a failure: it is an answer that a user would have got.
    """
    task = draw_task(assignment.seed, assignment.index)
    if assignment.given == "function" and task.target is None:
        return None
    try:
        finding, failed = _ask(task, assignment), False
    except Exception as error:  # the evaluation goes on; the failure is counted and shown
        finding, failed = Finding(f"{type(error).__name__}: {error}", None), True
    return ZooAttempt(
        assignment=assignment,
        name=task.name,
        about=str(task),
        acceptable=tuple(sorted(task.right_to(finding.precision), key=str)),
        heads=finding.heads,
        interval=finding.interval,
        confidence=finding.confidence,
        sentence=finding.sentence,
        seconds=round(finding.seconds, 1),
        layers=finding.layers,
        precision=finding.precision,
        failed=failed,
    )


def _ask(task: ZooTask, wanted: Assignment) -> Finding:
    kind: Literal["regression", "classification"] = (
        "classification" if task.labels else "regression"
    )
    limits: dict[str, Any] = {
        "seed": wanted.seed,
        "seconds": wanted.seconds,
        "jobs": 1,
        "heads_only": True,  # the rest is not judged
        "device": chosen_device(),
    }
    if wanted.given == "function":
        return probe(target=task.target, sampler=task.sampler, kind=kind, **limits)
    data = task.sample(wanted.samples, (wanted.seed, wanted.index, _DATA))
    return probe(data.inputs, data.targets, mask=data.mask, **limits)
