"""Parameters against error: what enough heads cost, what one wide head costs, what few must."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from headwise.build._memorise import plan_memorise
from headwise.build._retrieval import HEAD_DIM, plan_retrieval
from headwise.build.built import Design
from headwise.core.errors import require
from headwise.core.lazy import Drawn
from headwise.core.progress import OnProgress, quiet
from headwise.core.shown import Tabled
from headwise.tasks.assumptions import check_assumptions
from headwise.tasks.maps import Bowl
from headwise.tasks.retrieval import Retrieval, max_plus_min
from headwise.theory.checks import numbers, whole
from headwise.theory.head_count import lower_bound_exponent

ENOUGH, MEMORISING, TOO_FEW = "built, h = D", "built, one wide head", "lower bound, h = D − 1"
ERRORS = tuple(float(e) for e in np.logspace(-1, -4, 13))
LENGTHS = (16, 32, 64)
_MOST_BUILT = 200_000  # parameters up to which a network of the frontier is really built


def bowls(length: int) -> Retrieval:
    """The sum of the least squared distances to three points of the square, D = 3."""
    features = Bowl.random(3, 2, seed=0)
    return Retrieval(features=features, length=length, extrema="min", inputs="uniform")


TASKS: Mapping[str, Callable[[int], Retrieval]] = {
    "max + min (D = 2)": max_plus_min,
    "three bowls (D = 3)": bowls,
}


@dataclass(frozen=True)
class Frontier(Drawn, Tabled):
    """One row a task, length, curve and error: the parameters of encoder and readout."""

    drawn_by: ClassVar[str] = "headwise.report.constructions:draw_frontier"

    rows: tuple[dict[str, Any], ...] = field(repr=False)
    notes: tuple[str, ...] = ()

    def records(self) -> list[dict[str, Any]]:
        """The rows, ready for JSON."""
        return list(self.rows)

    def __str__(self) -> str:
        table = self.to_pandas()
        ends = table[table["error"].isin([table["error"].max(), table["error"].min()])]
        ends = ends.sort_values(["task", "length", "curve", "error"])
        sizes = ends["params"].map(lambda m: f"{m:,.0f}" if m < 1e9 else f"{m:.1e}")
        shown = {
            "error": ends["error"].map("{:.1e}".format),
            "params M": sizes,
            "certified": ends["certified_error"].map("{:.2e}".format, na_action="ignore"),
        }
        named = ends[["task", "length", "curve"]].rename(columns={"length": "T"})
        table_text = named.assign(**shown).to_string(index=False, na_rep="–")
        return "\n".join([table_text, *self.notes])


def frontier(
    lengths: Sequence[int] = LENGTHS,
    *,
    tasks: Mapping[str, Callable[[int], Retrieval]] = TASKS,
    errors: Iterable[float] = ERRORS,
    box: tuple[float, float] | None = None,
    on_progress: OnProgress = quiet,
) -> Frontier:
    """What an error costs: built with enough heads, built with one wide head, and the bound.

    The sizes of built networks come from their plans; small ones are built, and their certified
    error recorded. The lower bound is a rate: its constant is unknown, so it is drawn through the
    first built network, and only its slope means something.
    """
    given = errors if isinstance(errors, np.ndarray | Sequence) else list(errors)
    asked = sorted(set(numbers("errors", given).tolist()), reverse=True)
    require(isinstance(tasks, Mapping), "tasks maps a name to a function from a length to a task")
    require(len(asked) >= 2, "a frontier needs at least two errors")
    listed = isinstance(lengths, Sequence) and not isinstance(lengths, str | bytes)
    require(listed and len(lengths) >= 1, "a frontier needs a list of at least one length")
    lengths = [whole("a length", length) for length in lengths]
    settings = [(name, make(length)) for name, make in tasks.items() for length in lengths]
    rows: list[dict[str, Any]] = []
    for done, (name, task) in enumerate(settings):
        rows += _rows(name, task, asked, box)
        on_progress((done + 1) / len(settings), "frontier")
    notes = dict.fromkeys(_why_no_bound(name, task) for name, task in settings)
    return Frontier(tuple(rows), tuple(note for note in notes if note))


def _why_no_bound(name: str, task: Retrieval) -> str:
    """Theorem 2(2) is for targets of assumption 2 only."""
    broken = [each for each in check_assumptions(task) if each.holds is False]
    if not broken:
        return ""
    return f"{name}: no lower bound is drawn, theorem 2(2) does not apply ({broken[0]})."


def _rows(
    name: str, task: Retrieval, errors: list[float], box: tuple[float, float] | None
) -> list[dict[str, Any]]:
    """The three curves of a task."""
    dims, wide = task.intrinsic_dim, task.length * task.token_dim
    enough = [
        _built_row(name, task, ENOUGH, error, plan_retrieval(task, error, box=box), dims)
        for error in errors
    ]
    memorising = [
        _built_row(name, task, MEMORISING, error, plan_memorise(task, error, box=box), 1, wide)
        for error in errors
    ]
    return enough + memorising + _lower_rows(name, task, errors, enough[0]["params"])


def _built_row(
    name: str,
    task: Retrieval,
    curve: str,
    error: float,
    design: Design,
    heads: int,
    head_dim: int = HEAD_DIM,
) -> dict[str, Any]:
    params = design.shape.params()
    certified = None
    if params["total"] <= _MOST_BUILT:
        net, recipe = design.make()
        certified = recipe.certify(task, net).error
    return _entry(name, task, curve, error, params["mlp"], heads, head_dim) | {
        "total_params": params["total"],
        "certified_error": certified,
    }


def _lower_rows(
    name: str, task: Retrieval, errors: list[float], anchor: int
) -> list[dict[str, Any]]:
    """Theorem 2(2) for one head too few, in heads of the same dimension; where it applies."""
    heads = task.intrinsic_dim - 1
    if heads < 1 or _why_no_bound(name, task):
        return []
    smallest = int(task.membership.sum(0).min())
    bound = lower_bound_exponent(
        heads, task.intrinsic_dim, task.length, HEAD_DIM, smallest / task.length
    )
    if bound.value is None:
        return []
    return [
        _entry(
            name,
            task,
            TOO_FEW,
            error,
            anchor * (errors[0] / error) ** bound.value,
            heads,
            HEAD_DIM,
        )
        | {"exponent": bound.value}
        for error in errors
    ]


def _entry(
    name: str,
    task: Retrieval,
    curve: str,
    error: float,
    params: int | float,
    heads: int,
    head_dim: int,
) -> dict[str, Any]:
    return {
        "task": name,
        "length": task.length,
        "curve": curve,
        "heads": heads,
        "head_dim": head_dim,
        "error": error,
        "params": params,
        "assumptions_met": all(each.holds is not False for each in check_assumptions(task)),
    }
