"""What pyproject.toml declares: bounds, extras, and the lowest versions that CI installs."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def lowest() -> ModuleType:
    """The script `.ci/lowest_versions.py`."""
    spec = importlib.util.spec_from_file_location("lowest_versions", ROOT / ".ci" / "lowest_versions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_libraries_whose_internals_are_used_have_upper_bounds():
    bounds = {re.split(r"[<>=]", each)[0]: each for each in PROJECT["dependencies"]}
    assert "<" in bounds["numba"]
    assert "<" in bounds["llvmlite"]


def test_every_cuda_release_has_an_extra():
    extras = PROJECT["optional-dependencies"]
    assert [each.split(">=")[0] for each in extras["cuda12"] + extras["cuda13"]] == ["cupy-cuda12x", "cupy-cuda13x"]
    assert extras["cuda"] == ["rankwell[cuda13]"]


def test_lowest_versions_are_the_lower_bounds(lowest, capsys):
    lowest.main(["plot"])
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(PROJECT["dependencies"]) + 1
    for requirement, line in zip(PROJECT["dependencies"], printed, strict=False):
        name, version = line.split("==")
        assert requirement.startswith(f"{name}>={version}")
    assert printed[-1].startswith("matplotlib==")


def test_upper_bounds_and_markers(lowest):
    assert list(lowest.lowest_versions(["a>=1.2,<2", "b<3,>=2", "c>=1; python_version < '3.12'"])) == [
        "a==1.2",
        "b==2",
        "c==1 ; python_version < '3.12'",
    ]


@pytest.mark.parametrize("requirement", ["numpy", "numpy<3", "numpy==1.26"])
def test_a_dependency_without_a_lower_bound_is_refused(lowest, requirement):
    with pytest.raises(SystemExit, match="must have one lower bound"):
        list(lowest.lowest_versions([requirement]))


def test_an_unknown_extra_is_refused(lowest):
    with pytest.raises(SystemExit, match="no extra no-such-extra"):
        lowest.main(["no-such-extra"])


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("target", ["demo", "test"])
def test_the_two_commands_show_what_pip_does(target):
    command = ["make", "--dry-run", "VENV=absent", target]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    (install,) = [line for line in printed.splitlines() if "pip install" in line]
    assert "quiet" not in install
