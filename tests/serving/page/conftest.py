"""A browser for the tests of the search page: a Chromium that the machine has, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def _executable(playwright: Any) -> str | None:
    """$RANKWELL_BROWSER, a Chromium on the path, or the one that `playwright install chromium` has put away."""
    own = playwright.chromium.executable_path
    found = (os.environ.get("RANKWELL_BROWSER"), *map(shutil.which, NAMES), own if Path(own).exists() else None)
    return next((each for each in found if each), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium; without one, the test is skipped."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="the tests of the page need Playwright (pip install playwright)"
    )
    with api.sync_playwright() as playwright:
        executable = _executable(playwright)
        if executable is None:
            pytest.skip("no Chromium: install the package chromium, or say where one is with RANKWELL_BROWSER")
        # Without a sandbox, because tests may run as root in a container; the pages are our own.
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()
