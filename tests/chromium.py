"""The Chromium that tests of pages use: one that the machine has, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium_executable(playwright: Any) -> str | None:
    """$RANKWELL_BROWSER, a Chromium on the path, or the one that `playwright install chromium` has put away."""
    own = playwright.chromium.executable_path
    found = (os.environ.get("RANKWELL_BROWSER"), *map(shutil.which, NAMES), own if Path(own).exists() else None)
    return next((each for each in found if each), None)
