"""A file a published experiment; and the Python twins of `headwise study`."""

from headwise.studies._catalogue import STUDIES, find_study, is_importable, list_studies, show
from headwise.studies._verbs import export_study, fetch_study, run_study, status, write_rows

__all__ = [
    "STUDIES",
    "export_study",
    "fetch_study",
    "find_study",
    "is_importable",
    "list_studies",
    "run_study",
    "show",
    "status",
    "write_rows",
]
