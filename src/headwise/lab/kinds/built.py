"""Runs that build a network and measure it, instead of training one."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.lab.run import Run
from headwise.training import Outcome

Name = Literal["random-features", "random-features-independent", "vote", "full-rank"]


@spec
class Construction:
    """Which network is built, and with how many heads; the run's seed draws its directions."""

    name: Name
    heads: int

    def __post_init__(self) -> None:
        names = ("random-features", "random-features-independent", "vote", "full-rank")
        require(self.name in names, f"there is no construction {self.name!r}: {', '.join(names)}")
        require(self.heads >= 1, f"heads is {self.heads}; the least is 1")


@spec
class FreshSequences:
    """On how many fresh sequences the network is measured."""

    sequences: int


def build_and_measure(
    job: Sequence[Run], on_progress: Callable[[float], None], _: Path | None = None
) -> list[Outcome]:
    """One outcome a run: the measured error, its standard error and what theory expects."""
    from headwise.tasks import measure

    outcomes = []
    for index, run in enumerate(job):
        net, expected = _build(run)
        found = measure(net, run.task, run.training.sequences, run.seed)
        outcomes.append(
            Outcome(
                seed=run.seed,
                error=found.error,
                error_last=found.error,
                unit="share of the target's mean square",
                best_step=None,
                diverged=False,
                curve=(),
                engine="built",
                engine_reason="a construction is not trained",
                params={},
                facts={"standard_error": found.standard_error, "expected": expected},
            )
        )
        on_progress((index + 1) / len(job))
    return outcomes


def _build(run: Run) -> tuple[Any, float]:
    """The network, and the error that theory gives it."""
    from headwise.build.neighbours import full_rank_head
    from headwise.build.random_features import random_features_layer
    from headwise.build.vote import majority_vote
    from headwise.theory.rank import vote_error

    dim, heads = run.task.dim, run.net.heads
    if run.net.name == "full-rank":
        return full_rank_head(run.task), 0.0
    if run.net.name == "vote":
        expected = vote_error(dim, heads).expected.value
        assert expected is not None
        return majority_vote(dim, heads, run.seed), expected
    draw: Any = "independent" if run.net.name.endswith("independent") else "aligned"
    layer = random_features_layer(dim, heads, run.seed, draw)
    return layer.net, layer.error
