"""How the site is built: `make docs` makes HTML in build/docs of the Markdown in this folder.

The pages stay readable without it: what only the site needs, its tables of contents and copies of pages that are
in the checkout's root, is added here while Sphinx reads them.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

import rankwell

FOLDER = Path(__file__).resolve().parent

project = "Rankwell"
author = "the Rankwell developers"
project_copyright = author
version = release = rankwell.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4
default_role = "literal"
autodoc_typehints = "none"
# What `rankwell.torch` is written with need not be installed to describe it.
autodoc_mock_imports = ["torch"]
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_param = napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "pydata_sphinx_theme"
html_title = f"Rankwell {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}

# What the sidebar of each page lists; a page that is in none of these is an error of the build.
CONTENTS = {
    "index": [
        "guide/README",
        "api/README",
        "algorithms/README",
        "features",
        "results",
        "decisions/README",
        "development",
        "changelog",
    ],
    "guide/README": [
        "getting-started",
        "which-ranker",
        "untuned-rankers",
        "python",
        "command-line",
        "metrics",
        "index",
        "search",
        "serving",
        "search-page",
        "clicks",
        "cascade",
        "large-data",
        "cluster",
        "ranker-files",
        "ranker-descriptions",
        "exchange",
        "coming-from-lightgbm",
        "coming-from-ranklib",
        "coming-from-svm-rank",
        "security",
    ],
    "api/README": ["data", "rankers", "metrics", "search", "libraries", "errors"],
    "algorithms/README": [
        "boosted-trees",
        "rankboost",
        "ranksvm",
        "listnet",
        "cascade",
        "binning",
        "selection",
        "feature-extraction-cuda",
        "model-evaluation",
        "hardware",
    ],
    "decisions/README": sorted(path.stem for path in (FOLDER / "decisions").glob("*.md") if path.stem != "README"),
    "results": sorted(f"results/{path.stem}" for path in (FOLDER / "results").glob("*.md")),
    "development": ["architecture", "contributing", "RELIABILITY"],
}
# Pages whose text is a file of the checkout's root.
FROM_ROOT = {"architecture": "ARCHITECTURE.md", "changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}


def setup(app: Sphinx) -> None:
    app.connect("source-read", read_page)


def read_page(app: Sphinx, name: str, source: list[str]) -> None:
    if name in FROM_ROOT:
        text = (FOLDER.parent / FROM_ROOT[name]).read_text(encoding="utf-8")
        source[0] = link_from_docs(text)
    if name in CONTENTS:
        pages = [*CONTENTS[name], *others(name)]
        source[0] += "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def others(name: str) -> list[str]:
    """The pages of the guide that `CONTENTS` does not put in a place of their own, at the end."""
    if name != "guide/README":
        return []
    known = {*CONTENTS[name], "README"}
    return sorted(path.stem for path in (FOLDER / "guide").glob("*.md") if path.stem not in known)


def link_from_docs(text: str) -> str:
    """Links of a file in the checkout's root, as they are from a page of this folder."""
    pages = {file: f"{page}.md" for page, file in FROM_ROOT.items()}

    def moved(link: re.Match[str]) -> str:
        target = link[1].removeprefix("docs/") if link[1].startswith("docs/") else pages.get(link[1], f"../{link[1]}")
        return f"]({target})"

    return re.sub(r"\]\((?!https?:|#)([^)]+)\)", moved, text)
