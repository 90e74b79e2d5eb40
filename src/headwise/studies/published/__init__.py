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


def as_references(published: pd.DataFrame, label: str, naming: str = "") -> pd.DataFrame:
    """Published numbers as what a figure draws in grey: a curve for each value of `naming`."""
    labels = label + published[naming].astype(str) if naming else label
    return published.assign(label=labels).rename(columns={"error": "error_min"})


def in_every_panel(references: pd.DataFrame, column: str, ours: pd.DataFrame) -> pd.DataFrame:
    """The same references in the panel of each value that our runs have in the column."""
    panels = [references.assign(**{column: value}) for value in sorted(set(ours[column]))]
    return pd.concat(panels, ignore_index=True)
