"""A file a published experiment."""

import importlib

from headwise.core.errors import InputError, require
from headwise.lab.study import Study
from headwise.studies.allocation.dimension_or_count import DIMENSION_OR_COUNT
from headwise.studies.allocation.ngram_heads import NGRAM_HEADS
from headwise.studies.allocation.saturation import SATURATION
from headwise.studies.allocation.schedules import ALLOCATION
from headwise.studies.head_count.synthetic import HEAD_COUNT
from headwise.studies.rank.depth import RANK_DEPTH
from headwise.studies.rank.dimension import RANK_DIMENSION
from headwise.studies.rank.in_context import RANK_IN_CONTEXT
from headwise.studies.rank.points import RANK_POINTS
from headwise.studies.rank.positions import RANK_POSITIONS
from headwise.studies.rank.random_features import RANK_RANDOM_FEATURES

STUDIES = {
    study.name: study
    for study in (
        HEAD_COUNT,
        RANK_DEPTH,
        RANK_POINTS,
        RANK_DIMENSION,
        RANK_POSITIONS,
        RANK_RANDOM_FEATURES,
        RANK_IN_CONTEXT,
        NGRAM_HEADS,
        ALLOCATION,
        SATURATION,
        DIMENSION_OR_COUNT,
    )
}


def find_study(name: str) -> Study:
    """The study of that name, or a user's own by its import path, 'module:name'."""
    if ":" in name:
        return _import_study(name)
    require(
        name in STUDIES,
        f"there is no study {name!r}; the studies are {', '.join(STUDIES)}, and 'module:name' "
        "names one of your own",
    )
    return STUDIES[name]


def _import_study(path: str) -> Study:
    module, _, attribute = path.partition(":")
    try:
        study = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"no study at {path!r}: {error}") from error
    require(isinstance(study, Study), f"{path!r} is not a headwise.lab.study.Study")
    return study
