"""Every study of the package passes the check before its runs, and survives some rows."""

import os
import re
import subprocess
import sys
import warnings
from functools import cache
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from headwise.lab.check import check_study, made_up_table
from headwise.lab.steadiness import conclude, judge_all
from headwise.lab.study import Status, with_confidence
from headwise.studies._catalogue import STUDIES
from house import ROOT

FETCHED = ("text-ranking", "images")  # their data are checked too, and are not on every machine
OWN_DATA = [name for name in STUDIES if name not in FETCHED]


@pytest.mark.parametrize("name", OWN_DATA)
def test_a_study_can_be_run(name: str) -> None:
    study = STUDIES[name]
    check_study(study, study.tiers["quick"].parts())


@cache
def made_up(name: str) -> pd.DataFrame:
    """A table of the standard tier, made once."""
    return made_up_table(STUDIES[name].tiers["standard"].parts())


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_study_concludes_from_any_few_rows(name: str, rows: int) -> None:
    study = STUDIES[name]
    table = made_up(name)
    few = table.iloc[np.random.default_rng(rows).choice(len(table), rows, replace=False)]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert study.finding(few.copy()).sentence
        for claim in study.claims:
            assert claim.check(few.copy()).status in get_args(Status)


@pytest.mark.parametrize("name", STUDIES)
def test_a_run_alone_decides_nothing_and_nor_do_runs_that_diverged(name: str) -> None:
    study, table = STUDIES[name], made_up(name)
    missing = "1 of 9 runs are finished"
    lost = table.assign(error=np.nan, diverged=True)
    for rows, why in ((table.iloc[[0]], missing), (table.iloc[[-1]], missing), (lost, "")):
        verdicts, found = judge_all(study, rows, missing=why), conclude(study, rows)
        assert {each.status for each in verdicts.values()} <= {"cannot tell", "not tested"}
        assert not found.conclusive
        said = [found.sentence, *map(with_confidence, verdicts.values())]
        assert not [each for each in said if re.search(r"\bnan\b", each)]


@pytest.mark.parametrize("name", STUDIES)
def test_one_seed_of_all_settings_is_told_without_numbers_that_are_none(name: str) -> None:
    study, table = STUDIES[name], made_up(name)
    one = table[table["seed"] == table["seed"].min()]
    with np.errstate(all="ignore"):
        said = [study.finding(one).sentence, *(claim.check(one).numbers for claim in study.claims)]
    assert not [each for each in said if re.search(r"\bnan\b", each)]


KEYS = """
from headwise.studies._catalogue import STUDIES
for name, study in STUDIES.items():
    parts = study.parts_of_evidence or (lambda tier: study.tiers[tier].parts())
    for tier in ("quick", "standard"):
        print(name, tier, sorted({run.key for runs in parts(tier).values() for run in runs}))
"""


def test_a_runs_specification_is_the_same_on_every_cpu() -> None:
    """A store, or a table of evidence, made on one machine is that of the same runs on another."""
    other = {"OPENBLAS_CORETYPE": "Prescott"}  # sums in another order; ignored where not x86
    said = [
        subprocess.run(
            [sys.executable, "-c", KEYS], env=os.environ | more, capture_output=True, check=True
        ).stdout.splitlines()
        for more in ({}, other)
    ]
    assert said[0] == said[1]


def test_the_page_of_head_counts_says_what_its_tiers_are() -> None:
    words = (ROOT / "docs" / "head-count.md").read_text()
    study = STUDIES["head-count"]
    for name, tier in study.tiers.items():
        runs = {run.key for part in tier.parts().values() for run in part}
        assert f"| {name} | {len(runs)} | {tier.price} |" in words
