"""The folder where headwise keeps what it can make again: token numbers, weights, kernels."""

import os
from pathlib import Path

ANOTHER_FOLDER = "name another folder in the environment: HEADWISE_CACHE=FOLDER"


def cache_folder() -> Path:
    """`HEADWISE_CACHE`, else headwise in the user's cache folder."""
    if named := os.environ.get("HEADWISE_CACHE"):  # an empty name is none, as of XDG_CACHE_HOME
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "headwise")
