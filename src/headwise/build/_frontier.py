"""Parameters against error: what enough heads cost, what one wide head costs, what few must."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from headwise.build._memorise import plan_memorise
from headwise.build._retrieval import HEAD_DIM, plan_retrieval
from headwise.build.budget import in_reach
from headwise.build.built import Design
from headwise.core.errors import require
from headwise.core.lazy import Drawn
from headwise.core.lines import fitted
from headwise.core.progress import OnProgress, quiet
from headwise.core.shown import Tabled
from headwise.tasks.assumptions import check_assumptions
from headwise.tasks.maps import Bowl
from headwise.tasks.retrieval import Retrieval, max_plus_min
from headwise.theory.bound import rounded_down
from headwise.theory.checks import numbers, shown, whole
from headwise.theory.directed import floor_float
from headwise.theory.head_count import lower_bound_exponent

ENOUGH, MEMORISING = "h = D", "one wide head"
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
            "network": ends["network"],
            "certified": ends["certified_error"].map("{:.2e}".format, na_action="ignore"),
        }
        named = ends[["task", "length", "curve"]].rename(columns={"length": "T"})
        listing = fitted(named.assign(**shown).fillna("–"), keys=3)
        return f"{listing}\n\n{self.conclusion}"

    @property
    def conclusion(self) -> str:
        """What the least error costs either way, and what theory says of fewer heads."""
        table = self.to_pandas()
        least = table[table["error"] == table["error"].min()]
        sizes = least.pivot_table(index=["task", "length"], columns="curve", values="params")
        times = sizes[MEMORISING] / sizes[ENOUGH]
        said = [
            f"At error {table['error'].min():g}, one wide head takes {_times(times.min())} to "
            f"{_times(times.max())} times the parameters of h = D heads."
        ]
        for (task, length), here in table.groupby(["task", "length"], sort=False):
            exponent = here["exponent"].iloc[0]
            if here["assumptions_met"].all() and exponent == exponent and exponent is not None:
                said.append(
                    f"{task}, T = {length}: with one head fewer, theorem 2(2) asks for parameters "
                    f"that grow at least like 1/error^{rounded_down(exponent)}."
                )
        return "\n".join([*said, *self.notes])


def _times(factor: float) -> str:
    """Two digits: 2,500, or 1.3e+45 where nobody would count the places."""
    rounded = float(f"{factor:.1e}")
    return f"{rounded:,.0f}" if 10 <= rounded < 1e9 else f"{rounded:.2g}"


def frontier(
    lengths: Sequence[int] = LENGTHS,
    *,
    tasks: Mapping[str, Callable[[int], Retrieval]] = TASKS,
    errors: Iterable[float] = ERRORS,
    box: tuple[float, float] | None = None,
    on_progress: OnProgress = quiet,
) -> Frontier:
    """What an error costs with enough heads, and with one wide head; what fewer heads must pay.

    Sizes come from the constructions' plans. Small networks are built and their certified error
    recorded (`network` is "built"); of the others the parameters are counted. The lower bound for
    fewer heads is a rate whose constant is unknown: `exponent` holds its slope, and no number of
    parameters follows from it. It is None where the theorem is vacuous or does not apply.
    """
    require(
        isinstance(errors, Iterable) and not isinstance(errors, Mapping | str | bytes),
        f"errors must be a list of at least two numbers, not {shown(errors)}",
    )
    given = errors if isinstance(errors, np.ndarray) else list(errors)
    asked = sorted({in_reach("an error", each) for each in numbers("errors", given)}, reverse=True)
    require(
        isinstance(tasks, Mapping) and len(tasks) > 0 and all(map(callable, tasks.values())),
        f"tasks maps a name to a function from a length to a task, not {shown(tasks)}",
    )
    require(len(asked) >= 2, "a frontier needs at least two errors")
    listed = isinstance(lengths, Sequence) and not isinstance(lengths, str | bytes)
    require(listed and len(lengths) >= 1, "a frontier needs a list of at least one length")
    lengths = [whole("a length", length) for length in lengths]
    settings = [(name, make(length)) for name, make in tasks.items() for length in lengths]
    for name, task in settings:
        require(isinstance(task, Retrieval), f"{name}: {shown(task)} is no Retrieval task")
    rows: list[dict[str, Any]] = []
    notes: dict[str, None] = {}  # in order, each once
    for done, (name, task) in enumerate(settings):
        found, declared = _rows(name, task, asked, box)
        rows += found
        notes |= dict.fromkeys([_why_no_bound(name, task), *declared])
        on_progress((done + 1) / len(settings), "frontier")
    return Frontier(tuple(rows), tuple(note for note in notes if note))


def _why_no_bound(name: str, task: Retrieval) -> str:
    """Theorem 2(2) is for targets of assumption 2 only."""
    broken = [each for each in check_assumptions(task) if each.holds is False]
    if not broken:
        return ""
    return f"{name}: no lower bound is drawn, theorem 2(2) does not apply ({broken[0]})."


def _rows(
    name: str, task: Retrieval, errors: list[float], box: tuple[float, float] | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """The two curves of a task, and the declared constants that its certificates rest on."""
    dims, wide = task.intrinsic_dim, task.length * task.token_dim
    designs = [plan_retrieval(task, error, box=box) for error in errors]
    enough = [
        _built_row(name, task, ENOUGH, error, design, dims)
        for error, design in zip(errors, designs, strict=True)
    ]
    memorising = [
        _built_row(name, task, MEMORISING, error, plan_memorise(task, error, box=box), 1, wide)
        for error in errors
    ]
    exponent = _too_few(task)
    known = designs[0].known
    declared = [f"{name}: {each}" for each in (*known.features.declared, *known.outer.declared)]
    return [row | {"exponent": exponent} for row in enough + memorising], declared


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
        "network": "counted" if certified is None else "built",
        "certified_error": certified,
    }


def _too_few(task: Retrieval) -> float | None:
    """The exponent of theorem 2(2) for one head too few, in heads of the same dimension.

    None where the theorem is vacuous, or where the task does not meet its assumptions.
    """
    heads = task.intrinsic_dim - 1
    if heads < 1 or not _assumptions_met(task):
        return None
    share = floor_float(Fraction(min(task.set_sizes), task.length))
    found = lower_bound_exponent(heads, task.intrinsic_dim, task.length, HEAD_DIM, share)
    return None if found.value is None else float(found.value)


def _assumptions_met(task: Retrieval) -> bool:
    return all(each.holds is not False for each in check_assumptions(task))


def _entry(
    name: str,
    task: Retrieval,
    curve: str,
    error: float,
    params: int,
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
        "assumptions_met": _assumptions_met(task),
    }
