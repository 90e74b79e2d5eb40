"""What a race says, in words and rows: the plan's reasons, its check, its table."""

from math import isfinite
from typing import TYPE_CHECKING, Any

from headwise.advise.plan.race import UNIFORM, Race, interval
from headwise.advise.plan.scale import TrialScale
from headwise.allocation.plan_file import Comparison
from headwise.nets import AttentionShape

if TYPE_CHECKING:
    from headwise.advise.plan.measured import Request

UNIT = "nats a token on held-out data"


def comparison(outcome: Race) -> Comparison:
    """The winner against uniform, on fresh seeds if there are; uniform against itself is zero."""
    if outcome.winner == UNIFORM:
        mean, low, high, seeds = 0.0, 0.0, 0.0, outcome.seeds(UNIFORM)
    else:
        seeds = list(outcome.fresh_seeds) or outcome.seeds(outcome.winner)
        mean, low, high = interval(outcome.differences(outcome.winner, seeds))
    level = sum(outcome.losses[UNIFORM, seed] for seed in seeds) / len(seeds)
    return Comparison(
        difference=mean, low=low, high=high, uniform=level, unit=UNIT, seeds=len(seeds)
    )


def rows(outcome: Race, full: dict[str, tuple[AttentionShape, ...]]) -> list[dict[str, Any]]:
    """One row a candidate: its layers, and its loss minus uniform's over the seeds it ran on."""
    table = []
    for name, layers in full.items():
        seeds = outcome.seeds(name)
        mean, low, high = interval(outcome.differences(name, seeds))
        table.append(
            {
                "candidate": name,
                "layers": layers,
                "against_uniform": mean,
                "low": low if isfinite(low) else None,
                "high": high if isfinite(high) else None,
                "seeds": len(seeds),
            }
        )
    return sorted(table, key=lambda row: float(row["against_uniform"]))


def reasons(outcome: Race, scale: TrialScale, names: list[str]) -> list[str]:
    found = comparison(outcome)
    said = []
    if outcome.winner == UNIFORM:
        said.append(
            f"None of {len(names) - 1} other allocations was better than uniform on these data "
            "when it counted, so uniform it is."
        )
    elif not outcome.fresh_seeds:
        said.append(
            f"{outcome.winner} had the least loss of {len(names)} allocations at equal attention "
            f"parameters: {found}. Time ran out before a check on fresh seeds, so that number is "
            "flattered by the choice; the same command goes on."
        )
    else:
        said.append(
            f"{outcome.winner} had the least loss of {len(names)} allocations at equal attention "
            f"parameters; on seeds that had no part in the choice it is at {found}."
        )
        if found.high >= 0:
            said.append(
                "That interval includes zero: on this evidence it is no worse than uniform, and "
                "not proved better."
            )
    if not scale.whole:
        said.append(
            f"Trials had width {scale.width} and length {scale.length}, heads as planned and head "
            f"dimensions divided by {scale.factor}. The order can be another at full size, as it "
            "was in the allocation study: a guess. More --seconds allow full-size trials."
        )
    return said


def said(outcome: Race, scale: TrialScale, data: str, request: "Request") -> str:
    """How the plan was checked."""
    seeds = len(outcome.seeds(UNIFORM)) - len(outcome.fresh_seeds)
    fresh = f", then {len(outcome.fresh_seeds)} fresh ones" if outcome.fresh_seeds else ""
    return (
        f"decoders with RoPE of {request.layers} layers, width {scale.width}, "
        f"length {scale.length}, "
        f"{scale.steps} steps of {scale.batch} windows on {data}; successive halving over "
        f"up to {seeds} seeds{fresh}"
    )
