"""What a user asks for beside the task, checked before any work begins."""

from pathlib import Path
from typing import Any

from headwise.advise.probe.samples.given import LEAST_SAMPLES, Samples
from headwise.core.errors import check_whole, require
from headwise.core.files import check_can_write
from headwise.core.workers import worker_count

MOST_HEADS = 64


def check_options(
    *,
    max_heads: Any,
    seconds: Any,
    seed: Any,
    jobs: Any,
    positions: Any,
    train: Any,
    state: Any,
) -> None:
    """A sentence for every option that is not what it should be."""
    check_whole(max_heads, "max_heads", 2, MOST_HEADS)
    check_whole(seed, "seed", 0)
    worker_count(jobs)
    for name, value in {"positions": positions, "train": train}.items():
        require(value in (None, True, False), f"{name} is {value!r}; it is True, False or None")
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    require(
        number and seconds > 0, f"seconds is {seconds!r}; a probe takes some time, a number above 0"
    )
    require(state is None or isinstance(state, str | Path), f"state names a file; it is {state!r}")
    check_can_write(state, "state")


def too_few(samples: Samples) -> tuple[str, str] | None:
    """Why so few sequences, or so few different ones, support no answer; and what would."""
    wanted = (
        f"at least {LEAST_SAMPLES} samples, better 20,000; or the function itself "
        "(probe(target=..., sampler=...))"
    )
    if samples.count < LEAST_SAMPLES:
        noun = "sample is" if samples.count == 1 else "samples are"
        return f"{samples.count} {noun} too few to tell heads from chance", wanted
    if samples.distinct == 1:
        return "all sequences are the same, so that nothing can be learnt from them", wanted
    if samples.distinct < LEAST_SAMPLES:
        return (
            f"of {samples.count} sequences only {samples.distinct} are different, too few to tell "
            "heads from chance",
            wanted.replace("samples", "different sequences", 1),
        )
    return None
