"""A run of one's own beside the shipped one: does another machine, or do other seeds, agree?"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from headwise.core.lines import listed, wrapped
from headwise.core.shown import Printed, Tabled
from headwise.lab.result import StudyResult
from headwise.lab.study import Verdict

_DECIDED = ("holds", "does not hold")


@dataclass(frozen=True)
class ComparedClaim:
    """What two runs of a study say of one of its claims."""

    statement: str
    shipped: Verdict
    yours: Verdict

    @property
    def outcome(self) -> str:
        """A verdict can be the same, its opposite, or decided by one of the runs alone."""
        if self.shipped.status == self.yours.status:
            return "the same"
        if {self.shipped.status, self.yours.status} == set(_DECIDED):
            return "contradicted"
        return "not decided by both"


@dataclass(frozen=True)
class ComparedEvidence(Printed, Tabled):
    """A study's claims, judged on the shipped table and on another run of the same tier."""

    study: str
    tier: str
    cpus: tuple[str, str]
    claims: tuple[ComparedClaim, ...]

    @staticmethod
    def of(shipped: StudyResult, yours: StudyResult) -> "ComparedEvidence":
        """Judges both, each on other seeds as well."""
        claims = tuple(
            ComparedClaim(claim.statement, verdict, yours.verdicts[claim])
            for claim, verdict in shipped.verdicts.items()
        )
        cpus = (cpus_of(shipped), cpus_of(yours))
        return ComparedEvidence(shipped.study.name, shipped.tier, cpus, claims)

    @property
    def agrees(self) -> bool:
        """Is no verdict the opposite of the shipped one?"""
        return all(each.outcome != "contradicted" for each in self.claims)

    def records(self) -> list[dict[str, Any]]:
        """A row a claim."""
        return [
            {
                "claim": each.statement,
                "shipped": each.shipped.status,
                "shipped_value": each.shipped.value,
                "yours": each.yours.status,
                "yours_value": each.yours.value,
                "outcome": each.outcome,
            }
            for each in self.claims
        ]

    def __str__(self) -> str:
        counts = Counter(each.outcome for each in self.claims)
        said = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
        head = ("claim", "shipped", "yours", "verdict")
        rows = [
            (each.statement, _said(each.shipped), _said(each.yours), each.outcome)
            for each in self.claims
        ]
        about = (
            f"{self.study}, tier {self.tier}: {said}. Shipped: run on {self.cpus[0]}; yours: on "
            f"{self.cpus[1]}."
        )
        return "\n".join([*wrapped(about), "", *listed(head, rows)])


def _said(verdict: Verdict) -> str:
    return verdict.status if verdict.value is None else f"{verdict.status} ({verdict.value:.3g})"


def cpus_of(result: StudyResult) -> str:
    """The kinds of processor on which a study's runs were made."""
    return ", ".join(sorted(set(result.table["cpu"]))) or "an unknown CPU"
