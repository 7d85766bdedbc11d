"""An index as a reader sees it: one generation, which never changes under it."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwell.errors import DataError, FileFormatError
from rankwell.index.commits.deletions import read_deletions
from rankwell.index.commits.manifest import Manifest, SegmentEntry, index_folder, read_manifest
from rankwell.index.segments.files import SegmentFiles
from rankwell.index.segments.segment import Segment
from rankwell.index.segments.stored_fields import StoredBlocks
from rankwell.index.segments.structure import forged
from rankwell.parameters import check_truth
from rankwell.streams.json_text import parse_json

if TYPE_CHECKING:
    from rankwell.index.query.query import Query
    from rankwell.index.query.tree import Match, Node
    from rankwell.index.schema import Schema
    from rankwell.index.search.bm25 import BM25, BM25F
    from rankwell.index.search.selection import Filter, SearchResult
    from rankwell.index.text.analysis import Analysis
    from rankwell.index.text.synonyms import Synonyms

_FILTERS_REMEMBERED = 1024


class Index:
    """A snapshot of an index: `Index.open(path)`.

    Documents are numbered through the segments: number = the segment's base + the number in the segment. Deleted
    documents keep their number until a merge drops them. A writer may add, delete and merge meanwhile; this snapshot
    stays as it is, `reopen` gives the newest. `len(index)` is the number of live documents; a pickled index is a path.

    Parameters
    ----------
    segments : in the order their documents were added
    live : for each segment uint8 [n_docs], 1 = live; None where nothing is deleted
    schema, analysis : the names of streams and statics, and how text is cut into words
    generation : counts commits

    Attributes
    ----------
    bases : int64 [n_segments + 1], the number of each segment's first document
    n_docs : live documents
    path : the folder, None if the segments are in memory

    Examples
    --------
    >>> import rankwell
    >>> with rankwell.IndexWriter("notes.idx", language="en") as writer:
    ...     writer.add([{"id": "n1", "body": "buy milk"}, {"id": "n2", "body": "call the dentist on Monday"}])
    ...     generation = writer.commit()
    >>> index = rankwell.Index.open("notes.idx")
    >>> index.search("calling dentists", k=3).ids
    ['n2']
    >>> index.stored(index.find("n1"))["body"]
    'buy milk'
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        live: Sequence[np.ndarray | None],
        schema: Schema,
        analysis: Analysis,
        *,
        generation: int = 0,
    ) -> None:
        self.segments = tuple(segments)
        self.live = tuple(live)
        self.schema = schema
        self.analysis = analysis
        self.generation = generation
        self.path: Path | None = None
        self._absolute_path: Path | None = None
        self._manifest: Manifest | None = None
        self._filters: dict[str, Node] = {}
        self._stored_blocks = StoredBlocks()
        sizes = [segment.n_docs for segment in self.segments]
        self.bases = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        # NumPy takes ten times as long to look one number up.
        self._starts: list[int] = self.bases.tolist()
        self.n_docs = sum(
            segment.n_docs if alive is None else int(np.count_nonzero(alive))
            for segment, alive in zip(self.segments, self.live, strict=True)
        )

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Index:
        """The newest generation of the index in the folder `path`; a folder of shards opens as one index.

        Raises DataError if there is no index, FileFormatError if it was altered or is of another version.
        """
        from rankwell.index.shards import open_shards, shard_folders

        folder = index_folder(path)
        shards = shard_folders(folder)
        return _open(folder, {}) if shards is None else open_shards(folder, shards)

    def __len__(self) -> int:
        """The number of live documents."""
        return self.n_docs

    def __bool__(self) -> bool:
        """True: an index without documents is an index too."""
        return True

    def __repr__(self) -> str:
        place = "in memory" if self.path is None else repr(str(self.path))
        segments = f"{len(self.segments)} segment{'' if len(self.segments) == 1 else 's'}"
        documents = f"{self.n_docs:,} document{'' if self.n_docs == 1 else 's'}"
        return f"Index({place}: {documents} in {segments}, generation {self.generation})"

    def __reduce__(self) -> tuple[Callable[[Path], Index], tuple[Path]]:
        """Pickled as its path: who unpickles it (another process) opens the newest generation there."""
        if self._absolute_path is None:
            raise DataError("an index in memory cannot be pickled: write it to a folder, and open it there.")
        return Index.open, (self._absolute_path,)

    @property
    def commit(self) -> str:
        """A digest of all that this generation consists of, the same for every copy; empty if it is in memory."""
        return "" if self._manifest is None else self._manifest.digest

    def reopen(self) -> Index:
        """The newest generation; this one if nothing was committed since. Segments in both are shared."""
        if self.path is None or self._manifest is None:
            return self
        if read_manifest(self.path) == self._manifest:
            return self
        entries = zip(self._manifest.segments, self.segments, strict=True)
        return _open(self.path, {entry.digest: segment for entry, segment in entries})

    def search(
        self,
        query: str | Query,
        *,
        k: int = 10,
        model: BM25 | BM25F | None = None,
        match: Match = "any",
        plain: bool = False,
        filter: Filter | None = None,
        synonyms: Synonyms | None = None,
        typos: bool = False,
        sort: str | Sequence[str] | None = None,
        facets: Iterable[str] | Mapping[str, Sequence[Any] | None] = (),
        prune: bool = True,
        stop_after: int | None = None,
    ) -> SearchResult:
        """The best k documents for a query: see `rankwell.index.search.selection.search`."""
        from rankwell.index.search.selection import search

        return search(
            self,
            query,
            k=k,
            model=model,
            match=match,
            plain=plain,
            filter=filter,
            synonyms=synonyms,
            typos=typos,
            sort=sort,
            facets=facets,
            prune=prune,
            stop_after=stop_after,
        )

    def more_like(
        self,
        document_id: str | int,
        *,
        k: int = 10,
        terms: int = 25,
        model: BM25 | BM25F | None = None,
        filter: Filter | None = None,
    ) -> SearchResult:
        """The k documents that are most like the one with that id: see `rankwell.index.search.more_like.more_like`."""
        from rankwell.index.search.more_like import more_like

        return more_like(self, document_id, k=k, terms=terms, model=model, filter=filter)

    def count(
        self,
        query: str | Query,
        *,
        model: BM25 | BM25F | None = None,
        match: Match = "any",
        plain: bool = False,
        filter: Filter | None = None,
    ) -> int:
        """How many documents match a query: see `rankwell.index.search.selection.count`."""
        from rankwell.index.search.selection import count

        return count(self, query, model=model, match=match, plain=plain, filter=filter)

    def parse(
        self,
        query: str,
        *,
        plain: bool = False,
        filter: Filter | None = None,
        synonyms: Synonyms | None = None,
        typos: bool = False,
    ) -> Query:
        """A query as this index understands it, with a filter; every search takes it in place of a text.

        See `rankwell.index.query.query.parse_query`, and `rankwell.index.search.selection.search` for the parameters.
        """
        from dataclasses import replace

        from rankwell.index.query.query import parse_query

        check_truth("plain", plain)
        check_truth("typos", typos)
        parsed = parse_query(query, self.analysis, self.schema, plain=plain)
        if typos or synonyms is not None or "~" in query:
            from rankwell.index.query.expansion import expanded

            parsed = expanded(parsed, self, synonyms, typos=typos)
        return parsed if filter is None else replace(parsed, filter=self._filter(filter))

    def _filter(self, filter: Filter) -> Node:
        """A filter's condition; those of texts are kept, since few filters are used by many queries."""
        from rankwell.index.query.query import parse_filter

        known = self._filters.get(filter) if isinstance(filter, str) else None
        if known is None:
            known = parse_filter(filter, self.analysis, self.schema)
            if isinstance(filter, str):
                if "~" in filter:
                    from rankwell.index.query.expansion import with_near_words

                    known = with_near_words(known, self)
                if len(self._filters) >= _FILTERS_REMEMBERED:
                    self._filters.clear()
                self._filters[filter] = known
        return known

    def id_of(self, doc: int) -> str:
        """The user's id of document `doc`."""
        segment, local = self.locate(doc)
        return segment.id_of(local)

    def find(self, document_id: str | int) -> int:
        """The number of the live document with that id, -1 if there is none."""
        from rankwell.index.segments.document_ids import hash_id, wanted_id

        wanted = wanted_id(document_id)
        hashed = hash_id(wanted)
        for number in reversed(range(len(self.segments))):
            local = self.segments[number].find(wanted, hashed)
            live = self.live[number]
            if local >= 0 and (live is None or live[local]):
                return int(self.bases[number]) + local
        return -1

    def stored(self, doc: int) -> dict[str, Any]:
        """The fields of document `doc` as they were given."""
        segment, local = self.locate(doc)
        line = self._stored_blocks.line(segment, local)
        try:
            fields = parse_json(line)
            if isinstance(fields, dict):
                return fields
        except (LookupError, ValueError):
            pass
        raise forged(segment, f"the stored fields of document {local:,} are not a JSON object")

    def locate(self, doc: int) -> tuple[Segment, int]:
        """The segment that has document `doc`, and the document's number there."""
        starts = self._starts
        if not 0 <= doc < starts[-1]:
            numbers = f"numbers 0 to {starts[-1] - 1}" if starts[-1] else "no documents"
            raise DataError(f"there is no document number {doc}: the index has {numbers}.")
        number = bisect_right(starts, doc) - 1
        return self.segments[number], doc - starts[number]


