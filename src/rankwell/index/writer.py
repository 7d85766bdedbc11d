"""Changing an index: documents added and deleted, made visible all at once by a commit.

A commit writes new files only, forces them to disk, and then replaces the manifest: a reader opens either the previous
generation or the new one. Files that no manifest names any more are removed last.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from rankwell.corpus.bad_documents import BadDocuments
from rankwell.corpus.document import Document, Place, document_of, shown
from rankwell.errors import DataError, Parameter, ParameterError, RankwellError
from rankwell.index.commits.lock import WriterLock
from rankwell.index.commits.manifest import MANIFEST_NAME, index_folder
from rankwell.index.commits.remains import foreign_names, places_name
from rankwell.index.commits.storage import Storage, write_file
from rankwell.index.commits.working_index import MergeChoice, WorkingIndex
from rankwell.index.commits.working_segment import WorkingSegment, common_documents
from rankwell.index.merging.merge_policy import MOST_SEGMENTS, cheapest_run, choose_merge
from rankwell.index.schema import Schema
from rankwell.index.segments.builder import MEMORY_BYTES, SegmentBuilder
from rankwell.index.segments.document_ids import hash_id, wanted_id
from rankwell.index.text.analysis import Analysis


class IndexWriter:
    """The one writer of an index.

    Additions and deletions become visible with `commit`: leaving a ``with`` block, or closing the writer, drops what
    was not committed. After an error, call `rollback` before using the writer again.

    Parameters
    ----------
    path : the index's folder; a new index is created if there is none
    schema : streams and statics known from the start; documents add further ones
    language : str, optional
        The documents' language by its code ("en"): short for ``analysis=Analysis.of_language(language)``.
    analysis : how text is cut into words, by default as they are written. An index keeps the one it was created with.
    on_duplicate : "replace" or "error"
        What to do with a document whose id the index has: it replaces the old one at the next commit, or it is a
        DataError. The same id twice between two commits is always a DataError, unless the first was deleted.
    on_bad_document : "error", "skip" or BadDocuments
        What to do with a document that cannot be added, including those that ``on_duplicate`` makes errors: raise a
        DataError, or log it with its place and leave it out; a commit then logs how many there were.
    overwrite : start with an empty index; what the index holds stays readable until the first commit
    memory_bytes : about how much memory documents take before they are written out as a segment
    max_segments : commits merge neighbouring segments until at most this many are left
    storage : the file operations

    Examples
    --------
    >>> import rankwell
    >>> with rankwell.IndexWriter("notes.idx", language="en") as writer:
    ...     writer.add([{"id": "n1", "title": "Milk", "body": "buy milk", "clicks": 3}])
    ...     writer.add([{"id": "n2", "title": "Dentist", "body": "call the dentist on Monday", "clicks": 8}])
    ...     generation = writer.commit()
    >>> with rankwell.IndexWriter("notes.idx") as writer:
    ...     deleted = writer.delete(["n1"])
    ...     generation = writer.commit()
    >>> len(rankwell.Index.open("notes.idx"))
    1
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        schema: Schema | None = None,
        language: str | None = None,
        analysis: Analysis | None = None,
        on_duplicate: str = "replace",
        on_bad_document: str | BadDocuments = "error",
        overwrite: bool = False,
        memory_bytes: int = MEMORY_BYTES,
        max_segments: int = MOST_SEGMENTS,
        storage: Storage | None = None,
    ) -> None:
        if on_duplicate not in ("replace", "error"):
            raise ParameterError(f"must be 'replace' or 'error', got {on_duplicate!r}.", parameter="on_duplicate")
        if language is not None:
            if analysis is not None:
                raise ParameterError("language and analysis both say how words are cut: pass one of them.")
            analysis = Analysis.of_language(language)
        self.path = index_folder(path)
        self._on_duplicate = on_duplicate
        self._bad_documents = BadDocuments.of(on_bad_document)
        self._reports_bad_documents = self._bad_documents is not on_bad_document
        self._memory_bytes = memory_bytes
        self._max_segments = _checked_count(max_segments)
        self._storage = storage or Storage()
        self._builder: SegmentBuilder | None = None
        self._failure: BaseException | None = None
        _make_folder(self._storage, self.path)
        self._lock: WriterLock | None = WriterLock(self.path)
        try:
            self._index = WorkingIndex(self.path, self._storage, schema or Schema(), analysis, overwrite=overwrite)
        except BaseException:
            self._lock.release()
            raise

    @property
    def generation(self) -> int:
        """The last commit's number; 0 if there was none."""
        return self._index.generation

    @property
    def n_docs(self) -> int:
        """Live documents, those not committed yet included. (Those that will be replaced count until then.)"""
        return sum(one.n_live for one in self._index.segments) + (self._builder.n_docs if self._builder else 0)

    def add(self, documents: Iterable[Document | Mapping[str, Any]]) -> None:
        """Add documents: `Document`s, or dictionaries with an ``id``, texts and numbers."""
        if isinstance(documents, Mapping | Document | str | bytes):
            raise ParameterError(f"add takes a list of documents, got one {type(documents).__name__}: pass a list.")
        with self._guarded():
            for document in map(_Checked(self._bad_documents), documents):
                if document is None:
                    continue
                self._builder = self._builder or SegmentBuilder(
                    self._index.schema, self._index.analysis, self._memory_bytes
                )
                self._builder.add((document,), self._bad_documents.add)
                # It may be large: release it while it is written.
                del document
                if self._builder.is_full:
                    self._flush()

    def delete(self, ids: Iterable[str | int]) -> int:
        """Delete the documents with these ids, those not committed yet included; returns how many there were."""
        if isinstance(ids, str | bytes | int):
            raise ParameterError("delete takes several ids: pass a list, with this one in it.")
        wanted = [wanted_id(document_id) for document_id in ids]
        with self._guarded():
            self._flush()
            return sum(map(self._delete, wanted))

    def commit(self) -> int:
        """Make everything visible and durable; returns the generation.

        If there are too many segments, some are merged afterwards; if that fails, the commit is still valid.
        """
        return self._commit(lambda live, sizes: choose_merge(live, sizes, self._max_segments))

    def merge(self, max_segments: int = 1) -> int:
        """Commit, then merge until at most `max_segments` are left and none has deletions; returns the generation."""
        most = _checked_count(max_segments)

        def choose(live: Sequence[int], sizes: Sequence[int]) -> tuple[int, int] | None:
            if len(live) > most:
                return (0, len(live)) if most == 1 else cheapest_run(live)
            with_deletions = (number for number in range(len(live)) if live[number] < sizes[number])
            return next(((number, number + 1) for number in with_deletions), None)

        return self._commit(choose)

    def rollback(self) -> None:
        """Drop what was not committed and go on from the last commit."""
        self._require_open()
        self._builder = None
        self._index.load()
        self._failure = None

    def close(self) -> None:
        """Drop what was not committed and release the lock."""
        if self._lock is None:
            return
        lock, self._lock, self._builder = self._lock, None, None
        try:
            self._index.abandon()
        finally:
            lock.release()

    def __enter__(self) -> IndexWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _commit(self, choose: MergeChoice) -> int:
        with self._guarded():
            self._flush(is_last=True)
            self._index.publish()
            if self._reports_bad_documents:
                self._bad_documents.report()
            try:
                self._index.merge_while(choose)
            except OSError as cause:
                raise RankwellError(
                    f"generation {self.generation} of {self.path} is committed, but its segments could not be merged: "
                    f"{cause}."
                ) from cause
        return self.generation

    def _flush(self, *, is_last: bool = False) -> None:
        """Write the collected documents as a segment, not visible yet; they replace older ones with their ids."""
        builder, self._builder = self._builder, None
        if builder is None or builder.n_docs == 0:
            return
        new = self._index.write_segment(builder.write)
        replaced = [
            (older, old_doc, new_doc)
            for older in self._index.segments
            for old_doc, new_doc in common_documents(older.segment, new.segment)
            if older.is_live(old_doc)
        ]
        if replaced or not is_last:
            places = _places(builder, new)
            self._replace(replaced, new, places)
            if not is_last:
                # Places of documents are needed for messages only, so they are kept on disk and not in memory.
                write_file(self._storage, self.path / places_name(new.entry.name), json.dumps(places).encode())
        self._index.segments.append(new)

    def _replace(self, replaced: list[tuple[WorkingSegment, int, int]], new: WorkingSegment, places: list[str]) -> None:
        """Delete older documents with the ids of those of `new`; or report the new ones as bad."""

        @cache
        def places_of(name: str) -> list[str]:
            known: list[str] = json.loads((self.path / places_name(name)).read_bytes())
            return known

        for older, old_doc, new_doc in replaced:
            first = places_of(older.entry.name)[old_doc] if older.is_new else None
            error = self._duplicate(older.segment.id_of(old_doc), places[new_doc], first)
            if error is None:
                older.delete(old_doc)
            else:
                self._bad_documents.add(error)
                new.delete(new_doc)

    def _duplicate(self, document_id: str, place: str, first: str | None) -> DataError | None:
        """The error for a document whose id another one has; with its place if that one is not committed yet."""
        if first is not None:
            return DataError(
                f"{place}: id {document_id!r} exists already, at {first}. Ids must be unique: leave one of the two "
                f"out, or give it another id."
            )
        if self._on_duplicate == "error":
            return DataError(
                f"{place}: the index {self.path} has a document with id {document_id!r}. Give it another id, delete "
                "the old one first, or pass ",
                Parameter("on_duplicate", "replace"),
                ".",
            )
        return None

    def _delete(self, document_id: bytes) -> bool:
        hashed = hash_id(document_id)
        for one in self._index.segments:
            doc = one.segment.find(document_id, hashed)
            if doc >= 0 and one.is_live(doc):
                one.delete(doc)
                return True
        return False

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """After an error the state of the work is unknown: none of it may be committed."""
        self._require_open()
        if self._failure is not None:
            raise RankwellError(
                f"an error interrupted this writer ({self._failure}). Call rollback() to continue from generation "
                f"{self.generation}; what was not committed is dropped."
            ) from self._failure
        try:
            yield
        except BaseException as failure:
            self._failure = failure
            raise

    def _require_open(self) -> None:
        if self._lock is None:
            raise RankwellError(f"this writer of {self.path} is closed. Make a new IndexWriter.")


