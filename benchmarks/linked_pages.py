"""Does a folder of web pages that link to each other give all 125 features, and are its anchors and link scores right?

*By hand*: four pages in HTML and Markdown, with links to other sites, whose anchors, numbers of links and link scores
are worked out below. *Documentation*: the Markdown pages of this project, each searched by its title; a feature is
defined if it is a number for every candidate of every query. *Time*: pages of 120 words and 10 links each, drawn by a
seed, read with their links and without; and the link scores alone.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.provenance import ROOT
from rankwell.corpus.document import Document
from rankwell.corpus.link_graph import ANCHOR, DAMPING, page_rank
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.reading import read_corpus
from rankwell.features.feature_set import make_feature_set
from rankwell.features.queries import QueryText
from rankwell.features.training_data import judged_features
from rankwell.index.query.query import without_operators
from rankwell.index.reader import Index
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter

N_FEATURES = 125
MOST_DIFFERENCE = 1e-9
PAGES = {
    "index.html": "<title>Home</title>Welcome. <a href=guide/start.md>First <b>steps</b></a>, <a href='/api'>names</a>",
    "guide/start.md": "# Start\nBack [home](../index.html), or to [others](https://other.example/api.html).\n",
    "api.html": "<title>Names</title>All names. <a href='.'>Home</a> <a href='https://github.com/'>code</a>",
    "about.html": "<title>About</title>Made with <a href='https://python.org/index.html'>Python</a>.",
}
ANCHORS = {"index.html": ["Home", "home"], "guide/start.md": ["First steps"], "api.html": ["names"], "about.html": []}
LINKS = {"index.html": (2, 2), "guide/start.md": (1, 1), "api.html": (1, 1), "about.html": (0, 0)}
# about: s = 0.15/4 + 0.85·s/4, so s = 1/21, which every page has from pages that are drawn at random and from about.
# home: h = s + 0.85·(g + g), where start and api have g = s + 0.85·h/2; so h = s·(1 + 2·0.85) / (1 - 0.85²).
ABOUT = 1 / 21
HOME = ABOUT * (1 + 2 * 0.85) / (1 - 0.85**2)
INNER = ABOUT + 0.85 * HOME / 2
SCORES = {"index.html": 4 * HOME, "guide/start.md": 4 * INNER, "api.html": 4 * INNER, "about.html": 4 * ABOUT}


def run(bench: Benchmark) -> None:
    _check_by_hand(bench)
    _count_features(bench, "the pages by hand", PAGES, 4)
    documentation = {
        path.relative_to(ROOT / "docs").as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "docs").rglob("*.md"))
    }
    _count_features(bench, "this project's documentation", documentation, 10 if bench.quick else len(documentation))
    _time(bench)


def _check_by_hand(bench: Benchmark) -> None:
    with tempfile.TemporaryDirectory(prefix="rankwell-pages-") as folder:
        pages = _read(_written(Path(folder), PAGES))
    anchors = {name: sorted(page.texts.get(ANCHOR, [])) for name, page in pages.items()}
    bench.check("anchors as by hand; links to other sites are none", anchors == ANCHORS)
    links = {name: (page.numbers["inlinks"], page.numbers["outlinks"]) for name, page in pages.items()}
    bench.check("numbers of links as by hand", links == LINKS)
    difference = max(abs(page.numbers["link_score"] - SCORES[name]) for name, page in pages.items())
    bench.check("link scores as by hand", difference <= MOST_DIFFERENCE, f"by at most {difference:.1e}")
    bench.record(
        "link scores of four pages: largest difference from those by hand",
        value=difference,
        unit="",
        target=MOST_DIFFERENCE,
        note=", ".join(f"{name} {SCORES[name]:.4f}" for name in SCORES),
    )


def _count_features(bench: Benchmark, what: str, pages: dict[str, str], n_queries: int) -> None:
    """Record how many features are numbers for all candidates of queries that are the pages' titles."""
    with tempfile.TemporaryDirectory(prefix="rankwell-pages-") as path:
        folder = _written(Path(path) / "pages", pages)
        documents = _read(folder)
        n_linked = sum(ANCHOR in document.texts for document in documents.values())
        with IndexWriter(Path(path) / "index", analysis=Analysis.of_language("en")) as writer:
            writer.add(documents.values())
            writer.commit()
        index = Index.open(Path(path) / "index")
        features = make_feature_set("mslr", index.schema.streams, index.schema.statics)
        titles = {name: str(index.stored(index.find(name))["title"]) for name in list(pages)[:n_queries]}
        queries = [QueryText(name, without_operators(title)) for name, title in titles.items()]
        rows = judged_features(index, queries, {name: {name: 1.0} for name in titles}, features).dataset.features
    bench.check(f"{what}: the set begins with MSLR's text features", len(features) >= N_FEATURES)
    first = rows[:, :N_FEATURES]
    n_defined = int(np.isfinite(first).all(axis=0).sum())
    n_telling = int((first != first[0]).any(axis=0).sum())
    bench.record(
        f"features of {what} that are defined",
        value=n_defined,
        unit=f"of {N_FEATURES}",
        target=N_FEATURES,
        better="higher",
        note=f"{len(pages)} pages, {n_linked} of them with anchors; {len(rows):,} rows, in which {n_telling} features "
        "have more than one value",
    )


