"""Commands whose options are drawn, without a file that could be read."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from malformed.arrays import probe_data
from malformed.case import HERE, OUT, PROBE, Case, InputClass
from malformed.draw import WORDS


def option_classes() -> list[InputClass]:
    """Every command that computes, with options that it cannot have."""
    return [
        InputClass(
            "options: bound",
            st.one_of(
                _options(
                    "bound head-count",
                    ["--heads", "--intrinsic-dim", "--length", "--head-dim", "--set-fraction"],
                    "--heads 1 --intrinsic-dim 2 --length 8 --head-dim 2",
                ),
                _options(
                    "bound rank",
                    ["--dim", "--rank", "--heads", "--error", "--values", "--highest-degree"],
                    "--dim 8 --rank 2",
                ),
                _options(
                    "bound saturation",
                    ["--epsilon", "--value-diameter", "--score-bound", "--length"],
                    "--epsilon 0.1",
                ),
                _options(
                    "bound phase-map",
                    ["--heads", "--lengths", "--set-fraction", "--out"],
                    f"--intrinsic-dim 2 --head-dim 2 --lengths x {OUT}",
                ),
            ),
        ),
        InputClass(
            "options: build",
            st.one_of(
                _options(
                    "build retrieval",
                    [
                        "--length",
                        "--preset",
                        "--error",
                        "--temperature",
                        "--heads",
                        "--low",
                        "--high",
                        "--out",
                    ],
                    f"--length 4 --error 0.5 --seconds 0.05 {OUT}",
                ),
                _options(
                    "build memorise",
                    ["--length", "--preset", "--error", "--low", "--high", "--out"],
                    f"--length 4 --error -1 --seconds 0.05 {OUT}",
                ),
                _options("build frontier", ["--lengths", "--out"], f"--lengths x {OUT}"),
                _options(
                    "build witness",
                    ["--preset", "--length", "--net", "--heads", "--steps", "--seeds", "--reach"],
                    f"--heads x {OUT}",
                ),
                _options(
                    "build trials", ["--count", "--seconds", "--seed"], "--count 1 --seconds 0.01"
                ),
            ),
        ),
        InputClass(
            "options: study, report",
            st.one_of(
                _options(
                    "study run head-count",
                    ["--tier", "--jobs", "--text", "--plan", "--report"],
                    f"--store {HERE}",
                ),
                _options("study export head-count", ["--format", "--tier", "--store", "--out"]),
                _options("study status", ["--store"]),
                _options("report no.db", ["--study", "--tier", "--out", "--trust"]),
                WORDS.map(lambda name: Case(["study", "show", name])),
                WORDS.map(lambda name: Case(["study", "run", name, "--store", HERE])),
            ),
        ),
        InputClass(
            "options: plan",
            _options(
                "plan",
                [
                    "--layers",
                    "--width",
                    "--length",
                    "--budget",
                    "--multiple",
                    "--intrinsic-dim",
                    "--seconds",
                    "--seed",
                    "--jobs",
                    "--text",
                    "--data",
                    "--out",
                ],
                "--layers 2 --width 16 --length 8 --budget 4096",
            ),
        ),
        InputClass(
            "options: probe",
            st.builds(
                lambda case: Case(case.arguments, {"a.npz": probe_data()}),
                _options(
                    f"probe {HERE}/a.npz {PROBE}",
                    [
                        "--inputs",
                        "--targets",
                        "--mask",
                        "--sequence",
                        "--kind",
                        "--max-heads",
                        "--seed",
                        "--state",
                        "--figure",
                        "--jobs",
                    ],
                ),
            ),
        ),
        InputClass(
            "options: compress, inspect",
            st.one_of(
                _options(
                    f"compress {HERE}/none",
                    [
                        "--out",
                        "--keep",
                        "--kv-bytes",
                        "--max-loss",
                        "--plan",
                        "--method",
                        "--finetune",
                        "--text",
                        "--eval-text",
                        "--tokens",
                        "--seed",
                    ],
                ),
                _options(f"inspect {HERE}/none", ["--text", "--tokens", "--report", "--seed"]),
            ),
        ),
    ]


def _options(command: str, names: list[str], fixed: str = "") -> SearchStrategy[Case]:
    """The command with some of its options, at least one of which is drawn."""
    chosen = st.lists(st.tuples(st.sampled_from(names), WORDS), min_size=1, max_size=3)
    return chosen.map(
        lambda pairs: Case(
            [*command.split(), *fixed.split(), *(word for pair in pairs for word in pair)]
        )
    )
