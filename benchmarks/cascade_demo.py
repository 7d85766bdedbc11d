"""Does a cascade rank the demo's documents as well as the full ranker at a quarter of its cost?

As `cascade`, on the documentation of Python's standard library: 160 queries, each of which looks for one item. Rankers
of its 1,000 candidates a query take longest to train, so a point of the curve is chosen by three parts of the training
queries instead of five.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.cascade import Judged, judged_by, measure_search
from benchmarks.harness import Benchmark
from rankwell.demo.candidates import build_index
from rankwell.demo.collection import make_collection
from rankwell.demo.collection_files import write_documents
from rankwell.demo.library import read_library
from rankwell.features.queries import QueryText
from rankwell.index.schema import Schema

N_QUERIES, N_QUICK_QUERIES, N_INNER = 160, 20, 3


def run(bench: Benchmark) -> None:
    with tempfile.TemporaryDirectory(prefix="rankwell-cascade-") as place:
        judged = demo_collection(Path(place), N_QUICK_QUERIES if bench.quick else N_QUERIES)
        measure_search(bench, "demo", judged, N_INNER)


def demo_collection(place: Path, n_queries: int) -> Judged:
    """The documentation of Python's standard library; a query looks for one item, grade 2."""
    collection = make_collection(read_library(), n_queries, 0)
    index = build_index(write_documents(collection.documents, place), place / "index", Schema(forward="all"))
    queries = [QueryText(str(number), known.query) for number, known in enumerate(collection.known_items)]
    qrels = {str(number): dict(known.grades) for number, known in enumerate(collection.known_items)}
    return judged_by(index, queries, qrels)
