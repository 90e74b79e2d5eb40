"""How a command ends: an exit code means one thing in every command (docs/exit-codes.md)."""

import atexit
import codecs
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.markup import escape

from headwise.core.errors import InputError, WorkLost
from headwise.core.files import reason
from headwise.core.lines import fit
from headwise.core.memory import guard_imports

GATE_FAILED = 1  # an answer, and it is no: a quality gate, a certificate, runs that failed
UNUSABLE_INPUT = 2
REFUSED = 3  # the input is fine, the evidence supports no answer
OUT_OF_TIME = 4  # what was known when the time was over; the same command goes on
WORK_LOST = 5  # a worker died or memory ran out; the same command goes on
STOPPED = 130  # Ctrl-C, SIGTERM or SIGHUP
NOBODY_READS = 141  # the reader of standard output is gone

_NO_CONTROL = {code: "�" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def plain(text: object) -> str:
    """Text from anywhere for rich: neither `[x]` nor a terminal's control characters act."""
    return escape(str(text).translate(_NO_CONTROL))


class Terminal(Console):
    """rich's console, which would end the process by itself, with code 1, when nobody reads."""

    def on_broken_pipe(self) -> None:
        """Leave it to `run_to_the_end`; rich calls this where it caught the error."""
        raise


def console(stderr: bool = False) -> Console:
    """Where sentences go; `module:name:` in one stays what it is, and becomes no emoji."""
    return Terminal(stderr=stderr, emoji=False)


def run_to_the_end(command: Callable[[], object]) -> None:
    """Run a command; however it ends, say it in a sentence and with its exit code."""
    _open_what_is_closed()
    _accept_any_encoding()
    try:
        with _signals_as_ctrl_c(), _written_out():
            _check_folder()
            guard_imports()
            command()
    except InputError as error:
        _say(error)
        sys.exit(UNUSABLE_INPUT)
    except WorkLost as error:
        _say(error)
        sys.exit(WORK_LOST)
    except (MemoryError, ImportError, RuntimeError) as error:
        if not _of_memory(error):
            raise
        _say("there is not enough memory for this; a smaller model, fewer tokens or jobs help")
        sys.exit(WORK_LOST)
    except BrokenPipeError:
        _leave_nothing_to_flush("stdout")
        sys.exit(NOBODY_READS)
    except OSError as error:  # of the machine: a full disk behind standard output, a lost medium
        _leave_nothing_to_flush("stdout")
        _say(f"cannot go on: {error.filename or 'standard output or a file'}: {reason(error)}")
        sys.exit(UNUSABLE_INPUT)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer makes it a 1
            _leave_nothing_to_flush("stdout")
            sys.exit(NOBODY_READS)
        if end.__context__ and isinstance(end.__context__.__cause__, KeyboardInterrupt):
            _say("stopped")  # typer says nothing, and its older versions exit with 1
            sys.exit(STOPPED)
        raise
    except KeyboardInterrupt:
        _say("stopped")
        sys.exit(STOPPED)
    finally:  # Ctrl-C while Python takes itself down stops nothing: the code stands
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # the last to come is first


def _of_memory(error: Exception) -> bool:
    """Did memory run out? The system's loader and torch have words of their own for that."""
    words = (
        "failed to map segment",
        "cannot allocate memory",
        "can't allocate memory",
        "can't start new thread",
    )
    return isinstance(error, MemoryError) or any(each in str(error).lower() for each in words)


def _check_folder() -> None:
    """Libraries end the process, with words of their own, where the folder it is in is gone."""
    try:
        os.getcwd()
    except OSError as error:
        raise InputError(
            f"the folder that this command was started in cannot be used: {reason(error)}"
        ) from error


@contextmanager
def _written_out() -> Iterator[None]:
    """What was printed is written here, where a failure still gets its sentence and its code."""
    try:
        yield
    except SystemExit:
        sys.stdout.flush()
        raise
    sys.stdout.flush()


def _open_what_is_closed() -> None:
    """Where a standard stream was closed, a file opened later would take its place."""
    for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        try:
            os.fstat(number)
            there = getattr(sys, name) is not None
        except OSError:
            there = False
        if not there:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  (as below)


def _leave_nothing_to_flush(name: str) -> None:
    """What cannot be written is not tried again when the process ends."""
    nowhere = Path(os.devnull).open("w")  # noqa: SIM115  (open until the process ends)
    setattr(sys, name, nowhere)
    os.dup2(nowhere.fileno(), {"stdout": 1, "stderr": 2}[name])


@contextmanager
def kept_in(store: Path, what: str) -> Iterator[None]:
    """When the work is stopped or lost, say where what was finished is kept."""
    words = f"Finished {what} are kept in {store}; the same command goes on from there."
    try:
        yield
    except KeyboardInterrupt:
        _say(f"stopped. {words}")
        sys.exit(STOPPED)
    except WorkLost as error:
        raise WorkLost(f"{error} {words}") from error


def _say(sentence: object) -> None:
    """The sentence; the exit code stands although nobody can read it."""
    text, to = f"headwise: {sentence}".translate(_NO_CONTROL), console(stderr=True)
    text = fit(text) if to.is_terminal else text  # a log or a program gets it as one line
    try:
        to.print(text, style="red", markup=False, highlight=False, soft_wrap=True)
    except OSError:
        _leave_nothing_to_flush("stderr")


@contextmanager
def _signals_as_ctrl_c() -> Iterator[None]:
    """What ends a session or a job stops the work as cleanly as Ctrl-C; `nohup` is respected."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {}
    for number in (signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
        if signal.getsignal(number) == signal.SIG_DFL:
            before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _accept_any_encoding() -> None:
    r"""Characters that the terminal's encoding lacks are written as \uXXXX, which JSON reads.

    UTF-8 lacks halves of a pair, as which Python reads the bytes of a name that is not UTF-8.
    """
    codecs.register_error("headwise", _as_escapes)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="headwise")


def _as_escapes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    pairs = zip(units[::2], units[1::2], strict=True)
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in pairs), error.end


def say_failed(sentence: str) -> None:
    """On standard error: what failed although nothing was wrong with the input."""
    _say(sentence)
