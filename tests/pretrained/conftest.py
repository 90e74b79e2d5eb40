"""Small random models of every family; real ones where HEADWISE_REAL_MODELS names their folder."""

import os
from pathlib import Path

import pytest
from small_models import FAMILIES


@pytest.fixture(params=sorted(FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def real_models() -> Path:
    folder = os.environ.get("HEADWISE_REAL_MODELS")
    if folder is None:
        pytest.skip("HEADWISE_REAL_MODELS does not name a folder (benchmarks/fetch_models.py)")
    return Path(folder)
