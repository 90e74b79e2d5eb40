"""Witnesses against networks of several numbers of heads, next to the errors they really make."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, ClassVar

from headwise.build._witness import SAMPLE, in_double_precision, witness
from headwise.core.errors import require
from headwise.core.lazy import Drawn
from headwise.core.lines import fitted
from headwise.core.progress import OnProgress, part_of, quiet
from headwise.core.shown import Tabled
from headwise.nets import ClassTokenNet
from headwise.tasks.retrieval import Retrieval
from headwise.theory.bound import rounded_down, rounded_up
from headwise.theory.checks import shown, whole

FORCED, ROOT_MEAN_SQUARE = "forced by the witness", "root mean square"


@dataclass(frozen=True)
class WitnessComparison(Drawn, Tabled):
    """One row a network and kind of error; `relative` is in standard deviations of the target."""

    drawn_by: ClassVar[str] = "headwise.report.witnesses:draw_comparison"

    task: Retrieval
    rows: tuple[dict[str, Any], ...] = field(repr=False)

    def records(self) -> list[dict[str, Any]]:
        """The rows, ready for JSON."""
        return list(self.rows)

    def __str__(self) -> str:
        table = self.to_pandas().set_index(["group", "heads"])
        facts = table[table["kind"] == FORCED]
        rms = table.loc[table["kind"] == ROOT_MEAN_SQUARE, "relative"]
        shown = {
            "forced / σ": facts["relative"].map(lambda each: rounded_down(each, 2)),
            "rms / σ": rms.map("{:.2g}".format),
            "Δ": facts["target_gap"].map("{:.3g}".format),
            "δ": facts["representation_gap"].map("{:.1e}".format),
            "readout's L ≤": facts["readout_lipschitz"].map(lambda each: rounded_up(each, 3)),
        }
        return fitted(facts[[]].assign(**shown).reset_index(), keys=2)


def compare_witnesses(
    nets: Mapping[str, Mapping[int, ClassTokenNet]],
    task: Retrieval,
    *,
    seed: int = 0,
    on_progress: OnProgress = quiet,
    **options: Any,
) -> WitnessComparison:
    """For groups of networks by number of heads: the forced error next to the network's own.

    `options` are those of `witness`.
    """
    require(
        isinstance(nets, Mapping)
        and any(nets.values())
        and all(isinstance(by, Mapping) for by in nets.values())
        and all(isinstance(net, ClassTokenNet) for by in nets.values() for net in by.values()),
        f"nets maps a group to its networks by number of heads, not {shown(nets)}",
    )
    require(isinstance(task, Retrieval), f"task must be a Retrieval, not {shown(task)}")
    seed = whole("seed", seed, least=0)
    deviation = sqrt(task.variance())
    inputs = task.sample(SAMPLE, seed=(seed, 0x517))[0].double()
    targets = task.oracle(inputs)
    rows: list[dict[str, Any]] = []
    every = [(group, heads, net) for group, by in nets.items() for heads, net in by.items()]
    for done, (group, heads, net) in enumerate(every):
        part = part_of(on_progress, done / len(every), (done + 1) / len(every))
        found = witness(net, task, seed=seed, on_progress=part, **options)
        errors = in_double_precision(net)(inputs).squeeze(1) - targets
        rms = float(errors.square().mean().sqrt())
        quantities = {
            FORCED: found.forced_error(),
            ROOT_MEAN_SQUARE: rms,
            f"largest of {SAMPLE:,} samples": float(errors.abs().max()),
        }
        facts = {
            "heads": heads,
            "length": task.length,
            "target_gap": found.target_gap,
            "representation_gap": found.representation_gap,
            "readout_lipschitz": found.readout_lipschitz,
            "forced_lipschitz": found.forced_lipschitz(rms),
            "network_error_on_pair": found.network_error,
        }
        rows += [
            {"group": group, "kind": name, "error": value, "relative": value / deviation} | facts
            for name, value in quantities.items()
        ]
    return WitnessComparison(task, tuple(rows))
