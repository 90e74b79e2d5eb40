"""The plan: which heads and dimensions in which layer, why, and how far to trust it."""

import json
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from headwise.allocation.fill import Layers, attention_parameters
from headwise.core.errors import InputError, require
from headwise.core.files import read_spec, write_spec
from headwise.core.lazy import Drawn
from headwise.core.lines import fitted
from headwise.core.spec import spec, to_data
from headwise.nets import AttentionShape


@spec
class Comparison:
    """Expected loss of the plan minus that of the uniform schedule, with its 95 % interval."""

    difference: float
    low: float
    high: float
    uniform: float
    unit: str
    seeds: int

    def __str__(self) -> str:
        return (
            f"{self.difference:+.4f} [{self.low:+.4f}, {self.high:+.4f}] {self.unit} against "
            f"uniform's {self.uniform:.4f}, {self.seeds} seeds"
        )


@spec
class Candidate:
    """An allocation that was tried, and its loss minus uniform's on the seeds on which both ran.

    The difference is None where it ran on no seed, its interval where it ran on one.
    """

    name: str
    layers: Layers
    against_uniform: float | None
    low: float | None
    high: float | None
    seeds: int


@spec
class AllocationPlan(Drawn):
    """Attention layers for a model of `width` and contexts of `length`, within `budget`.

    `budget` counts attention parameters. `schedule` names where the layers come from; `checked`
    says how they were compared with others, and is empty where they were not: then the plan is
    the theory's default. `candidates` holds what was measured, the best first. Not `in_time`: time
    ran out before the comparison was finished, and this is what was known by then.
    """

    drawn_by = "headwise.report.plan:draw"

    width: int
    length: int
    layers: Layers
    budget: int
    schedule: str
    reasons: tuple[str, ...]
    checked: str = ""
    against_uniform: Comparison | None = None
    candidates: tuple[Candidate, ...] = ()
    seed: int = 0
    in_time: bool = True

    def __post_init__(self) -> None:
        require(
            isinstance(self.layers, tuple)
            and len(self.layers) >= 1
            and all(isinstance(layer, AttentionShape) for layer in self.layers),
            "a plan's layers are AttentionShapes, at least one",
        )
        for name in ("width", "length", "budget"):
            value = getattr(self, name)
            require(isinstance(value, int) and value >= 1, f"a plan's {name} is at least 1")
        require(
            self.parameters <= self.budget,
            f"the plan's layers have {self.parameters:,} attention parameters, more than its "
            f"budget of {self.budget:,}",
        )

    @property
    def parameters(self) -> int:
        """Attention parameters of all layers."""
        return attention_parameters(self.width, self.layers)

    def table(self) -> pd.DataFrame:
        """One row a layer: heads, dimensions, parameters, and their share of all."""
        rows = [
            {
                "layer": index,
                "heads": layer.heads,
                "qk_dim": layer.qk_dim,
                "v_dim": layer.v_dim,
                "parameters": attention_parameters(self.width, (layer,)),
            }
            for index, layer in enumerate(self.layers)
        ]
        table = pd.DataFrame(rows)
        return table.assign(share=table["parameters"] / self.parameters)

    def candidate_table(self) -> pd.DataFrame:
        """One row an allocation that was tried, the best first; empty where none was."""
        columns = ["name", "layers", "against_uniform", "low", "high", "seeds"]
        return pd.DataFrame(
            [[getattr(each, name) for name in columns] for each in self.candidates],
            columns=columns,
        ).drop(columns="layers")

    def __str__(self) -> str:
        lines = [self.schedule, fitted(self._shown(self.table())), self._spent]
        if self.against_uniform is not None:
            lines.append(f"expected loss: {self.against_uniform}")
        if self.candidates:
            lines.append(fitted(self._shown(self.candidate_table())))
        lines += [f"- {reason}" for reason in self.reasons]
        return "\n".join([*lines, f"checked: {self.checked or 'not at all'}"])

    def _repr_html_(self) -> str:
        parts = [
            f"<b>{escape(self.schedule)}</b>",
            self._shown(self.table()).to_html(index=False),
            f"<p>{self._spent}</p>",
        ]
        if self.against_uniform is not None:
            parts.append(f"<p>expected loss: {escape(str(self.against_uniform))}</p>")
        if self.candidates:
            parts.append(self._shown(self.candidate_table()).to_html(index=False))
        said = "".join(f"<li>{escape(reason)}</li>" for reason in self.reasons)
        checked = escape(self.checked or "not at all")
        return "\n".join([*parts, f"<ul>{said}</ul>", f"<p>checked: {checked}</p>"])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Notebooks show the plan in words and tables; `figure()` draws it."""
        return {"text/plain": str(self), "text/html": self._repr_html_()}

    @property
    def _spent(self) -> str:
        return f"{self.parameters:,} of {self.budget:,} attention parameters"

    @staticmethod
    def _shown(table: pd.DataFrame) -> pd.DataFrame:
        """Numbers as a person reads them."""
        ways = {
            "parameters": "{:,}".format,
            "share": lambda share: f"{100 * share:.1f} %",
            **dict.fromkeys(("against_uniform", "low", "high"), _signed),
        }
        return table.assign(
            **{name: table[name].map(way) for name, way in ways.items() if name in table}
        )

    def to_json(self) -> str:
        """What the plan file holds, in one line."""
        return json.dumps(to_data(self), ensure_ascii=False)


def read_allocation(path: str | Path) -> AllocationPlan:
    """A plan from its file."""
    plan = read_spec(Path(path), "a plan")
    if not isinstance(plan, AllocationPlan):
        raise InputError(f"{path} is not a plan made by `headwise plan`")
    return plan


def write_allocation(plan: AllocationPlan, path: str | Path) -> None:
    """Write atomically: the whole plan or nothing."""
    write_spec(plan, path)


def _signed(number: float | None) -> str:
    return "" if number is None or pd.isna(number) else f"{number:+.4f}"
