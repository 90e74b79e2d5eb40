"""Numbers that the papers print, as CSV files beside this module."""

from collections.abc import Mapping
from importlib.resources import files

import pandas as pd


def published_tables(parts: Mapping[str, str]) -> pd.DataFrame:
    """The published tables of a study's parts, one below the other."""
    frames = []
    for part, name in parts.items():
        with (files(__name__) / name).open() as file:
            frames.append(pd.read_csv(file).assign(part=part))
    return pd.concat(frames, ignore_index=True)
