"""Where headwise keeps what it can make again."""

from pathlib import Path

import pytest

from headwise.core.cache import cache_folder


def test_the_folder_that_was_named_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWISE_CACHE", "/fast/headwise")
    monkeypatch.setenv("XDG_CACHE_HOME", "/other")
    assert cache_folder() == Path("/fast/headwise")


def test_then_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWISE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/other")
    assert cache_folder() == Path("/other/headwise")


@pytest.mark.parametrize("empty", [True, False])
def test_then_the_usual_place_in_the_home(monkeypatch: pytest.MonkeyPatch, empty: bool) -> None:
    monkeypatch.delenv("HEADWISE_CACHE", raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    if empty:
        monkeypatch.setenv("XDG_CACHE_HOME", "")
    else:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path("/home/someone/.cache/headwise")


def test_an_empty_name_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HEADWISE_CACHE", "")
    assert cache_folder() == tmp_path / "headwise"
