"""Small random models of every family; real ones where HEADWISE_REAL_MODELS names their folder."""

import os
from pathlib import Path

import pytest
from small_models import FAMILIES, common_words, small_model

from headwise.pretrained.text.calibration import packaged_text


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurements of one test are not another's."""
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "cache"))


@pytest.fixture(params=sorted(FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def real_models() -> Path:
    folder = os.environ.get("HEADWISE_REAL_MODELS")
    if folder is None:
        pytest.skip("no HEADWISE_REAL_MODELS: a folder of benchmarks/pretrained/fetch_models.py")
    return Path(folder)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    small_model("llama").save_pretrained(folder)
    common_words().save_pretrained(folder)
    return folder


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(packaged_text("held_out")[:9000], "utf-8")
    return path
