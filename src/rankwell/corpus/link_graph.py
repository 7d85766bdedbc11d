"""The links among the pages of a corpus: words of links that lead to a page describe it, and pages that many link to
are important.

Three numbers of a page become statics: `inlinks` and `outlinks`, other pages that link to it and to which it links, and
`link_score`, its PageRank times the number of pages, so that 1 is the mean:

    score = (1 − d)/n + d·(Σ over pages that link to it: their score/outlinks, + the score of pages without links/n),
    d = 0.85
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import numpy as np

from rankwell.corpus.page_links import PageLink

ANCHOR = "anchor"
"""The stream of the words of links that lead to a page."""

DAMPING = 0.85
_CONVERGED = 1e-12
_MOST_ITERATIONS = 1000
_ENDINGS = ("", ".html", ".htm", ".xhtml", ".md", ".markdown")
_FOLDER_PAGES = ("index.html", "index.htm", "index.xhtml", "index.md", "README.md")


@dataclass(frozen=True)
class PageFacts:
    """What the links say of a page: words of links that lead to it, and its statics by name."""

    anchors: tuple[str, ...]
    numbers: Mapping[str, float]


class LinkGraph:
    """The pages of a corpus, by id, and their links.

    Parameters
    ----------
    names : iterable of str
        The ids of all pages: paths in a folder.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._numbers = {name: number for number, name in enumerate(names)}
        self._anchors: dict[int, list[str]] = {}
        self._edges: dict[tuple[int, int], None] = {}

    def add(self, source: str, base: str, links: Sequence[PageLink]) -> None:
        """Add the links of a page; those that lead to no other page of the corpus are left out."""
        own = self._numbers[source]
        counted = set()
        for link in links:
            target = self.resolve(source, base, link.address)
            if target is None or target == own:
                continue
            self._edges[own, target] = None
            # A menu repeats a link: a page says the same words of another one once.
            if link.text and (target, link.text) not in counted:
                counted.add((target, link.text))
                self._anchors.setdefault(target, []).append(link.text)

    def resolve(self, source: str, base: str, address: str) -> int | None:
        """The number of the page that an address on a page leads to, None if it is not one of the corpus."""
        try:
            parts, base_parts = urlsplit(address), urlsplit(base)
        except ValueError:
            return None
        if parts.scheme.lower() not in ("", "http", "https"):
            return None
        host, path = parts.netloc or base_parts.netloc, unquote(parts.path)
        if not path and not parts.netloc:
            return None  # a place on the same page
        if not parts.netloc and not path.startswith("/"):
            folder = unquote(base_parts.path) if base else source
            path = posixpath.join(posixpath.dirname(folder), path)
        path = posixpath.normpath(path.lstrip("/")) if path.strip("/") else ""
        if path == ".." or path.startswith("../"):
            return None
        # A copy of a site has its host as a folder, or not.
        return next((found for name in (f"{host}/{path}" if host else path, path) for found in self._known(name)), None)

    def _known(self, name: str) -> list[int]:
        name = "" if name == "." else name.strip("/")
        tried = [name + ending for ending in _ENDINGS] if name else []
        tried += [posixpath.join(name, page) for page in _FOLDER_PAGES]
        return [self._numbers[one] for one in tried if one in self._numbers][:1]

    def facts(self) -> dict[str, PageFacts]:
        """What the links say of each page; empty if no page links to another."""
        if not self._edges:
            return {}
        sources, targets = np.array(list(self._edges), dtype=np.int64).T
        n = len(self._numbers)
        scores = n * page_rank(sources, targets, n)
        inlinks, outlinks = np.bincount(targets, minlength=n), np.bincount(sources, minlength=n)
        return {
            name: PageFacts(
                tuple(self._anchors.get(number, ())),
                {
                    "link_score": float(scores[number]),
                    "inlinks": float(inlinks[number]),
                    "outlinks": float(outlinks[number]),
                },
            )
            for name, number in self._numbers.items()
        }


def page_rank(sources: np.ndarray, targets: np.ndarray, n_pages: int) -> np.ndarray:
    """The PageRank of each page, float64 (n_pages,), of sum 1; each link (source, target) once."""
    from scipy import sparse

    outlinks = np.bincount(sources, minlength=n_pages)
    shares = sparse.csr_matrix((1.0 / outlinks[sources], (targets, sources)), shape=(n_pages, n_pages))
    without_links = outlinks == 0
    scores = np.full(n_pages, 1.0 / n_pages)
    for _ in range(_MOST_ITERATIONS):
        spread = float(scores[without_links].sum()) / n_pages
        updated = (1.0 - DAMPING) / n_pages + DAMPING * (shares @ scores + spread)
        change = float(np.abs(updated - scores).sum())
        scores = updated
        if change < _CONVERGED:
            break
    return np.asarray(scores)
