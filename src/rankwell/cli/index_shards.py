"""`rankwell index build --shards N`: the options, and where the shards are built."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwell.cli.progress import progress_bar
from rankwell.errors import DataError, ParameterError

if TYPE_CHECKING:
    from rankwell.corpus.bad_documents import BadDocuments
    from rankwell.corpus.document import Document
    from rankwell.corpus.options import CorpusOptions
    from rankwell.index.schema import Schema
    from rankwell.index.shard_building import Runner
    from rankwell.index.text.analysis import Analysis

ShardsOption = Annotated[
    int | None,
    typer.Option(
        "--shards",
        metavar="N",
        min=1,
        max=9999,
        help="Build a folder of N indexes, documents by a hash of their id: it opens, searches and serves as one.",
        show_default=False,
    ),
]
ShardWorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        min=1,
        help="Shards that are built at the same time, each by a process. By default as many as there are cores.",
        show_default=False,
    ),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="WHERE",
        help="Build shards on Ray: local, auto, or the address of one that runs; its hosts see the files.",
        show_default=False,
    ),
]


def check_shard_options(shards: int | None, workers: int | None, cluster: str | None, corpus: Sequence[Path]) -> None:
    """Refuse options that need --shards, and a corpus that cannot be read several times."""
    if shards is None:
        if workers is not None or cluster is not None:
            raise ParameterError("--workers and --cluster build shards: say with --shards how many.")
        return
    if "-" in map(str, corpus):
        raise DataError("shards read the corpus several times, which standard input does not allow. Give files.")


def build_in_shards(
    out: Path,
    corpus: Sequence[Path],
    options: CorpusOptions,
    batches: Iterator[list[Document]],
    bad_documents: BadDocuments,
    schema: Schema,
    analysis: Analysis,
    n_shards: int,
    *,
    workers: int | None,
    cluster: str | None,
    memory: int,
    skip: bool,
    quiet: bool,
) -> None:
    """Build the shards; `batches` is the corpus, to learn its fields from."""
    from rankwell.index.shard_building import build_shards, learn_fields

    with progress_bar("reading fields", quiet=quiet):
        learn_fields(batches, schema, bad_documents)
    bad_documents.report()
    n_done = n_docs = 0
    with progress_bar(f"building {n_shards} shards", quiet=quiet) as bar, _runner(n_shards, workers, cluster) as run:

        def done(number: int, documents: int) -> None:
            nonlocal n_done, n_docs
            n_done, n_docs = n_done + 1, n_docs + documents
            bar.describe(f"building shards: {n_docs:,} documents in {n_done} of {n_shards}")

        paths = [str(path) if cluster is None else str(path.absolute()) for path in corpus]
        folder = out if cluster is None else out.absolute()
        build_shards(
            folder,
            paths,
            options,
            schema,
            analysis,
            n_shards,
            skip=skip,
            memory_bytes=memory * 2**20,
            run=run,
            done=done,
        )


@contextmanager
def _runner(n_shards: int, workers: int | None, cluster: str | None) -> Iterator[Runner]:
    from rankwell.index.shard_building import run_here, run_in_processes
    from rankwell.kernels.threads import available_cores

    if cluster is not None:
        from rankwell.cluster.indexing import run_on_cluster
        from rankwell.cluster.session import cluster_session

        with cluster_session(cluster, n_cpus=workers) as session:
            yield run_on_cluster(session, at_a_time=workers)
        return
    n_processes = min(n_shards, workers or available_cores())
    yield run_here if n_processes == 1 else run_in_processes(n_processes)


def replace_check(out: Path, shards: int | None, *, overwrite: bool) -> None:
    """Refuse to build where an index, or a folder of shards, is already, unless it is to be replaced by its kind."""
    from rankwell.index.commits.manifest import MANIFEST_NAME
    from rankwell.index.shards import SHARDS_NAME

    is_index, is_sharded = (out / MANIFEST_NAME).exists(), (out / SHARDS_NAME).exists()
    if (is_index or is_sharded) and not overwrite:
        raise DataError(
            f"{out} is an index already. Pass --overwrite to replace it, or add to it with rankwell index add."
        )
    if (is_sharded and shards is None) or (is_index and shards is not None):
        kinds = ("a folder of shards", "one index") if is_sharded else ("one index", "a folder of shards")
        raise DataError(
            f"{out} is {kinds[0]}, and the new one would be {kinds[1]}. Remove it first, or use another path."
        )
    if shards is not None and out.is_dir() and not is_sharded:
        others = sorted(path.name for path in out.iterdir() if not path.name.startswith("shard-"))
        if others:
            raise DataError(
                f"{out} is not an index and not empty: it contains {others[0]!r}. Choose an empty or a new folder."
            )
