"""`import rankwell` is light: names are looked up when first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rankwell

# Optional packages, and required ones that take long to import.
HEAVY = ("cupy", "matplotlib", "numba", "pandas", "polars", "pyarrow", "pyopencl", "scipy", "sklearn", "torch")


def heavy_modules_after(code: str) -> list[str]:
    """Which of the heavy packages a fresh interpreter has loaded after `code`."""
    probe = f"{code}\nimport sys\nprint(*sorted(set(sys.modules) & set({HEAVY!r})))"
    child = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return child.stdout.split()


def test_import_touches_no_heavy_package():
    assert heavy_modules_after("import rankwell") == []


def test_looking_at_the_names_touches_none_either():
    assert heavy_modules_after("import rankwell\ndir(rankwell)\nrankwell.__all__\nrankwell.RankwellError") == []


def test_the_probe_sees_a_heavy_package():
    assert "scipy" in heavy_modules_after("import scipy")


def test_errors_say_which_name_is_unknown():
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = rankwell.no_such_name


@pytest.mark.parametrize("name", rankwell.__all__)
def test_every_public_name_is_there(name):
    assert getattr(rankwell, name) is not None
