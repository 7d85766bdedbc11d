"""What a shard tells about its index: facts about a commit, and what it counts for words."""

from __future__ import annotations

from rankwell.index.query.near_words import near_counts
from rankwell.index.query.prefixes import prefix_counts
from rankwell.index.reader import Index
from rankwell.index.statistics import Statistics
from rankwell.serving.shards import messages
from rankwell.serving.snapshot import bytes_of, some_texts
from rankwell.version import __version__


def facts_of(index: Index) -> messages.Facts:
    return messages.Facts(
        release=__version__,
        folder="" if index.path is None else str(index.path.absolute()),
        commit=index.commit,
        generation=index.generation,
        schema=index.schema.to_json(),
        analysis=index.analysis.to_json(),
        n_docs=index.n_docs,
        n_numbers=int(index.bases[-1]),
        n_segments=len(index.segments),
        n_bytes=bytes_of(index),
        tokens=Statistics.of(index).tokens.tolist(),
        sample=next(some_texts(index), "") if index.n_docs else "",
    )


def try_out(index: Index) -> None:
    """Search once: kernels are compiled, and a commit that cannot be read is known, before the first user asks."""
    _ = Statistics.of(index).tokens
    if index.n_docs:
        for typos in (False, True):
            index.search(next(some_texts(index), ""), plain=True, typos=typos)


def count(index: Index, asked: messages.Count) -> messages.Counted:
    """What an index counts for words."""
    statistics = Statistics.of(index)
    terms = [statistics.named(term) for term in asked.terms]
    return messages.Counted(
        [(one.doc_freq.tobytes(), one.occurrences.tobytes()) for one in terms],
        [
            {}
            if (column := _column(index, field)) is None
            else dict(prefix_counts(index.segments, statistics, start, column))
            for start, field in asked.prefixes
        ],
        [
            {}
            if (column := _column(index, field)) is None
            else near_counts(index.segments, statistics, term, distance, column)
            for term, distance, field in asked.near
        ],
    )


def _column(index: Index, field: str | None) -> int | None:
    """The number of a stream; -1 is the whole document, None a stream that this shard does not have."""
    if field is None:
        return -1
    return index.schema.streams.index(field) if field in index.schema.streams else None
