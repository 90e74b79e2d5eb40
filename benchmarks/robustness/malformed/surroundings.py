"""What surrounds a command: variables of the environment, arguments as no person types them."""

import numpy as np
from hypothesis import strategies as st

from malformed.arrays import probe_data
from malformed.case import HERE, PLAN, PROBE, Case, InputClass, on_file
from malformed.texts import TASK_FILE

RUBBISH = [
    "",
    "x",
    "-1",
    "0",
    "1e9",
    "é",
    "[x]",
    "/dev/null",
    "/no/such",
    "a" * 300,
    f"{HERE}/a.npz",
]
VARIABLES = [
    "HEADWISE_CACHE",
    "HEADWISE_ENGINE",
    "HEADWISE_LANES",
    "XDG_CACHE_HOME",
    "HOME",
    "HF_HOME",
    "TMPDIR",
    "COLUMNS",
    "LINES",
    "TERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "LANG",
    "TZ",
    "NUMBA_CACHE_DIR",
    "RAY_ADDRESS",
    "OMP_NUM_THREADS",
]
COMMANDS = [
    f"probe {HERE}/a.npz {PROBE}",
    f"build retrieval --task {HERE}/task.json --error 0.5 --seconds 0.05 --out {HERE}/new",
    f"{PLAN} --text {HERE}/a.txt --store {HERE}/a.db",
    "study list",
    f"study status --store {HERE}/none.db",
    "bound head-count --heads 1 --intrinsic-dim 2 --length 8 --head-dim 2",
]
ARGUMENTS = [
    "--seed 1 --seed 2 --seed x",
    "--seed=1=2",
    "--seed",
    "--json --json --json",
    "--jobs 1 --jobs -0",
    "-- --seed 1",
    "-h -h",
    "@file",
    "--see 1",
    "--SEED 1",
    "—seed 1",
    "--seed ١",
    "--seed 1e0",
    "--seconds 1_0",
    "--seconds 0x1p3",
    "--seconds -0.0",
    "--seconds 5e-324",
    "--max-heads 9223372036854775808",
    "--seed 18446744073709551616",
    "--seed " + "9" * 5000,
    "--inputs " + "a" * 100_000,
    "extra " * 2000,
    "--kind regression --kind nothing",
    "--device cuda:99",
    "--device /dev/null",
    "--no-positions --positions",
    "--install-completion=x",
]


def surrounding_classes() -> list[InputClass]:
    """Sound files in strange surroundings, and strange arguments for a sound file."""
    content = {"a.npz": probe_data(), "a.txt": b"the head looks back " * 40, "task.json": TASK_FILE}
    return [
        InputClass(
            "hostile: environment",
            st.builds(
                lambda command, name, value: Case(command.split(), content, {}, {name: value}),
                st.sampled_from(COMMANDS),
                st.sampled_from(VARIABLES),
                st.sampled_from(RUBBISH),
            ),
        ),
        InputClass(
            "hostile: arguments",
            st.sampled_from(ARGUMENTS).map(
                lambda more: Case([*f"probe {HERE}/a.npz {PROBE}".split(), *more.split()], content)
            ),
        ),
        InputClass(
            "hostile: tokenizer of llama2.c",
            on_file(
                "a.tok",
                st.sampled_from(
                    [
                        b"x",
                        b"\0" * 4,
                        b"\xff" * 99,
                        b"\1\0\0\0" + b"\0\0\0\0\xff\xff\xff\x7f",
                        b"\1\0\0\0" + b"\0\0\xc0\x7f\1\0\0\0\xff" * 9,
                        b"\1\0\0\0" + b"\0\0\0\0\1\0\0\0a" * 9,
                        b"\1\0\0\0" + b"\0\0\0\0\0\0\0\0" * 9,
                        b"\1\0\0\0" + b"\0\0\0\0\xfe\xff\xff\xff" * 9,
                    ]
                ),
                f"convert llama2c {HERE}/a.bin {HERE}/new --tokenizer {HERE}/a.tok",
            ).map(lambda case: Case(case.arguments, {**case.files, "a.bin": _llama2c()})),
        ),
    ]


def _llama2c() -> bytes:
    """A sound checkpoint: width 8, one layer, nine tokens."""
    return np.array([8, 8, 1, 2, 2, 9, 8], np.int32).tobytes() + bytes(4000)
