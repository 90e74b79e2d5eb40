"""What a race says, in words and rows: the plan's reasons, its check, its candidates."""

from math import inf, isfinite

from headwise.advise.plan.race import UNIFORM, Race
from headwise.advise.plan.scale import TrialScale
from headwise.allocation.fill import Layers
from headwise.allocation.plan_file import Candidate, Comparison
from headwise.core.intervals import Interval

UNIT = "nats a token on held-out data"


def comparison(outcome: Race) -> Comparison:
    """The winner against uniform, on fresh seeds if there are; uniform against itself is zero."""
    if outcome.winner == UNIFORM:
        seeds = outcome.seeds(UNIFORM)
        found = Interval(0.0, 0.0, 0.0, len(seeds))
    else:
        seeds = list(outcome.fresh_seeds) or outcome.seeds(outcome.winner)
        found = outcome.against_uniform(outcome.winner, seeds)
    level = [outcome.losses[UNIFORM, seed] for seed in seeds if (UNIFORM, seed) in outcome.losses]
    return Comparison(
        difference=found.mean,
        low=found.low,
        high=found.high,
        uniform=sum(level) / len(level),
        unit=UNIT,
        seeds=found.seeds,
    )


def rows(outcome: Race, full: dict[str, Layers]) -> tuple[Candidate, ...]:
    """The candidates, best first: their layers, and their loss minus uniform's."""

    def known(number: float) -> float | None:
        return number if isfinite(number) else None

    table = []
    for name, layers in full.items():
        found = outcome.against_uniform(name)
        table.append(
            Candidate(
                name=name,
                layers=layers,
                against_uniform=known(found.mean),
                low=known(found.low),
                high=known(found.high),
                seeds=found.seeds,
            )
        )
    return tuple(
        sorted(table, key=lambda row: inf if row.against_uniform is None else row.against_uniform)
    )


def reasons(outcome: Race, scale: TrialScale, names: list[str]) -> list[str]:
    """Why this candidate, and how much that is worth."""
    found = comparison(outcome)
    said = []
    if outcome.winner == UNIFORM and not outcome.in_time:
        said.append(f"Time ran out before the race was decided. {_so_far(outcome, names)}")
    elif outcome.winner == UNIFORM:
        said.append(
            f"None of {len(names) - 1} other allocations was better than uniform on these data "
            "when it counted, so uniform it is."
        )
    elif not outcome.fresh_seeds:
        said.append(
            f"{outcome.winner} had the least loss of {len(names)} allocations at equal attention "
            f"parameters: {found}. Time ran out before a check on fresh seeds, so that number is "
            "flattered by the choice."
        )
    else:
        said.append(
            f"{outcome.winner} had the least loss of {len(names)} allocations at equal attention "
            f"parameters; on seeds that had no part in the choice it is at {found}."
        )
        if found.low > 0:
            said.append("That is worse than uniform: what came first in the race did not again.")
        elif found.high >= 0:
            said.append(
                "That interval includes zero: on this evidence it cannot be told from uniform."
            )
    if not scale.whole:
        said.append(
            f"Trials had width {scale.width} and length {scale.length}, heads as planned and head "
            f"dimensions divided by {scale.factor}. The order can be another at full size, as it "
            "was in the allocation study: a guess. More --seconds allow full-size trials."
        )
    return said


def _so_far(outcome: Race, names: list[str]) -> str:
    """What a race that was not decided is worth."""
    others = [name for name in names if name != UNIFORM]
    known = {name: outcome.against_uniform(name) for name in others}
    compared = {name: found for name, found in known.items() if found.seeds}
    if not compared:
        return (
            f"None of {len(others)} other allocations was compared with uniform yet, so uniform "
            "it is: that is worth no more than the theory's default."
        )
    best, found = min(compared.items(), key=lambda item: item[1].mean)
    seeds = "one seed, which tells nothing" if found.seeds == 1 else f"{found.seeds} seeds"
    return (
        f"Of {len(others)} other allocations {len(compared)} were compared with uniform. The best "
        f"so far, {best}, is at {found.mean:+.4f} {UNIT} against it on {seeds}; none is clearly "
        "better, so uniform it is."
    )


def said(outcome: Race, scale: TrialScale, data: str, layers: int) -> str:
    """How the plan was checked."""
    seeds = len(outcome.seeds(UNIFORM)) - len(outcome.fresh_seeds)
    fresh = f", then {len(outcome.fresh_seeds)} fresh ones" if outcome.fresh_seeds else ""
    return (
        f"decoders with RoPE of {layers} layers, width {scale.width}, "
        f"length {scale.length}, "
        f"{scale.steps} steps of {scale.batch} windows on {data}; successive halving over "
        f"up to {seeds} seeds{fresh}"
    )
