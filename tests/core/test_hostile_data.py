"""Data from anywhere: a sentence for what cannot be used, and no code because a file names it."""

import json
import pickle
import sys
from pathlib import Path

import pytest

from headwise.allocation import AllocationPlan, read_allocation
from headwise.core.errors import InputError
from headwise.core.files import check_can_write, check_can_write_into, check_new_folder, read_json
from headwise.core.spec import from_data, to_data
from headwise.core.trust import is_trusted, trust
from headwise.nets import AttentionShape
from headwise.tasks.maps import Function
from headwise.tasks.retrieval import sum_of_maxima

LAYERS = (AttentionShape(heads=2, qk_dim=8, v_dim=8),)
PLAN = AllocationPlan(
    width=16, length=8, layers=LAYERS, budget=5000, schedule="by hand", reasons=("none",)
)

COMPARED: dict[str, object] = {
    "type": "Comparison",
    "difference": 0.0,
    "low": 0.0,
    "high": 0.0,
    "uniform": 1.0,
    "unit": "nats",
    "seeds": 2,
}

HOSTILE = {
    "nested": b"[" * 50_000,
    "nested objects": b'{"a":' * 50_000,
    "a long number": b"1" * 100_000,
    "not UTF-8": b"\xff\xfe{}",
    "cut short": b'{"type": "All',
    "a type that is a list": b'{"type": ["x"]}',
    "a type that is an object": b'{"type": {}}',
    "nested as JSON allows": b"[" * 400 + b"]" * 400,
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_json_gets_a_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"plan\.json"):
        read_allocation(path)


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (("layers", 0, "heads"), 2.5, "heads is 2.5; accepted is a whole number"),
        (("layers", 0, "heads"), True, "accepted is a whole number"),
        (("layers", 0, "heads"), "2", "accepted is a whole number"),
        (("layers", 0, "heads"), -1, "heads is -1; it is a whole number"),
        (("layers",), [], "at least one"),
        (("layers",), {"type": "Sum"}, "layers is"),
        (("reasons",), "none", "accepted is a list of a text"),
        (
            ("against_uniform",),
            COMPARED | {"low": float("nan")},
            "low is nan; accepted is a num",
        ),
        (("against_uniform",), COMPARED | {"high": float("inf")}, "high is inf; accepted is a n"),
        (("against_uniform",), [1], "against_uniform is"),
    ],
)
def test_a_plan_edited_by_hand_says_which_field_is_wrong(
    place: tuple[str | int, ...], value: object, sentence: str
) -> None:
    data = json.loads(PLAN.to_json())
    parent = data
    for step in place[:-1]:
        parent = parent[step]
    parent[place[-1]] = value
    with pytest.raises(InputError, match=sentence):
        from_data(data)


def test_heads_in_python_are_whole_too() -> None:
    with pytest.raises(InputError, match=r"heads is 2\.5; it is a whole number"):
        AttentionShape(heads=2.5, qk_dim=8, v_dim=8)  # type: ignore[arg-type]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that leaves a trace when it is imported."""
    (tmp_path / "left_a_trace.py").write_text(
        "from pathlib import Path\n"
        "Path(__file__).with_name('trace').write_text('imported')\n"
        "def total(values):\n    return values.sum(-1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "left_a_trace", raising=False)
    monkeypatch.setattr("headwise.core.trust._trusted", set())
    return "left_a_trace"


def test_nothing_is_imported_because_data_say_so(module: str, tmp_path: Path) -> None:
    data = {"type": "Function", "function": f"{module}:total", "count": 2}
    read = from_data(data)
    assert read.function == f"{module}:total"  # the name, as text
    for use in (read.resolve, lambda: pickle.dumps(read)):
        with pytest.raises(InputError, match=f"--trust {module}"):
            use()
    assert not (tmp_path / "trace").exists()
    trust([module])
    assert callable(read.resolve())
    assert (tmp_path / "trace").exists()


def test_a_name_given_in_python_is_the_users_choice(module: str, tmp_path: Path) -> None:
    made = Function(function=f"{module}:total", count=2)
    assert (tmp_path / "trace").exists()
    assert is_trusted(f"{module}.inside:anything")
    assert from_data(to_data(made)) == made
    assert pickle.loads(pickle.dumps(made)).resolve()  # a worker process gets it with its right


def test_places_are_checked_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in ("no/such/a.png", "file/a.png", "a\0b", "x" * 300):
        with pytest.raises(InputError, match="--out: "):
            check_can_write(tmp_path / path, "--out")
    for path in ("file", "file/inside", "a\0b", "/proc/no/such"):
        with pytest.raises(InputError, match=r"cannot be written|NUL"):
            check_can_write_into(tmp_path / path, "--out")
    (tmp_path / "dangling").symlink_to("nothing")
    for path in ("file", "dangling", "file/inside"):
        with pytest.raises(InputError, match=r"exists|cannot be written"):
            check_new_folder(tmp_path / path)
    before = sorted(tmp_path.iterdir())
    check_can_write(tmp_path / "new.json", "--out")
    check_can_write_into(tmp_path / "new" / "deep", "--out")
    check_new_folder(tmp_path / "new")
    assert sorted(tmp_path.iterdir()) == before  # nothing is left by looking


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", tmp_path / "a\0b"):
        with pytest.raises(InputError, match="cannot read"):
            read_json(path)


def test_whole_numbers_that_numpy_could_not_compute_with_are_no_numbers() -> None:
    task = to_data(sum_of_maxima(4, intrinsic_dim=2))
    text = json.dumps(task).replace("0.", "1" + "0" * 30 + ", 0.", 1)
    with pytest.raises(InputError, match="accepted is"):
        from_data(json.loads(text))
