"""How many queries does one node answer in time over 400,000 documents, and what happens above that?

Reuters-21578 20 times with words varied; everything else is as in `serve_queries`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.harness import Benchmark
from benchmarks.serve_queries import measure
from benchmarks.served_cases import varied_case


def run(bench: Benchmark) -> None:
    with tempfile.TemporaryDirectory(prefix="rankwell-serve-") as place:
        measure(bench, varied_case(bench, Path(place)))
