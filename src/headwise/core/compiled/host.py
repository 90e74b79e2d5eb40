"""Compiling for this machine: vector width, and a cache that never serves a stale kernel."""

import hashlib
import logging
import multiprocessing
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from filelock import FileLock, Timeout
from numba import types
from numba.core import config
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from headwise.core.cache import cache_folder
from headwise.core.errors import InputError, require
from headwise.core.files import check_can_write_into

_KEPT_SECONDS = 30 * 24 * 3600.0
_COMPILED = ("core/compiled", "training/fused")  # folders of compiled code
LONGEST_WAIT = 60.0  # seconds that one process waits for another to compile
_WHOLE = "compiled"  # a file in the kernel's folder: nothing is missing there, as after a kill
LANES_VARIABLE = "HEADWISE_LANES"  # overrides the vector width: 4, 8 or 16


def _target() -> tuple[str, str, str]:
    """Triple, CPU name and features that numba compiles for (its NUMBA_CPU_* settings included)."""
    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    return triple, cpu, features


def _lanes() -> int:
    """Numbers in a vector. LLVM splits what the CPU cannot hold, so any choice is safe to run."""
    chosen = os.environ.get(LANES_VARIABLE)
    if chosen is not None:
        require(chosen in ("4", "8", "16"), f"{LANES_VARIABLE} is 4, 8 or 16, not {chosen!r}")
        return int(chosen)
    triple, _, features = _target()
    enabled = set(features.split(","))
    if "+avx512f" in enabled:
        return 16
    if "+avx2" in enabled or triple.startswith(("aarch64", "arm64")):  # NEON: 32 registers of 4
        return 8
    return 4


LANES = _lanes()


def _fingerprint() -> str:
    """Changes with any source of the kernel, the compiler, the CPU it targets and the width.

    numba itself looks only at the file of the function it caches, not at what that calls. It finds
    what it kept by where that file lies, so another installation compiles for itself.
    """
    package = Path(__file__).parents[2]
    digest = hashlib.sha256(os.fsencode(package))
    for folder in _COMPILED:
        for source in sorted((package / folder).glob("*.py")):
            digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    versions = (numba.__version__, llvmlite.__version__, platform.python_version())
    digest.update(repr((versions, _target(), LANES)).encode())
    return digest.hexdigest()[:20]


@cache
def kernel_folder() -> Path | None:
    """Where compiled code is kept; None if no such folder can be written."""
    base = Path(config.CACHE_DIR) if config.CACHE_DIR else cache_folder()  # NUMBA_CACHE_DIR
    folder = base / f"kernel-{_fingerprint()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_can_write_into(folder, "the cache")
        os.utime(folder)  # used now
    except (OSError, InputError):
        _say(f"no compiled kernel can be kept in {base}: every process compiles its own")
        return None
    _prune(base, folder)
    return folder


def _prune(base: Path, current: Path) -> None:
    """Delete kernels of other versions or processors that nobody has used for a month."""
    for folder in base.glob("kernel-*"):
        with suppress(OSError):
            if folder != current and time.time() - folder.stat().st_mtime > _KEPT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def compiling() -> Iterator[None]:
    """Around the first use of the kernel: says that it takes long, where it does.

    One process compiles and the others wait for it, and then find the result in the cache. They do
    not wait for long: who compiles may be starved by others, and to compile twice does no harm.
    """
    folder = kernel_folder()
    with nullcontext() if folder is None else _for_a_while(folder / "compiling.lock"):
        if folder is None or not (folder / _WHOLE).exists():
            _say("compiling the training kernel for this processor, which takes up to a minute")
        with _hearing_ctrl_c():
            yield
        if folder is not None:
            with suppress(OSError):
                (folder / _WHOLE).touch()


@contextmanager
def _for_a_while(path: Path) -> Iterator[None]:
    """Hold the lock, or go on without it after a while."""
    lock = FileLock(path)
    with suppress(Timeout):
        lock.acquire(timeout=LONGEST_WAIT)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _hearing_ctrl_c() -> Iterator[None]:
    """Stop when asked to, although LLVM is at work.

    Python acts on a signal when LLVM next calls it back, and there an exception can go nowhere:
    it would be printed, and the kernel be taken for a broken one.
    """
    before, heard = sys.unraisablehook, []

    def hear(lost: "sys.UnraisableHookArgs") -> None:
        if isinstance(lost.exc_value, KeyboardInterrupt):
            heard.append(lost.exc_value)
        else:
            before(lost)

    sys.unraisablehook = hear
    try:
        yield
    finally:
        sys.unraisablehook = before
        if heard:
            raise KeyboardInterrupt


def _say(sentence: str) -> None:
    """To whoever listens, by default on standard error; of worker processes only the first."""
    if multiprocessing.current_process().name in ("MainProcess", "SpawnProcess-1"):
        logging.getLogger("headwise").warning("headwise: %s", sentence)


OPTIONS = {"nogil": True, "error_model": "numpy", "boundscheck": False}
UNWRAPPED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # not called from Python


def inner(function: Callable[..., Any]) -> Any:
    """Compile a part of the kernel, where it is used."""
    return numba.njit(**OPTIONS, **UNWRAPPED)(function)


def pasted(function: Callable[..., Any]) -> Any:
    """Compile as part of its only caller; alone it would be optimised once more, for nothing."""
    return numba.njit(inline="always", **OPTIONS, **UNWRAPPED)(function)


def shared(*arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile for these types alone, even where an argument is a constant: once for all callers."""
    return lambda function: _cached(function, types.void(*arguments), **UNWRAPPED)


def entry(function: Callable[..., Any]) -> Any:
    """Compile what Python calls."""
    return _cached(function)


def _cached(function: Callable[..., Any], *signature: Any, **options: bool) -> Any:
    folder, before = kernel_folder(), config.CACHE_DIR
    if folder is None:
        return numba.njit(*signature, **OPTIONS, **options)(function)
    try:  # numba reads the setting when it decorates
        config.CACHE_DIR = str(folder)
        return numba.njit(*signature, cache=True, **OPTIONS, **options)(function)
    finally:
        config.CACHE_DIR = before


@intrinsic
def out_of_line(typing: Any) -> Any:
    """Keep LLVM from copying the containing function into its callers.

    "optsize" is for copies specialised to constant arguments: LLVM makes none of such functions.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.function.attributes.add("noinline")
        builder.function.attributes.add("optsize")
        return context.get_dummy_value()

    return types.void(), generate
