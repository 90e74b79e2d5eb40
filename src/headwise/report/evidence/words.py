"""docs/evidence.md: the same as the page, in Markdown."""

from headwise.lab.study import Claim, Verdict
from headwise.report.evidence.gather import PaperEvidence, StudyEvidence, said_number

LEAD = (
    "Every claim of the papers, and of their readers, that headwise tests: the verdict, the number "
    "with where other seeds would put it, the published one beside ours, and the command that runs "
    "it again."
)
RULE = (
    "A verdict stands if other seeds would give it with a probability of 95 % at least, resampled "
    "from the seeds that were run, if every setting it rests on has four seeds (eight where one is "
    "stuck), and if neither half of the seeds decides the opposite. Otherwise it is “cannot tell”."
)


def markdown(papers: list[PaperEvidence]) -> str:
    """The whole page."""
    blocks = ["# Evidence", LEAD, RULE]
    blocks.append(
        "This page is made by `headwise evidence page` from the tables in the folder `evidence`; "
        "`headwise evidence check` recomputes it, and CI fails if the two disagree. "
        "`headwise evidence rerun STUDY` does some of a table's runs again, drawn at random, and "
        "asks whether they are equal to the last bit; `headwise evidence compare STORE` puts a "
        "whole run of your own beside it, claim by claim."
    )
    for paper in papers:
        blocks += [f"## {paper.title}", f"**{paper.tally}**"]
        for study in paper.studies:
            blocks += _study(study)
    return "\n\n".join(blocks) + "\n"


def _study(each: StudyEvidence) -> list[str]:
    blocks = [f"### {each.study.name}: {each.study.title}"]
    if each.found is None:
        unrun = f"Not run yet. `{each.command}` ({each.price})"
        return [*blocks, unrun, "\n".join(f"- {claim.statement}" for claim in each.study.claims)]
    blocks.append(each.answer)
    blocks.append("\n".join(_claim(claim, verdict) for claim, verdict in each.verdicts))
    blocks.append(f"`{each.command}`: {each.price}. {each.made_with}.")
    return blocks


def _claim(claim: Claim, verdict: Verdict) -> str:
    said = [verdict.confidence, said_number(verdict)]
    if verdict.status != "not tested":
        said.append(verdict.numbers)
    more = "".join(f"\n    {line}  " for line in said if line)
    return f"- **{verdict.status}**: {claim.statement} ({claim.source})  {more}".rstrip()
