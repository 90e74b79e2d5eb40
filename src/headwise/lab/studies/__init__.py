"""A file a published experiment."""

import importlib

from headwise.errors import InputError, require
from headwise.lab.studies.allocation import ALLOCATION
from headwise.lab.studies.dimension_or_count import DIMENSION_OR_COUNT
from headwise.lab.studies.head_count import HEAD_COUNT
from headwise.lab.studies.ngram_heads import NGRAM_HEADS
from headwise.lab.studies.rank_depth import RANK_DEPTH
from headwise.lab.studies.rank_dimension import RANK_DIMENSION
from headwise.lab.studies.rank_in_context import RANK_IN_CONTEXT
from headwise.lab.studies.rank_points import RANK_POINTS
from headwise.lab.studies.rank_positions import RANK_POSITIONS
from headwise.lab.studies.rank_random_features import RANK_RANDOM_FEATURES
from headwise.lab.studies.saturation import SATURATION
from headwise.lab.study import Study

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
