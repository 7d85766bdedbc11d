"""Which code made a figure: versions of the libraries in use, and the commit."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rankwell import __version__

ROOT = Path(__file__).resolve().parent.parent

# Distribution -> the module it is imported as. Those of them that a benchmark imported are named in its results.
_LIBRARIES = {
    "numpy": "numpy",
    "numba": "numba",
    "llvmlite": "llvmlite",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
    "pyarrow": "pyarrow",
    "pandas": "pandas",
    "polars": "polars",
    "safetensors": "safetensors",
    "PyYAML": "yaml",
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "ir-measures": "ir_measures",
    "pytrec-eval-terrier": "pytrec_eval",
    "pyopencl": "pyopencl",
    "torch": "torch",
}
_ALWAYS = ("numpy", "numba", "llvmlite")


class NoCommitError(Exception):
    """The code that would be measured is not that of a commit, so the measurement could not be repeated."""


def library_versions(rivals: Iterable[str] = ()) -> dict[str, str]:
    """Versions of Python, Rankwell, what is imported in this process, and the rivals that are named.

    A rival may have run in a child process, so its name (``"xgboost"`` or ``"xgboost hist"``) is looked up as well.
    """
    versions = {"python": platform.python_version(), "rankwell": __version__}
    loaded = [name for name, module in _LIBRARIES.items() if name in _ALWAYS or module in sys.modules]
    named = [re.split(r"[\s.:,(]", rival, maxsplit=1)[0].lower() for rival in rivals]
    for name in dict.fromkeys([*loaded, *named]):
        found = _installed_version(name)
        if found is not None:
            versions[name] = found
    if "cupy" in sys.modules:  # its distribution is named after the CUDA release
        versions["cupy"] = str(sys.modules["cupy"].__version__)
    return versions


def _installed_version(name: str) -> str | None:
    try:
        return version(name) if name else None
    except PackageNotFoundError:
        return None


def find_commit() -> dict[str, Any]:
    """``{"id": ..., "dirty": ...}`` of the checkout; results themselves do not make it dirty.

    A copy without git history (on another machine) gives its commit in the variable RANKWELL_COMMIT, followed by a
    ``+`` if files differ from that commit.
    """
    told = os.environ.get("RANKWELL_COMMIT")
    if told:
        return {"id": told.rstrip("+"), "dirty": told.endswith("+")}
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return {"id": None, "dirty": None}
    return {"id": commit, "dirty": bool(_changed_files())}


def demand_commit() -> dict[str, Any]:
    """The result of `find_commit`, if it is the commit of exactly this code; otherwise a `NoCommitError`."""
    commit = find_commit()
    if commit["id"] is None:
        raise NoCommitError(
            "results name the commit they were measured on, and there is no git history here. Name the "
            "commit of this copy: RANKWELL_COMMIT=<id>."
        )
    if commit["dirty"]:
        told = os.environ.get("RANKWELL_COMMIT")
        changed = [] if told else [line[2:].strip() for line in _changed_files()]
        files = f": {', '.join(changed[:5])}{', ...' if len(changed) > 5 else ''}" if changed else ""
        raise NoCommitError(
            f"results name the commit they were measured on, and files differ from commit {short_commit(commit)}"
            f"{files}. Commit them, or stash them with `git stash --include-untracked`."
        )
    return commit


def short_commit(commit: dict[str, Any]) -> str:
    """The commit as results show it: the first 12 characters of its id."""
    return str(commit["id"])[:12]


def _changed_files() -> list[str]:
    """Lines of ``git status``: changed and untracked files, without those that benchmarks write themselves."""
    arguments = ("--porcelain", "--untracked-files=all", "--", ".", ":!benchmarks/results", ":!docs/results.md")
    return (_git("status", *arguments) or "").splitlines()


def _git(*arguments: str) -> str | None:
    try:
        answer = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return answer.stdout.rstrip() if answer.returncode == 0 else None
