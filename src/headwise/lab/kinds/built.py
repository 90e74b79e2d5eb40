"""Kind "built": a network that is built instead of trained, measured on fresh sequences."""

from typing import Any, Literal, get_args

from headwise.build.neighbours import full_rank_head
from headwise.build.points.nearly_full import nearly_full_rank_layer
from headwise.build.random_features import random_features_layer
from headwise.build.vote import majority_vote
from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.lab.kinds._columns import columns
from headwise.lab.kinds._one_by_one import Reading, one_by_one
from headwise.lab.kinds._registry import Kind, register
from headwise.lab.kinds.tokens import TOKEN_ERROR
from headwise.lab.run import Run
from headwise.tasks import measure
from headwise.theory.rank import vote_error

ConstructionName = Literal[
    "random-features",
    "random-features-independent",
    "random-features-uniform-angle",
    "random-features-published",
    "vote",
    "full-rank",
    "nearly-full-rank",
]


@spec
class Construction:
    """Which network is built, with how many heads, and on how many fresh sequences it is measured.

    The run's seed draws its directions.
    """

    name: ConstructionName
    heads: int
    sequences: int

    def __post_init__(self) -> None:
        names = get_args(ConstructionName)
        require(self.name in names, f"there is no construction {self.name!r}: {', '.join(names)}")
        require(self.heads >= 1, f"heads is {self.heads}; the least is 1")
        require(self.sequences >= 1, f"sequences is {self.sequences}; the least is 1")


def _measure(run: Run) -> Reading:
    """The measured error, its standard error and what theory expects."""
    net, expected = _build(run)
    found = measure(net, run.task, run.measure.sequences, run.seed)
    return Reading(found.error, {"standard_error": found.standard_error, "expected": expected})


def _build(run: Run) -> tuple[Any, float]:
    """The network, and the error that theory gives it."""
    dim, name, heads = run.task.dim, run.measure.name, run.measure.heads
    if name == "full-rank":
        return full_rank_head(run.task), 0.0
    if name == "vote":
        expected = vote_error(dim, heads).expected.value
        assert expected is not None
        return majority_vote(dim, heads, run.seed), expected
    if name == "nearly-full-rank":
        require(heads == dim + 1, f"a nearly-full-rank layer has {dim + 1} heads, not {heads}")
        return nearly_full_rank_layer(dim), 0.0
    draw: Any = name.removeprefix("random-features").removeprefix("-") or "aligned"
    layer = random_features_layer(dim, heads, run.seed, draw)
    return layer.net, layer.error


def _cost(run: Run) -> float:
    """Scores of all heads on all sequences, and the closed form's matrix for random features."""
    made = run.measure
    fit = made.heads**2 * 50.0 if made.name.startswith("random") else 0.0
    return float(fit + 2.5 * made.sequences * made.heads * (run.task.dim + 10))


def _describe(run: Run) -> dict[str, Any]:
    name = run.measure.name
    return {
        "dim": run.task.dim,
        "points": run.task.points,
        "positions": run.task.positions,
        "length": run.task.length,
        "layers": 2 if name == "vote" else 1,
        "heads": run.measure.heads,
        "rank": {"full-rank": run.task.dim, "nearly-full-rank": run.task.dim - 1}.get(name, 1),
        "method": name,
        "steps": 0,
    }


BUILT = register(
    Kind(
        name="built",
        error=TOKEN_ERROR,
        columns=columns("dim points positions length layers heads rank method steps"),
        describe=_describe,
        perform=one_by_one(_measure, TOKEN_ERROR, "built", "a construction is not trained"),
        cost=_cost,
        facts=columns("standard_error expected"),
        measure=Construction,
    )
)
