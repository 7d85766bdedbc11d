"""The links among the pages of a corpus: words of links that lead to a page describe it, and pages that many link to
are important.

Three numbers of a page become statics: `inlinks` and `outlinks`, other pages that link to it and to which it links, and
`link_score`, its PageRank times the number of pages, so that 1 is the mean:

    score = (1 − d)/n + d·(Σ over pages that link to it: their score/outlinks, + the score of pages without links/n),
    d = 0.85

A link with a host counts if the corpus is a copy of that host's pages: one with the host as a folder, or one of a site
that is given or that most of the pages name as their own (`site.py`). Other links with a host lead elsewhere.
"""

from __future__ import annotations

import logging
import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import numpy as np

from rankwell.corpus.page_links import PageLink, PageLinks
from rankwell.corpus.site import FOLDER_PAGES, PAGE_ENDINGS, Site, host_of, site_of_page
from rankwell.errors import Parameter

logger = logging.getLogger("rankwell")

ANCHOR = "anchor"
"""The stream of the words of links that lead to a page."""

DAMPING = 0.85
_CONVERGED = 1e-12
_MOST_ITERATIONS = 1000
# A host to which fewer pages of the corpus seem to belong is not worth a note.
_FEWEST_NOTED = 2


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
    sites : sequence of Site
        The addresses that the pages have on the web; empty: the one that most pages name.
    """

    def __init__(self, names: Iterable[str], sites: Sequence[Site] = ()) -> None:
        self._numbers = {name: number for number, name in enumerate(names)}
        self._anchors: dict[int, list[str]] = {}
        self._edges: dict[tuple[int, int], None] = {}
        self._sites = tuple(sites)
        self._named_sites: Counter[Site] = Counter()
        # Links from a root or with a host can be resolved when all pages have said which site they are of.
        self._later: list[tuple[str, PageLinks]] = []

    def add(self, source: str, found: PageLinks) -> None:
        """Add the links of a page; those that lead to no other page of the corpus are left out."""
        site = site_of_page(source, found.base, found.canonical)
        if site is not None:
            self._named_sites[site] += 1
        if found.base:
            self._later.append((source, found))
            return
        near, far = list[PageLink](), list[PageLink]()
        for link in found.links:
            (far if link.address.startswith("/") or ":" in link.address else near).append(link)
        self._count(source, found._replace(links=near))
        if far:
            self._later.append((source, found._replace(links=list(dict.fromkeys(far)))))

    def _count(self, source: str, found: PageLinks) -> None:
        own = self._numbers[source]
        counted = set()
        for link in found.links:
            target = self.resolve(source, found.base, link.address)
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
        host, path = host_of(parts.netloc or base_parts.netloc), unquote(parts.path)
        if not path and not parts.netloc:
            return None  # a place on the same page
        is_below_root = bool(host) or path.startswith("/")
        if not parts.netloc and not path.startswith("/"):
            beside = unquote(base_parts.path)
            if not host:
                beside = posixpath.join(posixpath.dirname(source), beside)
            is_below_root = is_below_root or beside.startswith("/")
            path = posixpath.join(posixpath.dirname(beside), path)
        path = posixpath.normpath(path.lstrip("/")) if path.strip("/") else ""
        if path == ".." or path.startswith("../"):
            return None
        names = self._names_below_root(host, path) if is_below_root else [path]
        return next((found for name in names for found in self._known(name)), None)

    def _names_below_root(self, host: str, path: str) -> list[str]:
        """What a page with this address is called in the corpus; an empty host is the one that the page is of."""
        folder = f"{path}/"
        names = [
            path.removeprefix(site.folder) if path.startswith(site.folder) else ""
            for site in self._sites
            if host in ("", site.host) and folder.startswith(site.folder)
        ]
        if host:
            return [*names, f"{host}/{path}"]
        return names if self._sites else [path]

    def _known(self, name: str) -> list[int]:
        name = "" if name == "." else name.strip("/")
        tried = [name + ending for ending in PAGE_ENDINGS] if name else []
        tried += [posixpath.join(name, page) for page in FOLDER_PAGES]
        return [self._numbers[one] for one in tried if one in self._numbers][:1]

    def _note_host(self) -> None:
        """Say to which host links lead whose paths are those of pages here: the pages may be its."""
        targets: dict[str, set[int]] = {}
        for link in (link for _, found in self._later for link in found.links):
            try:
                parts = urlsplit(link.address)
            except ValueError:
                continue
            if parts.netloc and parts.path.strip("/"):
                targets.setdefault(host_of(parts.netloc), set()).update(self._known(unquote(parts.path)))
        host, found_pages = max(targets.items(), key=lambda item: len(item[1]), default=("", set[int]()))
        if len(found_pages) >= _FEWEST_NOTED:
            logger.warning(
                "links to %s were left out, %d of which have the paths of pages of the corpus. If the pages are from "
                "there, pass %s.",
                host, len(found_pages), Parameter("site", f"https://{host}/"),
            )  # fmt: skip

    def facts(self) -> dict[str, PageFacts]:
        """What the links say of each page, all of which have been added; empty if no page links to another."""
        if not self._sites and self._named_sites:
            self._sites = (self._named_sites.most_common(1)[0][0],)
        for source, found in self._later:
            self._count(source, found)
        if not self._sites:
            self._note_host()
        self._later.clear()
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
