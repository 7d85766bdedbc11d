"""Every .cu file compiles, wherever an nvcc is found: kernels cannot rot unseen on machines without a GPU."""

import shutil
import subprocess
from pathlib import Path

import pytest

import rankwell

SOURCES = sorted((Path(rankwell.__file__).parent / "kernels").rglob("*.cu"))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc on this machine")
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_source_compiles_without_warnings(source, tmp_path):
    result = subprocess.run(
        ["nvcc", "-cubin", "-arch=sm_90", "-std=c++17", "-Werror", "all-warnings", "-o", str(tmp_path / "out"), source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
