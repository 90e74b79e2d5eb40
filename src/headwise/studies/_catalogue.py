"""The studies there are, and a user's own by their import path."""

import importlib
from dataclasses import replace
from typing import Any

from headwise.core.errors import InputError, require
from headwise.core.trust import is_trusted, look_here, trust
from headwise.lab.study import Study
from headwise.studies.allocation.dimension_or_count import DIMENSION_OR_COUNT
from headwise.studies.allocation.ngram_heads import NGRAM_HEADS
from headwise.studies.allocation.saturation import SATURATION
from headwise.studies.allocation.schedules import ALLOCATION
from headwise.studies.head_count.gaps import HEAD_COUNT_GAPS
from headwise.studies.head_count.synthetic import HEAD_COUNT
from headwise.studies.rank.depth import RANK_DEPTH
from headwise.studies.rank.dimension import RANK_DIMENSION
from headwise.studies.rank.in_context import RANK_IN_CONTEXT
from headwise.studies.rank.points import RANK_POINTS
from headwise.studies.rank.positions import RANK_POSITIONS
from headwise.studies.rank.random_features import RANK_RANDOM_FEATURES
from headwise.studies.real_data.images import IMAGES
from headwise.studies.real_data.text_ranking import TEXT_RANKING
from headwise.studies.variants.study import VARIANTS

STUDIES = {
    study.name: study
    for study in (
        HEAD_COUNT,
        HEAD_COUNT_GAPS,
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
        TEXT_RANKING,
        IMAGES,
        VARIANTS,
    )
}


def list_studies() -> list[Study]:
    """The studies that come with headwise."""
    return list(STUDIES.values())


def find_study(name: str) -> Study:
    """The study of that name, or a user's own by its import path, 'module:NAME'.

    The current folder is importable, as it is for `python -m`. Whoever calls this with an address
    chose to run its module, which is trusted from then on; for names out of a file there is
    `is_importable`.
    """
    if ":" in name:
        trust([name.partition(":")[0]])
        return _import_study(name)
    require(
        name in STUDIES,
        f"there is no study {name!r}; the studies are {', '.join(STUDIES)}, and 'module:NAME' "
        "names one of your own",
    )
    return STUDIES[name]


def is_importable(name: str) -> bool:
    """May a study that a file names be found: one of headwise's, or of a trusted module?"""
    return is_trusted(name) if ":" in name else name in STUDIES


def show(study: Study | str) -> dict[str, Any]:
    """What a study asks, its tiers with their prices and runs, and the claims it checks."""
    study = find_study(study) if isinstance(study, str) else study
    try:
        return _shown(study)
    except (AttributeError, TypeError) as error:  # a field that is nothing of what a study holds
        raise InputError(
            f"study {study.name} has a mistake ({type(error).__name__}: {error})"
        ) from error


def _shown(study: Study) -> dict[str, Any]:
    tiers = {}
    for name in study.tiers:
        tier, parts = study.tier(name), study.runs(name)
        tiers[name] = {
            "price": tier.price,
            "runs": len({run.key for runs in parts.values() for run in runs}),
            "parts": {part: len(runs) for part, runs in parts.items()},
        }
    return {
        "name": study.name,
        "title": study.title,
        "question": study.question,
        "paper": study.paper,
        "tiers": tiers,
        "claims": [claim.statement for claim in study.claims],
    }


def _import_study(address: str) -> Study:
    module, _, attribute = address.partition(":")
    require(
        all(name.isidentifier() for name in (*module.split("."), attribute)),
        f"no study at {address!r}: an address is module:NAME, such as my_studies:MINE",
    )
    look_here()
    try:
        study = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"no study at {address!r}: {error}") from error
    except (Exception, SystemExit) as error:
        raise InputError(
            f"the module of the study {address!r} has a mistake ({type(error).__name__}: {error})"
        ) from error
    require(isinstance(study, Study), f"{address!r} is not a headwise.lab.study.Study")
    return replace(study, address=address)
