"""A stand-in for a study that a store only names: its runs, without its claims and figures.

A store can hold the address of a study of a user's own module. Importing that module would run
it, and a file may not make anyone run code (see `core.trust`); its runs can still be shown.
"""

import pandas as pd

from headwise.lab.kinds import Quantity
from headwise.lab.study import Conclusion, Study, Tier

_MOST = 4  # settings that a table still shows readably


def stand_in(address: str, tier: str, results: pd.DataFrame) -> Study:
    """A study of these results that asks nothing and says why."""
    described = [name for name in results.columns if name not in ("part", "kind")]
    described = described[: described.index("seed")]
    varying = [name for name in described if results[name].nunique(dropna=False) > 1][:_MOST]
    varying = [name for name in varying if results[name].notna().all()] or ["kind"]
    module = address.partition(":")[0]
    units = sorted(set(results["unit"]))
    conclusion = Conclusion(
        f"The store names the study {address}, and nothing is imported because a file says so: "
        "here are its runs, without the study's own figures, claims and finding.",
        None,
        f"headwise report STORE --trust {module}, if you know the module",
    )
    return Study(
        name=address,
        title=address,
        question="",
        address=address,
        tiers={tier: Tier("unknown", dict)},
        parts={part: part for part in results["part"].unique()},
        rows=("part", *varying[:-1]),
        columns=varying[-1],
        setting=tuple(varying),
        finding=lambda _: conclusion,
        error=Quantity("error", "what the runs recorded as their error", ", ".join(units)),
    )
