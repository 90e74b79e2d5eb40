"""Commands as a user types them."""

from collections.abc import Callable

import pytest

from headwise.cli import main

Run = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command; gives its exit code, standard output and standard error."""

    def typed(command: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(command.split())
        printed = capsys.readouterr()
        return int(stopped.value.code or 0), printed.out, printed.err

    return typed
