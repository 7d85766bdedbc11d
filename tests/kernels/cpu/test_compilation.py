"""Compiled kernels are cached, and never outlive a change of what they were compiled from."""

import logging
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from numba import types

import rankwell
from rankwell.kernels.cpu import compilation, kernel_cache
from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.kernel_cache import source_digest

KERNELS = Path(rankwell.__file__).parent / "kernels"
CALLER = """
from rankwell.kernels.cpu.callee import step
from rankwell.kernels.cpu import compilation, kernel_cache
from rankwell.kernels.cpu.compilation import kernel

@kernel
def twice(x):
    return step(step(x))
"""
CALLEE = """
from rankwell.kernels.cpu import compilation, kernel_cache
from rankwell.kernels.cpu.compilation import kernel

@kernel
def step(x):
    return x + {step}
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package with two kernels of our own, one of which calls the other."""
    copy = tmp_path / "rankwell"
    source = Path(rankwell.__file__).parent
    shutil.copytree(source / "kernels", copy / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "errors.py", "printable.py", "version.py"):
        shutil.copy(source / name, copy / name)
    (copy / "kernels/cpu/caller.py").write_text(CALLER)
    return copy


def call(package, step):
    """twice(0) in a new process, and whether it came from the cache."""
    (package / "kernels/cpu/callee.py").write_text(CALLEE.format(step=step))
    code = "from rankwell.kernels.cpu.caller import twice\nprint(twice(0), sum(twice.stats.cache_hits.values()))"
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=package.parent,
        env=os.environ | {"RANKWELL_CACHE_DIR": str(package.parent / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    value, hits = result.stdout.split()
    return int(value), int(hits)


def test_a_change_in_a_called_kernel_reaches_its_callers(package):
    assert call(package, 1) == (2, 0)
    assert call(package, 1) == (2, 1)
    assert call(package, 5) == (10, 0)


def test_a_digest_is_of_the_sources_that_a_kernel_is_made_from():
    assert re.fullmatch(r"[0-9a-f]{32}", source_digest("rankwell.kernels.boosting.cpu.weights"))
    assert source_digest("rankwell.kernels.boosting.cpu.weights") != source_digest(
        "rankwell.kernels.boosting.cpu.pairs"
    )


def test_the_closure_holds_all_that_python_imports():
    """What the sources say is compared with what the interpreter did, in whatever way the imports are written."""
    module = "rankwell.kernels.ranking_metrics.rankings"
    code = f"import sys, {module}; print(*(name for name in sys.modules if name.startswith('rankwell.kernels.')))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    files = {name for name in printed.split() if (KERNELS.parents[1] / f"{name.replace('.', '/')}.py").is_file()}
    closure = kernel_cache._import_closure(module)
    assert files - kernel_cache._WITHOUT_EFFECT <= closure
    assert "rankwell.kernels.ranking_metrics.query_metrics" in closure
    assert "rankwell.kernels.boosting.precision" not in closure


def test_every_kernel_is_compiled_through_kernel():
    folder = Path(rankwell.__file__).parent
    for path in folder.rglob("*.py"):
        if path.name != "compilation.py":
            assert not re.search(r"\bnjit\b|\bnumba\.jit\b", path.read_text(encoding="utf-8")), path


@kernel(for_any_constant=True)
def _sum(x, y, is_negative):
    return -(x + y) if is_negative else x + y


def test_one_compilation_for_any_constant():
    for y in (types.literal(0), types.literal(1), types.int64):
        template, _, args, _ = _sum.get_call_template((types.int64, y, types.literal(True)), {})
        assert [case.return_type for case in template.cases] == [types.int64]
        assert tuple(args) == (types.int64, types.int64, types.boolean)
    assert (_sum(2, 3, False), _sum(2, 3, True)) == (5, -5)


@kernel
def _double(x):
    return 2 * x


@kernel
def _quadruple(x):
    return _double(_double(x))


def test_kernels_call_kernels_without_their_entry_for_python():
    assert _quadruple(3) == 12
    assert len(_quadruple.signatures) == 1
    assert _double.signatures == []
    assert _double(3) == 6
    assert len(_double.signatures) == 1


def test_a_long_compilation_is_announced_once(monkeypatch, caplog):
    monkeypatch.setattr(compilation, "_SECONDS_IN_SILENCE", 0.01)
    announcement = compilation._Announcement()
    with caplog.at_level(logging.WARNING, logger="rankwell"):
        for _ in range(2):
            with announcement.around("rankwell.kernels.boosting.cpu.booster") as is_outermost:
                assert is_outermost
                with announcement.around("rankwell.kernels.cpu.ordering") as is_outermost:
                    assert not is_outermost
                time.sleep(0.2)
    (message,) = caplog.messages
    assert message.startswith("compiling kernels of boosting: about 10 s, once")


def test_a_short_compilation_is_not_announced(caplog):
    announcement = compilation._Announcement()
    with caplog.at_level(logging.WARNING, logger="rankwell"), announcement.around("rankwell.kernels.words.finding"):
        pass
    assert caplog.messages == []
