"""How commands end: codes, pipes, signals, encodings, and text that must stay text."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from command_line import run
from rich.console import Console
from rich.table import Table

from headwise.cli import ending
from headwise.core.errors import InputError, WorkLost

BOUND = ["bound", "head-count", "--heads", "2", "--intrinsic-dim", "4", "--length", "128"]
BOUND += ["--head-dim", "8"]
PLAN = ["plan", "--layers", "1", "--width", "8", "--length", "4", "--budget", "999"]


def ended(command: object) -> int:
    try:
        ending.run_to_the_end(command)  # type: ignore[arg-type]
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def raising(error: BaseException) -> object:
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("not \x1b[2Jthat"), 2),
        (WorkLost("a worker process died"), 5),
        (MemoryError(), 5),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), 5),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"), 5),
        (KeyboardInterrupt(), 130),
    ],
)
def test_every_end_has_its_code_and_a_sentence(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(raising(error)) == code
    said = capsys.readouterr().err
    assert said.startswith("headwise: ")
    assert "Traceback" not in said
    assert "\x1b" not in said  # a terminal's control characters do not act


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_ends_a_job_stops_as_ctrl_c_does(number: int) -> None:
    def command() -> None:
        os.kill(os.getpid(), number)
        time.sleep(5)

    outside = signal.signal(number, signal.SIG_DFL)  # nohup would have it ignored
    try:
        assert ended(command) == 130
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, outside)


def test_a_command_that_is_stopped_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    app = typer.Typer()
    app.command()(raising(KeyboardInterrupt()))
    assert ended(lambda: app([])) == 130  # typer makes a bare exit of it
    assert capsys.readouterr().err == "headwise: stopped\n"


def test_hangup_under_nohup_is_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert ended(lambda: os.kill(os.getpid(), signal.SIGHUP)) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def buffered() -> dict[str, str]:
    """An environment in which Python gathers its output, as it does for most people."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def python(*arguments: str, **more: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "headwise", *arguments],
        env={**buffered(), **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_an_ascii_terminal_gets_escapes_and_json_stays_json() -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for options in ([], ["--json"]):
        with python(*BOUND, *options, **ascii_only) as process:
            out, errors = process.communicate()
        assert process.returncode == 0, errors
        out.decode("ascii")
    assert json.loads(out)


def test_a_name_that_is_no_text_is_written_as_an_escape(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/plan\xff.json")
    ended = python(*PLAN, "--out", name, PYTHONIOENCODING="utf-8:strict")
    out, err = ended.communicate()
    assert (ended.returncode, err) == (0, b"")
    assert out.endswith(rb"plan\udcff.json" + b"\n")
    assert Path(name).is_file()


def test_a_folder_that_is_gone_is_said() -> None:
    here = "import os, tempfile; os.chdir(tempfile.mkdtemp()); os.rmdir(os.getcwd());"
    command = f"{here} from headwise.cli import main; main({PLAN})"
    ended = subprocess.run([sys.executable, "-c", command], capture_output=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"headwise: the folder that this command was started in")


def test_a_reader_that_leaves_is_no_error() -> None:
    with python(*BOUND) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # as `| head -0` does
        errors = process.stderr.read().decode()
    assert (process.returncode, errors) == (141, "")


@pytest.mark.parametrize("arguments", [BOUND, ["--version"]])
def test_a_full_disk_behind_standard_output_is_said(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "headwise", *arguments]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=buffered()
        )
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
    assert "No space left on device" in ended.stderr


@pytest.mark.parametrize("to", [">&-", "2>&-", "<&-", "2>/dev/full", "2> >(true)"])
def test_a_stream_that_is_closed_or_full_changes_no_code(to: str) -> None:
    for arguments, code in (("--version", 0), ("study show no:such", 2)):
        line = f"{sys.executable} -m headwise {arguments} {to}"
        assert subprocess.run(["bash", "-c", line], env=buffered()).returncode == code, line


def test_square_brackets_and_control_characters_stay_text() -> None:
    hostile = "[red]x[/red] [/] [link=file:///]y \x1b[2J\x07 <!--<script>"
    shown = Console(file=io.StringIO(), force_terminal=True, width=200)
    listing = Table("study", box=None)
    listing.add_row(ending.plain(hostile))
    shown.print(listing)
    shown.print(ending.plain(hostile), highlight=False)
    text = shown.file.getvalue()  # type: ignore[attr-defined]
    assert text.count("[red]x[/red] [/] [link=file:///]y") == 2
    assert "\x1b[2J" not in text
    assert "\x07" not in text


def test_a_report_and_a_state_are_checked_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    inside = str(tmp_path / "file" / "x")
    none = str(tmp_path / "none.npz")
    for command in (
        ["study", "run", "head-count", "--store", str(tmp_path / "a.db"), "--report", inside],
        ["study", "export", "head-count", "--store", str(tmp_path / "a.db"), "--out", inside],
        ["report", str(tmp_path / "a.db"), "--out", inside],
        ["probe", none, "--figure", f"{inside}.png"],
        ["probe", none, "--state", inside],
        ["compress", str(tmp_path), "--keep", "0.5", "--out", inside],
        ["inspect", str(tmp_path), "--report", f"{inside}.html"],
        ["build", "retrieval", "--length", "4", "--error", "0.1", "--out", inside],
        ["build", "memorise", "--length", "4", "--error", "0.1", "--out", inside],
        ["build", "frontier", "--out", inside],
        ["build", "witness", "--out", inside],
        ["bound", "phase-map", "--intrinsic-dim", "2", "--head-dim", "2", "--out", inside],
        [*PLAN, "--out", inside],
    ):
        assert run(*command) == 2, command
        said = capsys.readouterr().err
        assert "cannot be written" in said or "there is no folder" in said, said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_colons_in_a_name_become_no_emoji(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("study", "show", "a:b:c") == 2
    assert "no study at 'a:b:c'" in capsys.readouterr().err
    assert ended(raising(InputError("no study at 'my:smile:[x]'"))) == 2
    assert "my:smile:[x]" in capsys.readouterr().err


def test_ctrl_c_after_the_end_changes_nothing() -> None:
    program = (
        "import atexit, os, signal, sys\n"
        "from headwise.cli import main\n"
        "from headwise.cli.ending import run_to_the_end\n"
        "run_to_the_end(lambda: atexit.register(os.kill, os.getpid(), signal.SIGINT))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
