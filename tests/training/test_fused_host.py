"""The kernel on other CPUs than this one, and its cache."""

import ctypes
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numba
import numpy as np
import pytest
from filelock import FileLock, Timeout

import headwise
from headwise.core.compiled import host
from headwise.core.compiled.host import LANES
from headwise.core.compiled.simd import exp, gelu, load, store
from headwise.core.errors import InputError

SOURCE = Path(headwise.__file__).parents[1]
FOLDER = "from headwise.core.compiled.host import kernel_folder; print(kernel_folder())"


def python(code: str, source: Path = SOURCE, **environment: str) -> str:
    settings = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"} | environment
    done = subprocess.run(
        [sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_cpu_without_avx_computes_the_same(tmp_path):
    code = """
import numpy as np, torch
from headwise.nets import ClassTokenShape
from headwise.training.fused import available
from headwise.training.fused.engine import FusedEngine
from headwise.core.compiled import host
from headwise.core.compiled.host import LANES
from headwise.training import Training
assert LANES == 4, LANES
assert available() is None, available()
shape = ClassTokenShape.standard(token_dim=3, heads=3, width=11, residual=True, norm=True)
params = shape.initial_params(1)
inputs = torch.from_numpy(np.random.default_rng(2).standard_normal((9, 14, 3), np.float32))
(found,) = FusedEngine(shape, Training(steps=1, rate=1.0), [params]).predict(inputs)
stacked = {name: value.double()[None] for name, value in params.items()}
expected = shape.forward(stacked, inputs.double()[None])[0]
assert (found - expected).abs().max() < 1e-6
print("fine")
"""
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert python(code, **generic, NUMBA_CACHE_DIR=str(tmp_path)) == "fine"


def test_every_change_of_a_kernel_source_gets_a_cache_of_its_own(tmp_path):
    copy = tmp_path / "src"
    shutil.copytree(SOURCE / "headwise", copy / "headwise")
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "NUMBA_CACHE_DIR": ""}
    folders = [python(FOLDER, copy, **cache)]
    assert folders[0].startswith(str(tmp_path / "cache" / "headwise"))
    assert python(FOLDER, copy, **cache) == folders[0]
    for place in ("training/fused/tiles.py", "core/compiled/blocks.py"):
        source = copy / "headwise" / place
        source.write_text(source.read_text() + "\n# changed\n")
        folders.append(python(FOLDER, copy, **cache))
    assert len(set(folders)) == 3


def test_without_a_folder_to_write_there_is_no_cache(tmp_path):
    (tmp_path / "file").touch()
    nowhere = {"XDG_CACHE_HOME": str(tmp_path / "file"), "NUMBA_CACHE_DIR": ""}
    assert python(FOLDER, **nowhere) == "None"


@numba.njit
def _apply(memory, exponentials, values, slopes):
    for at in range(0, memory.size, LANES):
        x = load(memory, at)
        store(exponentials, at, exp(x))
        value, slope = gelu(x)
        store(values, at, value)
        store(slopes, at, slope)


def apply(points):
    results = [np.zeros(points.size, np.float32) for _ in range(3)]
    _apply(points, *results)
    return results


def test_kernels_that_nobody_used_for_a_month_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(host.config, "CACHE_DIR", str(tmp_path))
    for name, days in (("kernel-old", 31), ("kernel-new", 29), ("texts", 400)):
        (tmp_path / name / "deep").mkdir(parents=True)
        then = time.time() - days * 24 * 3600
        os.utime(tmp_path / name, (then, then))
    current = host.kernel_folder.__wrapped__()
    assert {path.name for path in tmp_path.iterdir()} == {"kernel-new", "texts", current.name}


def test_a_cache_that_cannot_be_written_is_said(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(host.config, "CACHE_DIR", str(tmp_path / "file"))
    assert host.kernel_folder.__wrapped__() is None
    (said,) = caplog.messages
    assert f"no compiled kernel can be kept in {tmp_path / 'file'}" in said


def test_compiling_is_said_while_it_happens_and_not_again(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(host, "kernel_folder", lambda: tmp_path)
    (tmp_path / "part.nbc").touch()  # of a compilation that was killed
    for end in (KeyboardInterrupt, None):
        caplog.clear()
        with suppress(KeyboardInterrupt), host.compiling():
            assert "compiling the training kernel" in caplog.text
            if end is not None:
                raise end
    caplog.clear()
    with host.compiling():
        assert caplog.text == ""


def test_another_installation_has_a_kernel_of_its_own(tmp_path):
    copy = tmp_path / "src"
    shutil.copytree(SOURCE / "headwise", copy / "headwise")
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "NUMBA_CACHE_DIR": ""}
    assert python(FOLDER, copy, **cache) != python(FOLDER, **cache)


@pytest.mark.parametrize("width", ["x", "", "3", "-4", "1e9"])
def test_a_vector_width_that_is_none_is_said(width, monkeypatch):
    monkeypatch.setenv(host.LANES_VARIABLE, width)
    with pytest.raises(InputError, match="HEADWISE_LANES is 4, 8 or 16"):
        host._lanes()


def test_a_compilation_that_is_starved_holds_nobody_up(tmp_path, monkeypatch):
    monkeypatch.setattr(host, "kernel_folder", lambda: tmp_path)
    monkeypatch.setattr(host, "LONGEST_WAIT", 0.1)
    entered = False
    with FileLock(tmp_path / "compiling.lock"), host.compiling():
        entered = True
    assert entered
    with host.compiling(), pytest.raises(Timeout):  # it is held again
        FileLock(tmp_path / "compiling.lock").acquire(timeout=0)


def test_ctrl_c_while_llvm_calls_back_stops_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(host, "kernel_folder", lambda: tmp_path)

    @ctypes.CFUNCTYPE(None)
    def called_back():
        raise KeyboardInterrupt

    def compile_it():
        with host.compiling():
            called_back()
            raise RuntimeError("no compiled object yet")  # as llvmlite says then

    with pytest.raises(KeyboardInterrupt):
        compile_it()


def test_exp_and_gelu_keep_their_digits():
    from scipy.special import ndtr

    points = np.linspace(-87, 6, 16 * 50_000).astype(np.float32)
    exponentials, values, slopes = apply(points)
    wide = points.astype(np.float64)
    negative = wide <= 0
    np.testing.assert_allclose(exponentials[negative], np.exp(wide[negative]), rtol=3e-7)
    near = wide >= -5
    np.testing.assert_allclose(values[near], (wide * ndtr(wide))[near], rtol=1e-6, atol=1e-30)
    density = np.exp(-(wide**2) / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(values, wide * ndtr(wide), rtol=0, atol=5e-7)
    np.testing.assert_allclose(slopes, ndtr(wide) + wide * density, rtol=0, atol=5e-7)


@pytest.mark.parametrize("point", [-np.inf, -1e30, -100.0, np.nan])
def test_exp_far_out(point):
    exponentials, values, _ = apply(np.full(LANES, point, np.float32))
    expected = np.nan if np.isnan(point) else 0.0
    np.testing.assert_array_equal(exponentials, expected)
    if np.isfinite(point):
        np.testing.assert_array_equal(values, 0.0)
