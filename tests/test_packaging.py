"""The package: bounds, extras, the lowest versions that CI installs, the release, and the files around it."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml

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


def test_the_release_is_the_same_everywhere():
    release = re.search(r'"(.+)"', (ROOT / "src/rankwell/version.py").read_text())[1]
    assert re.fullmatch(r"\d+\.\d+\.\d+", release)
    headings = re.findall(r"^## (\S+)(?: .*)?$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == release
    numbers = [tuple(map(int, heading.split("."))) for heading in headings]
    assert numbers == sorted(numbers, reverse=True)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["cff-version"], citation["version"], citation["license"]) == ("1.2.0", release, PROJECT["license"])
    assert all(each["title"] and each["authors"] for each in [citation, *citation["references"]])


def test_issue_forms_have_what_the_form_needs():
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert len(forms) == 3
    for form in forms:
        content = yaml.safe_load(form.read_text())
        assert content["name"]
        assert content["description"]
        ids = [field["id"] for field in content["body"]]
        assert len(ids) == len(set(ids))
        assert all(field["attributes"]["label"] for field in content["body"])


def test_hooks_of_a_commit_are_the_tools_of_make_lint():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        program = Path(hook["entry"].split()[0]).name
        assert f"$(BIN)/{program}" in lint
        assert any(program in each for each in PROJECT["optional-dependencies"]["lint"])


def test_the_image_serves_what_make_serve_serves():
    """hadolint is in `make lint`; this is what it cannot know."""
    instructions = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    command = json.loads(re.search(r"^CMD (\[.*\])$", instructions, re.MULTILINE)[1])
    rankers = {Path(each).stem for each in command if each.endswith(".rank")}
    served = re.search(r"foreach name,([\w -]+),--ranker", (ROOT / "Makefile").read_text())[1].split()
    assert rankers == set(served)
    assert command[:3] == ["rankwell", "serve", "demo-output/index"]
    assert re.search(r"^USER (?!root)\w+$", instructions, re.MULTILINE)


def test_a_wheel_without_kernels_needs_only_hatchling(monkeypatch):
    spec = importlib.util.spec_from_file_location("build_backend", ROOT / "build_backend.py")
    pytest.importorskip("hatchling")
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("RANKWELL_PREBUILD", raising=False)
    assert any(each.startswith("numba") for each in backend.get_requires_for_build_wheel())
    monkeypatch.setenv("RANKWELL_PREBUILD", "none")
    assert not any(each.startswith("numba") for each in backend.get_requires_for_build_wheel())
