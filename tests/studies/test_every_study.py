"""Every study of the package passes the check before its runs, and survives some rows."""

import os
import subprocess
import sys
import warnings
from typing import get_args

import numpy as np
import pytest

from headwise.lab.check import check_study, made_up_table
from headwise.lab.study import Status
from headwise.studies._catalogue import STUDIES

FETCHED = ("text-ranking", "images")  # their data are checked too, and are not on every machine
OWN_DATA = [name for name in STUDIES if name not in FETCHED]


@pytest.mark.parametrize("name", OWN_DATA)
def test_a_study_can_be_run(name: str) -> None:
    study = STUDIES[name]
    check_study(study, study.tiers["quick"].parts())


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_study_concludes_from_any_few_rows(name: str, rows: int) -> None:
    study = STUDIES[name]
    table = made_up_table(study.tiers["standard"].parts())
    few = table.iloc[np.random.default_rng(rows).choice(len(table), rows, replace=False)]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert study.finding(few.copy()).sentence
        for claim in study.claims:
            assert claim.check(few.copy()).status in get_args(Status)


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
