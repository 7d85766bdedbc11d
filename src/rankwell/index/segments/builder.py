"""Documents to a segment.

Two things happen at the same time: the caller's thread makes documents (reading, JSON, compression of stored fields)
and a worker cuts the text of the batch before into words. What a segment holds depends on the documents and their order
alone, not on the number of threads nor on how the documents were handed over.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from rankwell.corpus.document import Document, Place
from rankwell.errors import DataError, ParameterError
from rankwell.index.commits.pipelining import InlineExecutor
from rankwell.index.schema import Schema
from rankwell.index.segments.document_ids import encode_ids
from rankwell.index.segments.encoding import LIST_COST, invert, write_postings
from rankwell.index.segments.field_values import field_values
from rankwell.index.segments.forward_writing import write_forward
from rankwell.index.segments.keyword_columns import KeywordCollector, write_columns
from rankwell.index.segments.segment import ARRAYS
from rankwell.index.segments.sink import SegmentSink
from rankwell.index.segments.stored_fields import StoredFields
from rankwell.index.segments.vectors import vector_row
from rankwell.index.text.analysis import Analysis
from rankwell.index.text.text_batch import MOST_POSITIONS, VALUE_GAP, TextBatch, most_positions, text_pieces
from rankwell.index.text.word_table import NumberedText, TermTable, WordTable
from rankwell.kernels.postings.inversion import NEW_FIELD, Tokens
from rankwell.kernels.postings.rules import lists_per_term
from rankwell.kernels.threads import available_cores

MEMORY_BYTES = 128 * 2**20
# Text is cut into words this many bytes at a time, and this many batches may wait for it.
BATCH_BYTES = 2**21
BATCHES_AHEAD = 2
# Fewer bytes if there are many streams: text that is not cut yet may bring a new term, with a list for every stream,
# every few bytes, and a quarter of the memory is kept for that.
LEAST_BATCH_BYTES = 2**12
BYTES_OF_NEW_TERM = 8
SHARE_OF_NEW_TERMS = 4
# The memory of a byte of text in a batch, a token, a word with its term and a document, in bytes.
TEXT_COST, TOKEN_COST, WORD_COST, DOCUMENT_COST = 4, 12, 350, 400
# The additional memory of a document for each list of a term (its length, its different words) and each static.
CELL_COST = 8


class SegmentBuilder:
    """Collects documents and writes them as one segment.

    Parameters
    ----------
    schema : Schema
        Grows by the fields that documents bring.
    analysis : Analysis
    memory_bytes : int
        About how much memory the builder may take; `is_full` says when it is used up.
    n_jobs : int or None
        Threads; None or -1 is every core. The segment does not depend on it.
    """

    def __init__(
        self, schema: Schema, analysis: Analysis, memory_bytes: int = MEMORY_BYTES, *, n_jobs: int | None = None
    ) -> None:
        if memory_bytes < 1:
            raise ParameterError(f"must be at least 1, got {memory_bytes}.", parameter="memory_bytes")
        self.schema = schema
        self.analysis = analysis
        self.memory_bytes = memory_bytes
        self._n_workers = available_cores() if n_jobs in (None, -1) else max(1, int(n_jobs or 1))
        self._words = WordTable(analysis.word_rule)
        self._terms = TermTable(analysis)
        self._batch = TextBatch()
        self._under_way: deque[tuple[TextBatch, Future[NumberedText]]] = deque()
        self._waiting_bytes = 0
        self._tokens: list[Tokens] = []
        self._n_tokens = 0
        self._places: dict[str, Place] = {}
        self._statics = _Statics()
        self._vectors: list[np.ndarray] = []
        self._keywords = KeywordCollector()
        self._stored = StoredFields()
        self._cutter = self._executor(1)

    @property
    def n_docs(self) -> int:
        return len(self._places)

    @property
    def is_full(self) -> bool:
        """Whether the memory is used up: the segment should be written now."""
        n_streams, n_statics = self.schema.n_streams, self.schema.n_statics
        n_text_bytes = self._batch.n_bytes + self._waiting_bytes
        n_terms = self._terms.n_terms + n_text_bytes // BYTES_OF_NEW_TERM
        used = TEXT_COST * n_text_bytes + TOKEN_COST * self._n_tokens
        used += WORD_COST * self._terms.n_words + LIST_COST * n_terms * n_streams
        used += (DOCUMENT_COST + CELL_COST * (lists_per_term(n_streams) + n_statics)) * self.n_docs
        used += 4 * self.schema.vector_words * self.n_docs
        return used + self._stored.n_bytes + self._keywords.n_bytes > self.memory_bytes

    @property
    def places(self) -> Iterable[Place]:
        """Where the documents came from, in their order."""
        return self._places.values()

    def place_of(self, document_id: str) -> Place | None:
        """Where the document of that id came from, or None if there is none."""
        return self._places.get(document_id)

    def add(self, documents: Iterable[Document], on_bad: Callable[[DataError], None] | None = None) -> None:
        """Add documents; they get the next document numbers in their order.

        The first bad one raises a DataError after those before it have been added; or `on_bad` is called for each bad
        one, which leaves no trace.
        """
        for document in documents:
            try:
                self._add(document)
            except DataError as error:
                if on_bad is None:
                    raise
                on_bad(error)

    def write(self, sink: SegmentSink) -> dict[str, Any]:
        """Write the segment and return its meta data; the builder has no words afterwards."""
        self._send_batch()
        self._take_results(leave=0)
        self._cutter.shutdown()
        n_docs, n_streams, n_statics = self.n_docs, self.schema.n_streams, self.schema.n_statics
        for name, dtype in ARRAYS.items():
            sink.append(name, np.empty(0, dtype=dtype))
        for name, values in encode_ids([one.encode("utf-8") for one in self._places]).items():
            sink.append(name, values)
        sink.append("documents.statics", self._statics.table(n_docs, n_statics))
        for words in self._vectors:
            sink.append("documents.vectors", words)
        self._vectors.clear()
        for name, values in self._stored.finish():
            sink.append(name, values)
        n_keywords = write_columns(self._keywords.columns(n_docs, self.schema.n_keywords), sink)
        terms, term_of_word = self._terms.in_order()
        _append_terms(sink, terms)
        forward = self.schema.forward_streams
        write_forward(self._tokens, term_of_word, len(terms), n_docs, n_streams, forward, sink)
        with self._executor(self._n_workers) as pool:
            inverted = invert(self._tokens, term_of_word, len(terms), n_streams, n_docs, pool)
            self._tokens.clear()
            sink.append("documents.lengths", inverted.lengths)
            sink.append("documents.distinct", inverted.distinct)
            write_postings(inverted, sink, pool, self._n_workers)
        tokens = inverted.lengths.reshape(n_docs, lists_per_term(n_streams)).sum(axis=0, dtype=np.int64)
        meta = {
            "n_docs": n_docs,
            "n_terms": len(terms),
            "n_streams": n_streams,
            "n_statics": n_statics,
            "n_keywords": n_keywords,
            "tokens": tokens.tolist(),
            **({"forward": forward} if forward else {}),
            **({"vector_words": self.schema.vector_words} if self.schema.vectors else {}),
        }
        sink.finish(meta)
        return meta

    def _add(self, document: Document) -> None:
        first = self._places.get(document.id)
        if first is not None:
            raise DataError(
                f"{document.place}: id {document.id!r} exists already, at {first}. Ids must be unique: leave one of "
                f"the two out, or give it another id."
            )
        texts, numbers, keywords = field_values(document, self.schema)
        for name, text in texts.items():
            if (len(text) if type(text) is str else most_positions(text)) > MOST_POSITIONS:
                raise DataError(
                    f"{document.place}, field {name!r}: the text is too long. A field has room for {MOST_POSITIONS:,} "
                    f"words, {VALUE_GAP} of them between the texts of a list. Split the document."
                )
        vectors = vector_row(document, self.schema)
        # Names come last: a refused document must not add any.
        streams, statics = self.schema.number_fields(texts, numbers, document.place)
        doc = len(self._places)
        for name, values in keywords.items():
            self._keywords.add(doc, self.schema.keyword_number(name), values)
        batch_bytes = self._batch_bytes()
        for stream, text in zip(streams, texts.values(), strict=True):
            if type(text) is str and len(text) <= batch_bytes:
                self._batch.add(text, doc, stream)
            else:
                self._add_values([text] if isinstance(text, str) else text, doc, stream, batch_bytes)
        if self._batch.n_bytes >= batch_bytes:
            self._send_batch()
        if statics:
            self._statics.add(doc, statics, numbers.values())
        if self.schema.vectors:
            self._vectors.append(vectors)
        self._stored.add(document.stored)
        self._places[document.id] = document.place

    def _batch_bytes(self) -> int:
        cost_of_byte = (BATCHES_AHEAD + 1) * LIST_COST * max(1, self.schema.n_streams) // BYTES_OF_NEW_TERM
        return min(BATCH_BYTES, max(LEAST_BATCH_BYTES, self.memory_bytes // (SHARE_OF_NEW_TERMS * cost_of_byte)))

    def _add_values(self, values: list[str], doc: int, stream: int, batch_bytes: int) -> None:
        """Add the texts of a list, and long texts piece by piece."""
        gap = NEW_FIELD
        for value in values:
            for piece in text_pieces(value, batch_bytes):
                if self._batch.n_bytes >= batch_bytes:
                    self._send_batch()
                self._batch.add(piece, doc, stream, gap)
                gap = 0
            gap = VALUE_GAP

    def _send_batch(self) -> None:
        batch, self._batch = self._batch, TextBatch()
        if not batch.parts:
            return
        self._waiting_bytes += batch.n_bytes
        self._under_way.append((batch, self._cutter.submit(self._words.number, *batch.fields())))
        batch.parts.clear()
        self._take_results(leave=BATCHES_AHEAD)

    def _take_results(self, *, leave: int) -> None:
        """Take the worker's results, in the order of the batches, until only `leave` are in progress.

        Always this many and never "those that are ready": `is_full` must not depend on which thread is faster.
        """
        while len(self._under_way) > leave:
            batch, future = self._under_way.popleft()
            numbered = future.result()
            self._terms.add(numbered.new_text, numbered.new_offsets)
            self._tokens.append(Tokens(numbered.tokens, numbered.token_ptr, *batch.owners()))
            self._n_tokens += len(numbered.tokens)
            self._waiting_bytes -= batch.n_bytes

    def _executor(self, n_threads: int) -> Executor:
        if self._n_workers == 1:
            return InlineExecutor()
        return ThreadPoolExecutor(n_threads, thread_name_prefix="rankwell-index")


class _Statics:
    """The static numbers of documents: document, number of the static, value."""

    def __init__(self) -> None:
        self._docs, self._statics, self._values = array("i"), array("i"), array("d")

    def add(self, doc: int, statics: list[int], values: Iterable[float]) -> None:
        self._docs.extend([doc] * len(statics))
        self._statics.extend(statics)
        self._values.extend(values)

    def table(self, n_docs: int, n_statics: int) -> np.ndarray:
        """One row a document, flat; NaN where a value is missing."""
        table = np.full((n_docs, n_statics), np.nan)
        table[np.array(self._docs, dtype=np.int64), np.array(self._statics, dtype=np.int64)] = self._values
        return table.ravel()


def _append_terms(sink: SegmentSink, terms: list[bytes]) -> None:
    sink.append("terms.text", np.frombuffer(b"".join(terms), dtype=np.uint8))
    offsets = np.zeros(len(terms) + 1, dtype=np.int64)
    np.cumsum([len(term) for term in terms], out=offsets[1:])
    sink.append("terms.offsets", offsets)
