"""What each command is called in Python; `--help` says it, and a test compares the options."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Twin:
    """The function behind a command. An option has the name of the parameter that it sets."""

    place: str
    """'module:function'"""
    also: tuple[str, ...] = ()
    """Further functions that the command calls, and whose parameters some options are."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Options in a form that suits a shell, with the parameters that they make up."""

    @property
    def called(self) -> str:
        """As a user writes it."""
        return self.place.replace(":", ".")


_TASK = {"preset": "task", "length": "task", "trust": "task"}
_BOX = {"low": "box", "high": "box"}
_ATTACK = ("headwise.build.certify.certificate:Certificate.attack",)
_HEAD_COUNT = "headwise.theory.head_count"
_STUDIES = "headwise.studies"
_EVIDENCE = "headwise.report.evidence"
_STUDY = {"name": "study"}

TWINS = {
    "bound head-count": Twin(f"{_HEAD_COUNT}:lower_bound_exponent"),
    "bound calculator": Twin("headwise.report.pages.calculator:write_calculator"),
    "bound phase-map": Twin(f"{_HEAD_COUNT}:phase_map"),
    "bound rank": Twin("headwise.theory.rank:low_rank_bound"),
    "bound nearly-full-rank": Twin("headwise.theory.rank:exact_below_full_rank"),
    "bound bands": Twin("headwise.theory.rank:banded_error_bound"),
    "bound extraction": Twin("headwise.theory.allocation:extraction_bound"),
    "bound extraction-splits": Twin("headwise.theory.allocation:extraction_splits"),
    "bound saturation": Twin("headwise.theory.saturation:saturation_bound"),
    "build retrieval": Twin("headwise.build:retrieval", _ATTACK, _TASK | _BOX),
    "build memorise": Twin("headwise.build:memorise", _ATTACK, _TASK | _BOX),
    "build frontier": Twin("headwise.build:frontier"),
    "build witness": Twin(
        "headwise.build:witness",
        also=("headwise.studies.head_count.witnesses:trained_witnesses",),
        words=_TASK,
    ),
    "build random-features": Twin("headwise.build:random_features_layer"),
    "build assumptions": Twin("headwise.build:check_network_assumptions", words=_BOX),
    "build trials": Twin("headwise.build:trials"),
    "study list": Twin(f"{_STUDIES}:list_studies"),
    "study show": Twin(f"{_STUDIES}:show", words=_STUDY),
    "study run": Twin("headwise:run_study", words=_STUDY | {"text": "texts", "plan": "plans"}),
    "study fetch": Twin(f"{_STUDIES}:fetch_study", words=_STUDY),
    "study status": Twin(f"{_STUDIES}:status"),
    "study export": Twin(f"{_STUDIES}:export_study", words=_STUDY),
    "evidence add": Twin(f"{_EVIDENCE}:add_evidence"),
    "evidence page": Twin(f"{_EVIDENCE}:write_evidence"),
    "evidence check": Twin(f"{_EVIDENCE}:check_evidence"),
    "evidence compare": Twin(f"{_EVIDENCE}:compare_evidence"),
    "evidence rerun": Twin(f"{_EVIDENCE}:rerun_evidence", words=_STUDY),
    "report": Twin("headwise.report:report"),
    "convert llama2c": Twin("headwise.pretrained:convert_llama2c"),
    "compress": Twin("headwise:compress"),
    "inspect": Twin("headwise:inspect"),
    "plan": Twin("headwise:plan"),
    "probe": Twin("headwise:probe"),
    "probe-eval": Twin("headwise.advise.probe:probe_eval"),
}
"""A command → its twin. The names of the front door first, where there is one."""
