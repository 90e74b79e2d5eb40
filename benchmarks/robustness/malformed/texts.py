"""What a user writes by hand: a task, a plan, a text."""

from hypothesis import strategies as st

from headwise.allocation import AllocationPlan
from headwise.core.spec import to_data
from headwise.nets import AttentionShape
from headwise.tasks.retrieval import sum_of_maxima
from malformed.case import HERE, OUT, PLAN, Case, InputClass, on_file
from malformed.draw import ANY_TEXT, changed_json

TASK = to_data(sum_of_maxima(6, intrinsic_dim=2))
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
