"""Places that hold no file, wherever a command takes one."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from malformed.arrays import probe_data
from malformed.case import HERE, OUT, PLAN, PROBE, Case, InputClass


def place_classes() -> list[InputClass]:
    """The one class of them."""
    return [InputClass("place: no file", _no_files())]


def _no_files() -> SearchStrategy[Case]:
    """Wherever a file is named: a pipe, a folder, a link to itself, a name that is too long."""
    commands = [
        "probe PLACE",
        f"probe {HERE}/a.npz {PROBE} --state PLACE",
        "build retrieval --error 0.5 --task PLACE",
        "bound extraction --heads 1 --head-dim 1 --kernel PLACE",
        "bound calculator --out PLACE",
        "bound phase-map --intrinsic-dim 2 --head-dim 2 --lengths 8 --out PLACE",
        f"{PLAN} --text PLACE",
        f"{PLAN} --data PLACE",
        f"{PLAN} --out PLACE",
        "study run head-count --jobs 0 --store PLACE",
        "study status --store PLACE",
        f"report PLACE {OUT}",
        "report PLACE --all",
        "probe-eval --zoo --seed 0 --tasks 1 --seconds nan --out PLACE",
        f"convert llama2c PLACE {HERE}/new",
        "build assumptions --net PLACE",
    ]
    places = [f"{HERE}/pipe", f"{HERE}/around", HERE, f"{HERE}/{'n' * 300}", f"{HERE}/pipe/x"]
    content = {"a.npz": probe_data()}
    return st.builds(
        lambda command, place: Case(command.replace("PLACE", place).split(), content),
        st.sampled_from(commands),
        st.sampled_from(places),
    )