def _time(bench: Benchmark) -> None:
    n_pages, n_links, repeat = (200, 3, 2) if bench.quick else (20_000, 10, 5)
    generator = np.random.default_rng(7)
    words = np.minimum(generator.zipf(1.3, (n_pages, 120)), 30_000)
    # Some pages have many links to them, as in a web.
    targets = np.minimum(generator.zipf(1.5, (n_pages, n_links)) - 1, n_pages - 1)
    made = {
        f"{number % 100}/p{number}.html": f"<title>Page {number}</title><p>"
        + " ".join(f"w{word}" for word in words[number].tolist())
        + "".join(f"<a href='/{target % 100}/p{target}.html'>to w{target}</a>" for target in targets[number].tolist())
        for number in range(n_pages)
    }
    with tempfile.TemporaryDirectory(prefix="rankwell-pages-") as path:
        folder = _written(Path(path), made)
        pages = _read(folder)
        inlinks = sum(page.numbers["inlinks"] for page in pages.values())
        pairs = {(source, target) for source in range(n_pages) for target in targets[source].tolist()}
        edges = np.array(sorted(pair for pair in pairs if pair[0] != pair[1]), dtype=np.int64)
        bench.check("every link between two pages is counted once", inlinks == len(edges))
        with_links = bench.time("read with links", lambda: len(_read(folder)), repeat=repeat)
        without = bench.time("read without links", lambda: len(_read(folder, links=False)), repeat=repeat)
    bench.record(
        f"reading {n_pages:,} pages with {n_links} links each",
        value=with_links.minimum / without.minimum,
        unit="x without links",
        note=f"{with_links.minimum / n_pages * 1e6:.0f} µs a page, {without.minimum / n_pages * 1e6:.0f} without links",
    )
    ranks = bench.time("link scores", lambda: page_rank(edges[:, 0], edges[:, 1], n_pages), repeat=repeat)
    outlinks = np.bincount(edges[:, 0], minlength=n_pages)
    spread = ranks.result[outlinks == 0].sum() / n_pages
    received = np.bincount(edges[:, 1], (ranks.result / np.maximum(outlinks, 1))[edges[:, 0]], minlength=n_pages)
    expected = (1 - DAMPING) / n_pages + DAMPING * (received + spread)
    bench.check("link scores fulfil their equation", bool(np.allclose(ranks.result, expected, rtol=1e-8, atol=0)))
    bench.record(
        f"link scores of {n_pages:,} pages", value=ranks.minimum * 1e3, unit="ms", note=f"{len(edges):,} links"
    )


def _written(folder: Path, pages: dict[str, str]) -> Path:
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _read(folder: Path, *, links: bool = True) -> dict[str, Document]:
    return {document.id: document for batch in read_corpus(folder, CorpusOptions(links=links)) for document in batch}
