"""`python -m tests.serving.page.screenshot FOLDER`: docs/images/search-page.png, of the demo's files in FOLDER.

Taken with the tests' browser, of two rankers side by side, so that the README shows the page as it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright
from tests.chromium import chromium_executable
from tests.serving.server_process import serving_from

IMAGE = Path(__file__).resolve().parents[3] / "docs" / "images" / "search-page.png"
QUERY = "open a zip file"


def take(folder: Path, image: Path = IMAGE) -> None:
    rankers = [part for name in ("lambdamart", "ranksvm") for part in ("--ranker", folder / f"{name}.rank")]
    with serving_from(folder / "index", "--candidates", "50", *rankers) as (_, client), sync_playwright() as playwright:
        executable = chromium_executable(playwright)
        if executable is None:
            raise SystemExit("no Chromium: install the package chromium, or say where one is with RANKWELL_BROWSER")
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 700}, color_scheme="light")
        page.goto(f"{client.address}/?q={QUERY.replace(' ', '+')}&against=ranksvm")
        page.wait_for_selector(".rankings", timeout=60_000)
        page.wait_for_load_state("networkidle")
        image.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=image)
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
    print(f"written: {IMAGE}")
