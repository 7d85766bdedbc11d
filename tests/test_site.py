"""The documentation site: built without a warning, its links lead somewhere, and it loads nothing from outside."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import rankwell

ROOT = Path(__file__).resolve().parents[1]
# Attributes whose target a browser fetches to show a page; that of `a` is only followed.
FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class Page(HTMLParser):
    """The targets and the ids of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.linked: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attributes if value is not None}
        self.ids.update(values[name] for name in ("id", "name") if name in values)
        if tag in FETCHED and FETCHED[tag] in values:
            self.fetched.append(values[FETCHED[tag]])
        if tag == "a" and "href" in values:
            self.linked.append(values["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    for module in ("sphinx", "myst_parser", "pydata_sphinx_theme"):
        pytest.importorskip(module)
    folder = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--doctree-dir", str(folder / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(ROOT / "docs"), str(folder / "html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}


def test_every_markdown_page_is_in_the_site(site):
    for source in (ROOT / "docs").rglob("*.md"):
        assert (site / source.relative_to(ROOT / "docs").with_suffix(".html")).exists(), source


def test_nothing_is_loaded_from_outside(site, pages):
    fetched = {target for page in pages.values() for target in page.fetched}
    assert any(target.endswith(".css") or ".css?" in target for target in fetched)
    assert not [target for target in fetched if urlsplit(target).scheme not in ("", "data") or target.startswith("//")]
    for sheet in site.rglob("*.css"):
        loaded = re.findall(r"(?:url\(|@import\s+)['\"]?((?:https?:)?//[^'\")]+)", sheet.read_text(encoding="utf-8"))
        assert not loaded, f"{sheet.name} loads {loaded}"


def test_links_inside_the_site_lead_somewhere(pages):
    broken = [f"{path.name}: {link}" for path, page in pages.items() for link in dead_links(path, page, pages)]
    assert not broken


def dead_links(path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    for target in [*page.linked, *page.fetched]:
        parts = urlsplit(target)
        if parts.scheme or target.startswith("//"):
            continue
        file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        fragment = unquote(parts.fragment)
        if not file.exists() or (fragment and file in pages and fragment not in pages[file].ids):
            yield target


def test_every_public_name_is_in_the_reference(pages):
    described = {name for page in pages.values() for name in page.ids}
    absent = [name for name in rankwell.__all__ if name != "__version__" and f"rankwell.{name}" not in described]
    assert not absent, "add these to docs/api"


def test_the_overview_of_the_reference_has_every_public_name():
    listed = (ROOT / "docs" / "api" / "README.md").read_text(encoding="utf-8")
    named = {name for line in listed.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line)}
    assert named == set(rankwell.__all__)


@pytest.mark.browser
def test_the_site_works_from_disk(site, browser):
    """Also its search, which reads an index that scripts load; nothing else than files is asked for."""
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "search.html").as_uri() + "?q=RankBoost")
    page.wait_for_selector("#search-results li a", timeout=30_000)
    assert any(
        "rankboost" in link for link in page.locator("#search-results li a").evaluate_all("all => all.map(a => a.href)")
    )
    page.goto((site / "index.html").as_uri())
    assert page.title().startswith("Rankwell")
    page.close()
    assert [address for address in asked if not address.startswith(("file:", "data:"))] == []
