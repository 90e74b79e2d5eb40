"""What a user writes by hand: a task, a plan, a text."""

import gzip
import json

from hypothesis import strategies as st

from headwise.allocation import AllocationPlan
from headwise.core.spec import to_data
from headwise.nets import AttentionShape
from headwise.tasks.retrieval import sum_of_maxima
from malformed.case import HERE, OUT, PLAN, Case, InputClass, on_file
from malformed.draw import ANY_TEXT, changed_json

TASK = to_data(sum_of_maxima(6, intrinsic_dim=2))
TASK_FILE = json.dumps(TASK).encode()
PLAN_FILE = to_data(
    AllocationPlan(
        width=16,
        length=8,
        layers=(AttentionShape(heads=2, qk_dim=8, v_dim=8),) * 2,
        budget=10_000,
        schedule="x",
        reasons=(),
    )
)
_WORDS = "the head looks back at every token, “quoted” and café\n" * 20
ENCODED = [
    *(_WORDS.encode(code) for code in ("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "utf-7")),
    *(_WORDS.encode(code, "replace") for code in ("latin-1", "cp1252", "shift-jis", "cp037")),
    _WORDS.replace("\n", "\r\n").encode(),
    _WORDS.replace("\n", "\r").encode(),
    _WORDS.replace("\n", "\u2028").encode(),
    _WORDS.replace(" ", "\0").encode(),
    _WORDS.replace("h", "\ud83d").encode("utf-8", "surrogatepass"),
    _WORDS.encode() + b"\xc0\x80",
    _WORDS.encode() + b"\xf5\x80\x80\x80",
    b"\x1b[2J" * 200,
    b"a" * 2_000_000,
    b"\n" * 100_000,
    "\u0301".encode() * 5000,
    gzip.compress(_WORDS.encode()),
    *(TASK_FILE.decode().encode(code) for code in ("utf-8-sig", "utf-16", "utf-32-be")),
    TASK_FILE.replace(b" ", b"\r\n"),
    TASK_FILE + b"\x1a",
    TASK_FILE.replace(b"{", b'{"type": "x", ', 1),
    TASK_FILE.replace(b'"length"', b'"l\\u0065ngth"'),
]


def text_classes(model: dict[str, bytes]) -> list[InputClass]:
    """JSON with values changed, and text of any bytes; `model` is for plans to be applied to."""
    build = f"build retrieval --task {HERE}/a.json --error 0.5 --seconds 0.05 {OUT}"
    memorise = f"build memorise --task {HERE}/a.json --error 0.5 --seconds 0.05 {OUT}"
    return [
        InputClass("file: task (json)", on_file("a.json", changed_json(TASK), build, memorise)),
        InputClass(
            "file: plan (json)",
            st.builds(
                lambda content, command: Case(command.split(), {"a.json": content, **model}),
                changed_json(PLAN_FILE),
                st.sampled_from(
                    [
                        f"compress {HERE}/model --plan {HERE}/a.json --tokens 200",
                        f"study run allocation --plan {HERE}/a.json --store {HERE}",
                    ]
                ),
            ),
        ),
        InputClass(
            "hostile: text",
            on_file(
                "a.txt",
                st.sampled_from(ENCODED),
                f"{PLAN} --text {HERE}/a.txt --store {HERE}/a.db",
                f"compress {HERE}/no --keep 0.5 --text {HERE}/a.txt",
                f"build retrieval --task {HERE}/a.txt --error 0.5 --seconds 0.05 {OUT}",
            ),
        ),
        InputClass(
            "file: text",
            on_file(
                "a.txt",
                ANY_TEXT,
                f"{PLAN} --text {HERE}/a.txt",
                f"study run allocation --text {HERE}/a.txt --store {HERE}",
                f"compress {HERE}/no --keep 0.5 --text {HERE}/a.txt",
            ),
        ),
    ]