def _open(folder: Path, known: dict[str, Segment]) -> Index:
    """Open the files that the manifest names. If one is gone after a writer's commit, read the manifest again."""
    manifest = read_manifest(folder)
    while True:
        try:
            return _index_of(folder, manifest, known)
        except FileNotFoundError as cause:
            newer = read_manifest(folder)
            if newer == manifest:
                raise FileFormatError(
                    f"{cause.filename} is missing: the manifest of {folder} names it. Restore the file from a copy, or "
                    f"build the index again."
                ) from cause
            manifest = newer


def _index_of(folder: Path, manifest: Manifest, known: dict[str, Segment]) -> Index:
    schema, analysis = recorded_settings(folder, manifest)
    segments, live = [], []
    for entry in manifest.segments:
        segments.append(known.get(entry.digest) or open_segment(folder, entry, schema))
        live.append(None if entry.deletions is None else read_deletions(folder, entry.deletions, entry.n_docs))
    index = Index(segments, live, schema, analysis, generation=manifest.generation)
    index.path = folder
    # The current folder may be another one when the index is pickled.
    index._absolute_path = folder.absolute()
    index._manifest = manifest
    return index


def recorded_settings(folder: Path, manifest: Manifest) -> tuple[Schema, Analysis]:
    """The schema and the analysis that the manifest records."""
    from rankwell.index.schema import Schema
    from rankwell.index.text.analysis import Analysis

    try:
        return Schema.from_json(manifest.schema), Analysis.from_json(manifest.analysis)
    except (AttributeError, LookupError, TypeError) as cause:
        raise FileFormatError(f"the manifest of {folder} is unreadable ({cause!r}). Build the index again.") from cause


def open_segment(folder: Path, entry: SegmentEntry, schema: Schema) -> Segment:
    """The segment of an entry of the manifest, its table checked."""
    segment = SegmentFiles(folder, entry.name, entry.digest).segment()
    if segment.n_docs != entry.n_docs:
        raise FileFormatError(
            f"{folder / entry.name}.table has {segment.n_docs} documents, but the manifest says {entry.n_docs}. "
            f"Build the index again."
        )
    counts = {
        "streams": (segment.n_streams, schema.n_streams),
        "statics": (segment.n_statics, schema.n_statics),
        "keyword fields": (segment.n_keywords, schema.n_keywords),
        "words of vectors": (segment.vector_words, schema.vector_words),
    }
    for kind, (found, named) in counts.items():
        if found > named:
            raise FileFormatError(
                f"{folder / entry.name}.table has {found} {kind}, but the manifest names {named}. Build the index "
                f"again."
            )
    return segment
