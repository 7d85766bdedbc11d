"""Shards built apart from each other: by one process after another, by several, or on a cluster.

A document belongs to the shard that the hash of its id says, so that the same id is always in the same shard. The
corpus is read once to learn its fields, which all shards have in the same order, and once for every shard, which keeps
its own documents.
"""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rankwell.corpus.bad_documents import BadDocuments
from rankwell.corpus.document import Document
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.reading import read_corpus
from rankwell.errors import DataError, RankwellError
from rankwell.index.schema import Schema
from rankwell.index.segments.builder import MEMORY_BYTES
from rankwell.index.segments.document_ids import hash_ids
from rankwell.index.segments.field_values import field_values
from rankwell.index.shards import write_shards
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter

# A shard whose process died is built again this often.
TRIES = 3

# Called with the number of a shard that is complete, and its documents.
Done = Callable[[int, int], None]
# Builds the shards of some tasks, wherever that is.
Runner = Callable[[Sequence["ShardTask"], Done], None]


@dataclass(frozen=True)
class ShardTask:
    """What one shard is built from: plain values, which another process or machine can be given.

    corpus : paths, the same for whoever builds the shard
    options : of `CorpusOptions`; schema, analysis : as they record themselves
    skip : whether bad documents are left out
    folder : of the shard; number, n_shards : which of how many it is
    """

    corpus: tuple[str, ...]
    options: dict[str, Any]
    schema: dict[str, Any]
    analysis: dict[str, Any]
    skip: bool
    folder: str
    number: int
    n_shards: int
    memory_bytes: int = MEMORY_BYTES


def build_shards(
    folder: Path,
    corpus: Sequence[str],
    options: CorpusOptions,
    schema: Schema,
    analysis: Analysis,
    n_shards: int,
    *,
    skip: bool = False,
    memory_bytes: int = MEMORY_BYTES,
    run: Runner,
    done: Done = lambda number, n_docs: None,
) -> None:
    """Build the shards of a collection in `folder`, in place of those that are there, which stay until all are built.

    schema : with all fields of the corpus (`learn_fields`)
    run : where tasks run: `run_here`, `run_in_processes`, or on a cluster
    """
    folder.mkdir(parents=True, exist_ok=True)
    build = 1 + max((int(path.name.split("-")[1]) for path in folder.glob("shard-*-*")), default=0)
    names = [f"shard-{build:04}-{number:04}" for number in range(n_shards)]
    plain = asdict(replace(options, on_bad_document="error"))
    tasks = [
        ShardTask(
            tuple(corpus),
            plain,
            schema.to_json(),
            analysis.to_json(),
            skip,
            str(folder / name),
            number,
            n_shards,
            memory_bytes,
        )
        for number, name in enumerate(names)
    ]
    try:
        run(tasks, done)
    except BaseException:
        for task in tasks:
            shutil.rmtree(task.folder, ignore_errors=True)
        raise
    write_shards(folder, names)
    # Those before, and what a build that was killed has left.
    for path in folder.glob("shard-*-*"):
        if path.name not in names:
            shutil.rmtree(path, ignore_errors=True)


def learn_fields(batches: Iterable[list[Document]], schema: Schema, bad_documents: BadDocuments) -> int:
    """Add the fields of all documents to the schema, in their order; returns how many documents there are."""
    n_docs = 0
    for batch in batches:
        for document in batch:
            try:
                texts, numbers, _ = field_values(document, schema)
                schema.number_fields(texts, numbers, document.place)
                n_docs += 1
            except DataError as error:
                bad_documents.add(error)
    return n_docs


def build_shard(task: ShardTask) -> int:
    """Build one shard and commit it; returns its documents. What an earlier try left is overwritten."""
    # What was wrong with documents was said when fields were learnt; ids that are twice are found only now.
    reading, writing = _Silent("skip"), BadDocuments("skip" if task.skip else "error")
    options = CorpusOptions(**{**_with_tuples(task.options), "on_bad_document": reading})
    settings: dict[str, Any] = {
        "schema": Schema.from_json(task.schema),
        "analysis": Analysis.from_json(task.analysis),
        "on_bad_document": writing,
        "overwrite": True,
        "memory_bytes": task.memory_bytes,
    }
    with IndexWriter(task.folder, **settings) as writer:
        for batch in read_corpus(task.corpus, options):
            writer.add(_own(batch, task))
        writer.commit()
        writing.report()
        return writer.n_docs


def shards_of(ids: Sequence[str], n_shards: int) -> np.ndarray:
    """The shard of each id, int64."""
    encoded = [one.encode("utf-8", "surrogatepass") for one in ids]
    offsets = np.concatenate(([0], np.cumsum([len(one) for one in encoded], dtype=np.int64)))
    hashes = hash_ids(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)
    return (hashes % np.uint64(n_shards)).astype(np.int64)


def run_here(tasks: Sequence[ShardTask], done: Done) -> None:
    """Build shards one after another, in this process."""
    for task in tasks:
        done(task.number, build_shard(task))


def run_in_processes(n_processes: int) -> Runner:
    """Build as many shards at a time, each in a process; a shard whose process dies is built again."""

    def run(tasks: Sequence[ShardTask], done: Done) -> None:
        left = {task.number: task for task in tasks}
        for _ in range(TRIES):
            _run_once(left, n_processes, done)
            if not left:
                return
        raise RankwellError(
            f"the processes that build shards {', '.join(map(str, sorted(left)))} died {TRIES} times, perhaps for lack "
            "of memory. Use fewer processes, or less memory for each."
        )

    return run


def _run_once(left: dict[int, ShardTask], n_processes: int, done: Done) -> None:
    """Build the shards that are left; those that are complete are taken out, unless a process dies."""
    with ProcessPoolExecutor(n_processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(build_shard, task): task for task in left.values()}
        try:
            for future in as_completed(futures):
                number = futures[future].number
                done(number, future.result())
                del left[number]
        except BrokenProcessPool:
            return
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


class _Silent(BadDocuments):
    """Bad documents that were reported before."""

    def add(self, error: DataError) -> None:
        self.count += 1


def _own(batch: list[Document], task: ShardTask) -> Iterator[Document]:
    shards = shards_of([document.id for document in batch], task.n_shards)
    for document, shard in zip(batch, shards.tolist(), strict=True):
        if shard == task.number:
            yield document


def _with_tuples(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as `CorpusOptions` takes them; lists are tuples that were sent."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