def _places(builder: SegmentBuilder, written: WorkingSegment) -> list[str]:
    """Where the documents of a segment came from; a static order has given them other numbers than the builder's."""
    if builder.schema.static_order is None:
        return [str(place) for place in builder.places]
    ids = map(written.segment.id_of, range(written.segment.n_docs))
    return [str(builder.place_of(document_id)) for document_id in ids]


def _checked_count(max_segments: int) -> int:
    if max_segments < 1:
        raise ParameterError(f"must be 1 or more, got {max_segments}.", parameter="max_segments")
    return max_segments


def _make_folder(storage: Storage, folder: Path) -> None:
    """Create the index's folder; a folder with other files than an index's is refused."""
    if folder.is_dir():
        names = storage.list_folder(folder)
        others = [] if MANIFEST_NAME in names else foreign_names(names)
        if others:
            raise DataError(
                f"{folder} is not an index and not empty: it contains {others[0]!r}. Choose an empty or a new folder."
            )
    elif folder.exists():
        raise DataError(f"{folder} is a file; an index is a folder. Choose another path.")
    else:
        storage.make_folder(folder)
        storage.sync_folder(folder.parent)


class _Checked:
    """Converts what is added to documents, one by one; None for bad ones that are left out."""

    def __init__(self, bad_documents: BadDocuments) -> None:
        self._bad_documents = bad_documents
        self._number = 0

    def __call__(self, added: Document | Mapping[str, Any]) -> Document | None:
        self._number += 1
        if isinstance(added, Document):
            return added
        try:
            return _document_of(added, Place(f"document {self._number} of those added"))
        except DataError as error:
            self._bad_documents.add(error)
            return None


def _document_of(fields: Any, place: Place) -> Document:
    if not isinstance(fields, Mapping):
        raise DataError(
            f"{place}: a document is a dictionary of fields or a Document, got {shown(fields)}. For files there is "
            f"rankwell.corpus.reading.read_corpus."
        )
    return document_of(fields, place)
