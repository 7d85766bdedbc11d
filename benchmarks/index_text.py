"""How fast is text indexed, and with how much memory?

Reuters-21578 and 20 copies of it: lines of JSON with an id and three fields, each a stream of words with positions, and
stored. The English stemmer, no stop words. Time is from opening the file to the end of the commit, the index safe on
disk, on two threads; speed is bytes of the file per second, from the page cache. tantivy indexes the same file with the
same fields, positions, stemmer and stored fields. Memory is the growth of a process above what it held before, after
kernels were compiled.
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import Benchmark, measure
from benchmarks.rivals import tantivy_index
from rankwell.corpus.reading import read_corpus
from rankwell.index.reader import Index
from rankwell.index.segments.builder import MEMORY_BYTES
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter

STREAMS = ("title", "body", "source")
COPIES = 20
LEAST_SPEED = 15.0  # MB/s
# In addition to the builder's memory: batches in progress, buffers of the writer, what a merge holds.
MOST_MEMORY = MEMORY_BYTES + 64 * 2**20
N_THREADS = 2


def run(bench: Benchmark) -> None:
    source = bench.data("text/reuters21578/corpus.jsonl.gz")
    with tempfile.TemporaryDirectory(prefix="rankwell-index-") as folder:
        small, one, many = (Path(folder) / name for name in ("small.jsonl", "one.jsonl", "many.jsonl"))
        lines = made_up_lines(300) if source is None else gzip.decompress(source.read_bytes()).splitlines()
        write_copies(small, lines[:300], 1)
        build(str(small), f"{folder}/small")
        check_against_rival(bench, small, folder)
        if source is None or bench.quick:
            record_speed(bench, "300 documents", small, folder, repeat=2)
            return
        write_copies(one, lines, 1)
        write_copies(many, lines, COPIES)
        record_speed(bench, "Reuters", one, folder, repeat=5)
        record_speed(bench, f"Reuters x {COPIES}", many, folder, repeat=2)
        record_memory(bench, {"Reuters": one, f"Reuters x {COPIES}": many}, small, folder)


def check_against_rival(bench: Benchmark, corpus: Path, folder: str) -> None:
    """Without stems, whose versions differ, every word occurs in the same documents."""
    build(str(corpus), f"{folder}/check", stemmer=None)
    index = Index.open(f"{folder}/check")
    bench.check("every document is in the index", index.n_docs == corpus.read_bytes().count(b"\n"), f"{index.n_docs:,}")
    if not tantivy_index.IS_INSTALLED:
        return
    rival = tantivy_index.build_index(str(corpus), f"{folder}/check-rival", STREAMS, 1, stemmed=False)
    segment = index.segments[0]
    terms = [segment.term(number) for number in range(segment.n_terms)]
    for stream, name in enumerate(index.schema.streams):
        counts = segment["lists.doc_freq"][stream :: segment.lists_per_term]
        expected = tantivy_index.document_frequencies(rival, name, [term.decode() for term in terms])
        # tantivy drops words of more than 40 bytes.
        same = [count == wanted or len(term) > 40 for count, wanted, term in zip(counts, expected, terms, strict=True)]
        bench.check(f"{name}: {len(terms):,} terms in as many documents as in tantivy", all(same))


def record_speed(bench: Benchmark, case: str, corpus: Path, folder: str, repeat: int) -> None:
    size = corpus.stat().st_size / 1e6
    rival_speed = None
    if tantivy_index.IS_INSTALLED:
        timing = bench.time(
            f"{tantivy_index.NAME}, {case}",
            lambda: tantivy_index.build_index(str(corpus), f"{folder}/rival", STREAMS, N_THREADS),
            repeat=repeat,
            setup=lambda: shutil.rmtree(f"{folder}/rival", ignore_errors=True),
        )
        rival_speed = size / timing.minimum
    timing = bench.time(
        f"index, {case}",
        lambda: build(str(corpus), f"{folder}/index"),
        repeat=repeat,
        setup=lambda: shutil.rmtree(f"{folder}/index", ignore_errors=True),
    )
    n_bytes = size_of_folder(f"{folder}/index") / 1e6
    bench.record(
        f"speed, {case}",
        value=size / timing.minimum,
        unit="MB/s",
        target=None if bench.quick else LEAST_SPEED,
        better="higher",
        rival=tantivy_index.NAME,
        rival_value=rival_speed,
        note=f"{size:.0f} MB in {timing.minimum:.2f} s, median {timing.median:.2f} s; {n_bytes:.0f} MB on disk",
    )


def record_memory(bench: Benchmark, corpora: dict[str, Path], small: Path, folder: str) -> None:
    for case, corpus in corpora.items():
        rival_peak = None
        if tantivy_index.IS_INSTALLED:
            rival = "benchmarks.index_text:build_with_rival"
            rival_peak = measure.peak_memory(
                rival, str(corpus), f"{folder}/m1", prepare=(rival, str(small), f"{folder}/m2")
            )
        ours = "benchmarks.index_text:build"
        compiled = "benchmarks.index_text:use_every_kernel"
        peak = measure.peak_memory(ours, str(corpus), f"{folder}/m3", prepare=(compiled, str(small), f"{folder}/m4"))
        bench.record(
            f"peak memory, {case}",
            value=peak / 1e6,
            unit="MB",
            target=MOST_MEMORY / 1e6,
            rival=tantivy_index.NAME,
            rival_value=None if rival_peak is None else rival_peak / 1e6,
            note=f"memory_bytes={MEMORY_BYTES / 1e6:.0f} MB; tantivy heap {tantivy_index.HEAP_BYTES / 1e6:.0f} MB",
        )


def build(corpus: str, folder: str, stemmer: str | None = "english") -> None:
    """Index a file with Rankwell, in a folder that is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    with IndexWriter(folder, analysis=Analysis(stemmer)) as writer:
        for documents in read_corpus(corpus):
            writer.add(documents)
        writer.commit()


def use_every_kernel(corpus: str, folder: str) -> None:
    """Index a small file in two commits and merge them, so that no kernel is compiled or loaded later."""
    shutil.rmtree(folder, ignore_errors=True)
    (documents,) = read_corpus(corpus)
    with IndexWriter(folder, analysis=Analysis("english")) as writer:
        for part in (documents[::2], documents[1::2]):
            writer.add(part)
            writer.commit()
        writer.merge()


def build_with_rival(corpus: str, folder: str) -> None:
    """Index a file with tantivy, in a folder that is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    tantivy_index.build_index(corpus, folder, STREAMS, N_THREADS)


def write_copies(path: Path, lines: list[bytes], copies: int) -> None:
    """Write the lines this many times, each time with other ids."""
    with open(path, "wb") as file:
        for copy in range(copies):
            file.writelines(line.replace(b'{"id": "', b'{"id": "%d-' % copy, 1) + b"\n" for line in lines)


def made_up_lines(n_docs: int) -> list[bytes]:
    """Documents of synthetic words, if the real ones are absent."""
    generator = np.random.default_rng(0)

    def words(count: int) -> str:
        return " ".join(f"w{number}" for number in generator.zipf(1.2, count) % 5000)

    return [
        f'{{"id": "{doc}", "title": "{words(8)}", "body": "{words(120)}", "source": "{words(3)}"}}'.encode()
        for doc in range(n_docs)
    ]


def size_of_folder(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).iterdir())
