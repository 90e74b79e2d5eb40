"""The command line, called as the installed script calls it."""

from headwise.cli import main


def run(*arguments: str) -> int:
    """Run a command; gives its exit code."""
    try:
        main(list(arguments))
    except SystemExit as end:
        return int(end.code or 0)
    return 0
