"""What the demonstration's tests share: the documentation of the library installed here, read once."""

from __future__ import annotations

import pytest

from rankwell.demo.library import Library, read_library


@pytest.fixture(scope="session")
def installed() -> Library:
    return read_library()
