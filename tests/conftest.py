"""What tests share: real data and a browser, if present, and no time limit on examples that compile a kernel first."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.chromium import chromium_executable

CHECKOUT = Path(__file__).resolve().parent.parent

# The tests of CUDA kernels also run where Hypothesis is not installed.
if importlib.util.find_spec("hypothesis") is not None:
    from hypothesis import settings

    settings.register_profile("rankwell", deadline=None)
    settings.load_profile("rankwell")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real collections: $RANKWELL_DATA, or shared/data next to the checkout."""
    folder = Path(os.environ.get("RANKWELL_DATA", CHECKOUT.parent / "shared" / "data"))
    if not (folder / "letor").is_dir():
        pytest.skip(f"the real collections are absent: no folder {folder / 'letor'} (set RANKWELL_DATA)")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium; without one, the test is skipped."""
    api = pytest.importorskip("playwright.sync_api", reason="tests of pages need Playwright (pip install playwright)")
    with api.sync_playwright() as playwright:
        executable = chromium_executable(playwright)
        if executable is None:
            pytest.skip("no Chromium: install the package chromium, or say where one is with RANKWELL_BROWSER")
        # Without a sandbox, because tests may run as root in a container; the pages are our own.
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()
