"""Result tables as files: evidence/NAME.parquet holds a study's tier, whole, with its versions.

A row is a run, with its seed and the hash of its specification. A table is believed only if its
hashes are exactly those of the runs that the study's tier has today.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from headwise.core.errors import InputError, require
from headwise.core.files import appearing, parse_json
from headwise.lab.result import StudyResult
from headwise.lab.study import Study

LARGEST = 300_000  # bytes of a table
_ABOUT = b"headwise"  # the key of the file's own words about itself


@dataclass(frozen=True)
class EvidenceTable:
    """A study's tier as it was run: its result and the versions that ran it."""

    result: StudyResult
    versions: dict[str, str]

    @property
    def cpu_minutes(self) -> float:
        """What the runs took, of one processor core."""
        runs = self.result.table.drop_duplicates("key")
        return float(runs["cpu_seconds"].sum()) / 60


def planned_runs(study: Study, tier: str) -> set[tuple[str, str]]:
    """(part, hash of the specification) of every run that the tier's table has today."""
    parts = study.runs(tier) if study.parts_of_evidence is None else study.parts_of_evidence(tier)
    return {(part, run.key) for part, runs in parts.items() for run in runs}


def what_is_wrong(study: Study, tier: str, table: pd.DataFrame) -> str:
    """Why a table is not that of the study's tier, in a sentence; nothing if it is."""
    planned = planned_runs(study, tier)
    found = set(zip(table["part"], table["key"], strict=True))
    other, missing = len(found - planned), len(planned - found)
    if other:
        return (
            f"{other} of its {len(found)} runs were made by specifications that tier {tier} of "
            f"{study.name} no longer has"
        )
    return f"{missing} of {len(planned)} runs of tier {tier} are missing" if missing else ""


def write_table(result: StudyResult, versions: dict[str, str], path: Path) -> None:
    """Write a whole tier; refuse one that is not whole, or too large to ship."""
    wrong = what_is_wrong(result.study, result.tier, result.table)
    require(
        not wrong,
        f"{result.study.name}: {wrong}; run: headwise study run {result.study.name} --tier "
        f"{result.tier}",
    )
    rows = result.table.drop(columns="specification")
    about = {"study": result.study.name, "tier": result.tier, "versions": versions}
    table = pa.Table.from_pandas(rows, preserve_index=False)
    words = {_ABOUT: json.dumps(about, sort_keys=True).encode()}
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **words})
    with appearing(path) as scratch:
        pq.write_table(table, scratch, compression="zstd", compression_level=19)
        size = scratch.stat().st_size
        require(size <= LARGEST, f"the table has {size:,} bytes; at most {LARGEST:,} are shipped")


def read_table(path: Path, study: Study) -> EvidenceTable:
    """Read a study's table; refuse one that is damaged or of another study."""
    try:
        found = pq.read_table(path)
        about: Any = parse_json((found.schema.metadata or {})[_ABOUT].decode())
        tier, versions, name = about["tier"], about["versions"], about["study"]
        rows = found.to_pandas()
        keys = int(rows["key"].nunique())
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError, InputError) as error:
        raise InputError(f"{path} is no table of evidence, or it is damaged ({error})") from error
    require(name == study.name, f"{path} is a table of {name}, not of {study.name}")
    study.tier(tier)
    return EvidenceTable(StudyResult(study, tier, rows, keys), versions)
