"""Malformed input: what `fuzz.py` draws from, and what running it comes to."""

from pathlib import Path

from malformed.archives import archive_classes
from malformed.arrays import array_classes
from malformed.case import ANSWERS, DEFECTS, OUTCOMES, Case, InputClass
from malformed.checkpoints import checkpoint_classes
from malformed.documents import document_classes
from malformed.models import model_classes, small_model
from malformed.options import option_classes
from malformed.places import place_classes
from malformed.stores import store_classes
from malformed.surroundings import surrounding_classes
from malformed.tables import table_classes
from malformed.texts import text_classes

__all__ = ["ANSWERS", "DEFECTS", "OUTCOMES", "Case", "InputClass", "classes"]


def classes(folder: Path) -> list[InputClass]:
    """All classes of input; `folder` is for files to begin with."""
    model = small_model(folder)
    return [
        *option_classes(),
        *array_classes(),
        *archive_classes(),
        *table_classes(),
        *place_classes(),
        *surrounding_classes(),
        *text_classes(model),
        *document_classes(),
        *store_classes(folder),
        *model_classes(model),
        *checkpoint_classes(model),
    ]
