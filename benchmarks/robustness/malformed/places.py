"""Places that hold no file, wherever a command takes one."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from malformed.arrays import probe_data
from malformed.case import HERE, OUT, PLAN, PROBE, Case, InputClass


def place_classes() -> list[InputClass]:
    """What is no file, what is none of the user's, and a sound file with a strange name."""
    nowhere = [f"{HERE}/pipe", f"{HERE}/around", HERE, f"{HERE}/{'n' * 300}", f"{HERE}/pipe/x"]
    return [
        InputClass("place: no file", _at(nowhere)),
        InputClass("hostile: place", _at(DEVICES)),
        InputClass("hostile: name", _named()),
    ]


DEVICES = [
    "/dev/zero",
    "/dev/full",
    "/dev/urandom",
    "/dev/fd/77",
    "/proc/self/mem",
    "/proc/self/status",
    "/proc/self/cwd/..",
    "/proc/1/root/none/x",
    "/sys/kernel/none",
    "//",
    f"{HERE}/socket",
    f"{HERE}/a.npz/",
    f"{HERE}/a.npz/x",
    f"{HERE}/none/../../none/x",
]
NAMES = [
    "-.npz",
    "--help.npz",
    "a b.npz",
    "a\nb.npz",
    "[red]a.npz",
    ":smile:.npz",
    "\udce9.npz",
    "\u202ezpn.npz",
    "e\u0301.npz",
    "%s%n.npz",
    "{x}.npz",
    "$(id).npz",
    "<script>.npz",
    "a.npz.npz",
    ".npz",
    "a.NPZ",
    "n" * 251 + ".npz",
    "~.npz",
    "*.npz",
    "\x1b[2J.npz",
    "http:a.npz",
    "a:b.npz",
]


def _named() -> SearchStrategy[Case]:
    """A file whose name could be taken for something else; both sound data and none."""
    commands = [
        ["probe", "NAME", *PROBE.split()],
        ["probe", f"{HERE}/NAME", *PROBE.split()],
        ["probe", *PROBE.split(), "--", "NAME"],
        [*PLAN.split(), "--data", "NAME"],
        [*PLAN.split(), "--out", "NAME"],
        ["study", "status", "--store", "NAME"],
        ["study", "run", "head-count", "--jobs", "0", "--store", "NAME"],
        ["report", "NAME"],
        ["build", "retrieval", "--error", "0.5", "--task", "NAME"],
        ["compress", "NAME", "--keep", "0.5"],
    ]
    return st.builds(
        lambda command, name, content: Case(
            [each.replace("NAME", name) for each in command], {name: content}
        ),
        st.sampled_from(commands),
        st.sampled_from(NAMES),
        st.sampled_from([b"", probe_data()]),
    )


def _at(places: list[str]) -> SearchStrategy[Case]:
    """Wherever a file is named."""
    commands = [
        f"probe PLACE {PROBE}",
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
    content = {"a.npz": probe_data()}
    return st.builds(
        lambda command, place: Case(command.replace("PLACE", place).split(), content),
        st.sampled_from(commands),
        st.sampled_from(places),
    )
