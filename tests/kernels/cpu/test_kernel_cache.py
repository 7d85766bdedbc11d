"""Compiled kernels are cached if possible, and problems with the cache folder are never an error."""

import os
import subprocess
import sys

import pytest

from rankwell.kernels.cpu import kernel_cache
from rankwell.kernels.cpu.kernel_cache import cache_folder, runnable_levels

SCRIPT = """
import numpy as np
from numba.core import event
from rankwell.kernels.cpu.compilation import kernel

class Compilations(event.Listener):
    count = 0

    def on_start(self, event):
        self.count += 1

    def on_end(self, event):
        pass

compilations = Compilations()
event.register("numba:compile", compilations)

@kernel
def inner(x):
    return x * 2.0

@kernel
def outer(values):
    total = 0.0
    for value in values:
        total += inner(value)
    return total

print(outer(np.arange(5.0)), compilations.count)
"""
ANSWER = "20.0"


@pytest.fixture
def run(tmp_path):
    """Runs the script in a new process; returns what it computed and how many functions were compiled for it."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def run(folder=tmp_path / "cache", **environment):
        command = [sys.executable, str(script)]
        settings = os.environ | {"RANKWELL_CACHE_DIR": str(folder)} | environment
        result = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        answer, count = result.stdout.split()
        return answer, int(count)

    run.start = lambda: subprocess.Popen(
        [sys.executable, str(script)],
        env=os.environ | {"RANKWELL_CACHE_DIR": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        text=True,
    )
    return run


def test_a_second_process_compiles_nothing(run):
    assert run() == (ANSWER, 2)
    assert run() == (ANSWER, 0)


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "other"])
def test_a_damaged_file_is_compiled_anew(run, tmp_path, damage):
    run()
    for path in (tmp_path / "cache").iterdir():
        content = path.read_bytes()
        path.write_bytes(
            {
                "empty": b"",
                "cut": content[: len(content) // 2],
                "flipped": content[:-100] + bytes([content[-100] ^ 1]) + content[-99:],
                "other": b"not a kernel at all",
            }[damage]
        )
    assert run() == (ANSWER, 2)
    assert run() == (ANSWER, 0)


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_can_write_is_compiled_anew(run, tmp_path, mode):
    run()
    for path in (tmp_path / "cache").iterdir():
        path.chmod(mode)
    assert run() == (ANSWER, 2)
    assert run() == (ANSWER, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_a_file_of_another_user_is_compiled_anew(run, tmp_path):
    run()
    for path in (tmp_path / "cache").iterdir():
        os.chown(path, 65534, 65534)
    assert run() == (ANSWER, 2)


def test_a_folder_that_cannot_be_made_keeps_nothing(run, tmp_path):
    (tmp_path / "file").write_text("in the way")
    for _ in range(2):
        assert run(tmp_path / "file" / "cache") == (ANSWER, 2)


def test_without_a_home_nothing_is_kept(run, tmp_path):
    (tmp_path / "file").write_text("in the way")
    for _ in range(2):
        assert run("", HOME=str(tmp_path / "file" / "home"), XDG_CACHE_HOME="") == (ANSWER, 2)


def test_two_processes_at_once_compile_once(run):
    processes = [run.start() for _ in range(2)]
    outputs = [process.communicate()[0].split() for process in processes]
    assert [answer for answer, _ in outputs] == [ANSWER, ANSWER]
    assert sum(int(count) for _, count in outputs) == 2


def test_bounds_checks_are_other_machine_code(run):
    run()
    assert run(NUMBA_BOUNDSCHECK="1") == (ANSWER, 2)
    assert run() == (ANSWER, 0)


def test_where_kernels_are_kept(monkeypatch, tmp_path):
    monkeypatch.delenv("RANKWELL_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "rankwell"
    monkeypatch.setenv("RANKWELL_CACHE_DIR", str(tmp_path / "named"))
    assert cache_folder() == tmp_path / "named"


V3 = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
V4 = (*V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")


@pytest.mark.parametrize(
    ("features", "levels"),
    [((), ()), (V3, ("x86-64-v3",)), (V4, ("x86-64-v4", "x86-64-v3")), (V4[1:], ())],
)
def test_the_levels_that_a_processor_has(monkeypatch, features, levels):
    monkeypatch.setattr(kernel_cache.os, "uname", lambda: type("Uname", (), {"machine": "x86_64"}))
    monkeypatch.setattr(kernel_cache.llvm, "get_host_cpu_features", lambda: dict.fromkeys(features, True))
    runnable_levels.cache_clear()
    try:
        assert runnable_levels() == levels
    finally:
        runnable_levels.cache_clear()
