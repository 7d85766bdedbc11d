"""How long does it take to open an index of 400,000 documents?

Documents of 40 words from a vocabulary with Zipf's frequencies, in one segment as after a merge, and in as many
segments as commits leave, one of them with deletions. Opening reads the manifest, the tables of checksums and the
deletions; arrays are mapped, and their pages are checked when a query first touches them, so the first search is timed
as well. Files are in the page cache.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness import Benchmark
from rankwell import Index, IndexWriter
from rankwell.corpus.document import Document

MOST_SECONDS = 0.050
WORDS_A_DOCUMENT = 40
VOCABULARY = 200_000
SEGMENTS = 12


def run(bench: Benchmark) -> None:
    n_docs = 4_000 if bench.quick else 400_000
    with tempfile.TemporaryDirectory(prefix="rankwell-open-") as folder:
        path = Path(folder) / "index"
        write_index(path, n_docs)
        record_opening(bench, path, n_docs - 1, "many segments, one with deletions")
        with IndexWriter(path) as writer:
            writer.merge()
        record_opening(bench, path, n_docs - 1, "one segment")


def write_index(path: Path, n_docs: int) -> None:
    """Commits of unequal sizes, so that merging leaves several segments; then one document is deleted."""
    with IndexWriter(path) as writer:
        bounds = np.unique(np.geomspace(1, n_docs, SEGMENTS).astype(int))[::-1]
        first = 0
        for size in -np.diff([*bounds, 0]):
            writer.add(documents(first, first + int(size)))
            writer.commit()
            first += int(size)
        writer.delete(["d0"])
        writer.commit()


def documents(first: int, stop: int) -> Iterator[Document]:
    generator = np.random.default_rng(first)
    for number in range(first, stop):
        words = np.minimum(generator.zipf(1.3, WORDS_A_DOCUMENT), VOCABULARY).tolist()
        yield Document(f"d{number}", {"body": " ".join(f"w{word}" for word in words)}, {"number": float(number)})


def record_opening(bench: Benchmark, path: Path, n_docs: int, case: str) -> None:
    index = Index.open(path)
    bench.check(f"{case}: every live document counts", index.n_docs == n_docs, f"{len(index.segments)} segments")
    bench.check(f"{case}: a document is found", index.id_of(index.find("d1")) == "d1")
    index.search("w7 w70 w700")  # compiles
    timing = bench.time(f"open, {case}", lambda: Index.open(path), repeat=20)
    n_bytes = sum(file.stat().st_size for file in path.iterdir())
    note = f"{len(index.segments)} segments, {n_bytes / 1e6:,.0f} MB, {n_docs:,} documents"
    target = None if bench.quick else MOST_SECONDS * 1e3
    bench.record(f"open: {case}", value=timing.minimum * 1e3, unit="ms", target=target, better="lower", note=note)
    searching = bench.time(f"open and search, {case}", lambda: Index.open(path).search("w7 w70 w700", k=10), repeat=5)
    bench.record(
        f"open and search once: {case}",
        value=searching.minimum * 1e3,
        unit="ms",
        better="lower",
        note="top 10 of a query of 3 words; checks the pages it reads",
    )
