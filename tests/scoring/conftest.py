"""Where the files of every format version lie."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def golden() -> Path:
    return Path(__file__).resolve().parent.parent / "golden"
