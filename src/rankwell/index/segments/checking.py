"""Whether the arrays of a segment fit together: sizes, orders, counts, ids, stored fields.

Checksums detect damage after writing; these checks detect a faulty writer. Each check that fails gives one
line; if offsets are wrong, what they point to is not checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.index.segments.columns import keyword_column
from rankwell.index.segments.document_ids import hash_ids
from rankwell.index.segments.forward_index import forward_problems
from rankwell.index.segments.keyword_arrays import KEYWORD_ARRAYS
from rankwell.index.segments.keyword_columns import MISSING
from rankwell.index.segments.segment import ARRAYS, Segment
from rankwell.index.segments.stored_fields import decode_stored
from rankwell.index.segments.structure import WRONG_LISTS, expected_sizes, wrong_list
from rankwell.kernels.postings import checking as posting_checking
from rankwell.kernels.postings.rules import MOST_OCCURRENCES, PADDING


def segment_problems(segment: Segment) -> list[str]:
    """What is wrong with a segment, a line each; the checksums must have been right."""
    problems = [*_wrong_sizes(segment), *_wrong_offsets(segment)]
    if not problems:
        checks: tuple[Callable[[Segment], Iterator[str]], ...] = (
            _terms,
            _lists,
            _ids,
            _stored,
            _keywords,
            _forward,
        )
        problems = [line for check in checks for line in check(segment)]
    return [f"{segment.name}: {problem}." for problem in problems]


def _wrong_sizes(segment: Segment) -> Iterator[str]:
    expected = expected_sizes(segment.meta, {name: len(segment.unverified(name)) for name in ARRAYS})
    for name, size in expected.items():
        found = len(segment.unverified(name))
        if found != size:
            yield f"{name} has {found:,} elements, {size:,} are expected"
    if len(segment.tokens) != segment.lists_per_term:
        yield f"tokens are counted for {len(segment.tokens)} list columns, there are {segment.lists_per_term}"


def _wrong_offsets(segment: Segment) -> Iterator[str]:
    """Offsets must ascend from 0 to the end of what they point into."""
    ends = {
        "terms.offsets": len(segment.unverified("terms.text")),
        "lists.first_block": len(segment.unverified("blocks.last_doc")),
        "blocks.first_impact": len(segment.unverified("impacts.frequency")),
        "documents.ids.offsets": len(segment.unverified("documents.ids.text")),
        "stored.offsets": len(segment.unverified("stored.data")),
        "stored.first_doc": segment.n_docs,
    }
    if segment.n_keywords:
        ends["keywords.offsets"] = len(segment.unverified("keywords.text"))
        ends["keywords.first_value"] = len(segment.unverified("keywords.offsets")) - 1
        ends["keywords.first_entry"] = len(segment.unverified("keywords.entries"))
    if segment.forward_streams:
        ends["forward.offsets"] = len(segment.unverified("forward.data"))
    for name, end in ends.items():
        offsets = segment.unverified(name)
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != end or np.any(np.diff(offsets) < 0):
            yield f"{name} does not ascend from 0 to {end:,}"
    starts, end = segment.unverified("blocks.data"), len(segment.unverified("postings")) - PADDING
    if len(starts) and (starts[0] != 0 or starts[-1] > end or np.any(np.diff(starts) < 0)):
        yield f"blocks.data does not ascend from 0 to {end:,} at most"
    if end < 0 or (not len(starts) and end):
        yield f"there are {end + PADDING:,} bytes of postings outside every block, {PADDING} are expected"


def _terms(segment: Segment) -> Iterator[str]:
    text, offsets = segment.unverified("terms.text").tobytes(), segment.unverified("terms.offsets").tolist()
    before = b""
    for number in range(segment.n_terms):
        term = text[offsets[number] : offsets[number + 1]]
        if term <= before:
            yield f"term {number:,} ({term!r}) does not come after the one before it ({before!r})"
            return
        before = term


def _lists(segment: Segment) -> Iterator[str]:
    cells = segment.n_docs * segment.lists_per_term
    total, distinct = np.zeros(cells, dtype=np.int64), np.zeros(cells, dtype=np.int32)
    wrong, list_number, block = wrong_list(segment)
    if not wrong:
        array = segment.unverified
        wrong, list_number, block = posting_checking.check_lists(
            array("lists.first_block"),
            array("lists.doc_freq"),
            array("blocks.last_doc"),
            array("blocks.data"),
            array("blocks.widths"),
            array("blocks.first_impact"),
            array("impacts.frequency"),
            array("impacts.length"),
            array("postings"),
            array("documents.lengths"),
            segment.lists_per_term,
            total,
            distinct,
        )
    if wrong:
        term = segment.term(list_number // segment.lists_per_term)
        column = list_number % segment.lists_per_term
        yield f"list {list_number:,} (term {term!r}, column {column}), block {block:,}: {WRONG_LISTS[wrong]}"
        return
    yield from _wrong_totals(segment, total, distinct)


def _wrong_totals(segment: Segment, total: np.ndarray, distinct: np.ndarray) -> Iterator[str]:
    """Counted over all lists: lengths, different terms, tokens; and the whole document against its streams."""
    for name, counted in (("documents.lengths", total), ("documents.distinct", distinct)):
        differs = np.flatnonzero(segment.unverified(name) != counted)
        if len(differs):
            doc, column = divmod(int(differs[0]), segment.lists_per_term)
            noted, found = int(segment.unverified(name)[differs[0]]), int(counted[differs[0]])
            yield f"{name} of document {doc:,}, column {column}, is {noted:,}, the posting lists have {found:,}"
    by_column = total.reshape(segment.n_docs, segment.lists_per_term)
    if tuple(by_column.sum(axis=0).tolist()) != segment.tokens:
        yield f"tokens are recorded as {segment.tokens}, the posting lists have {tuple(by_column.sum(axis=0).tolist())}"
    if segment.n_streams > 1:
        differs = np.flatnonzero(by_column[:, :-1].sum(axis=1) != by_column[:, -1])
        if len(differs):
            doc, whole, streams = int(differs[0]), by_column[differs[0], -1], by_column[differs[0], :-1].sum()
            yield f"document {doc:,} has {whole:,} words as a whole, its streams have {streams:,}"
        occurrences = segment.unverified("lists.occurrences").reshape(segment.n_terms, segment.lists_per_term)
        documents = (
            segment.unverified("lists.doc_freq").reshape(segment.n_terms, segment.lists_per_term).astype(np.int64)
        )
        streams, whole = documents[:, :-1], documents[:, -1]
        differs = np.minimum(occurrences[:, :-1].sum(axis=1), MOST_OCCURRENCES) != occurrences[:, -1]
        differs |= (whole < streams.max(axis=1)) | (whole > streams.sum(axis=1))
        if differs.any():
            term = segment.term(int(np.argmax(differs)))
            yield f"term {term!r}: the whole document's list does not match those of the streams"


def _ids(segment: Segment) -> Iterator[str]:
    order, hashes = segment.unverified("documents.id_order"), segment.unverified("documents.id_hashes")
    if not np.array_equal(np.sort(order), np.arange(segment.n_docs)):
        yield "documents.id_order does not name every document once"
        return
    expected = hash_ids(segment.unverified("documents.ids.text"), segment.unverified("documents.ids.offsets"))
    if not np.array_equal(expected[order], hashes) or np.any(hashes[1:] < hashes[:-1]):
        yield "documents.id_hashes are not the sorted hashes of the ids"
        return
    for place in np.flatnonzero(hashes[1:] == hashes[:-1]).tolist():
        same = order[np.searchsorted(hashes, hashes[place]) : place + 1].tolist()
        document_id = segment.id_of(int(order[place + 1]))
        if document_id in [segment.id_of(doc) for doc in same]:
            yield f"two documents have the id {document_id!r}"
            return


def _stored(segment: Segment) -> Iterator[str]:
    offsets, first_docs = segment.unverified("stored.offsets"), segment.unverified("stored.first_doc")
    for block in range(len(offsets) - 1):
        try:
            lines = decode_stored(segment.unverified("stored.data")[offsets[block] : offsets[block + 1]])
            are_objects = all(isinstance(json.loads(line), dict) for line in lines)
        except (FileFormatError, ValueError):
            are_objects = False
        if not are_objects or len(lines) != first_docs[block + 1] - first_docs[block]:
            yield f"the stored fields of documents {first_docs[block]:,} to {first_docs[block + 1] - 1:,} are damaged"
            return


def _forward(segment: Segment) -> Iterator[str]:
    yield from forward_problems(segment)


def _keywords(segment: Segment) -> Iterator[str]:
    n_pointers = int(np.count_nonzero(np.diff(segment.unverified("keywords.first_entry")) != segment.n_docs))
    if len(segment.unverified("keywords.entry_ptr")) != n_pointers * (segment.n_docs + 1):
        yield f"keywords.entry_ptr does not have a number for each document of {n_pointers} fields"
    if not segment.n_keywords and any(len(segment.unverified(name)) for name in KEYWORD_ARRAYS):
        yield "there are keywords, but no keyword field"
    for field in range(segment.n_keywords):
        try:
            column = keyword_column(segment, field)
        except FileFormatError as error:
            yield f"keyword field {field}: {error}"
            continue
        if column is None:
            continue
        if any(one >= other for one, other in pairwise(column.values)):
            yield f"the values of keyword field {field} do not ascend"
        if len(np.unique(column.entries[column.entries != MISSING])) != len(column.values):
            yield f"keyword field {field} has a value that no document has"
        if column.entry_ptr is not None:
            ascends = np.diff(column.entries) > 0
            ascends[column.entry_ptr[1:-1] - 1] = True
            if not ascends.all():
                yield f"the entries of a document in keyword field {field} do not ascend"
