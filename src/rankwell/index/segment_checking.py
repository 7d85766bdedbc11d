"""Whether the arrays of a segment fit together: sizes, orders, counts, ids, stored fields.

Checksums detect damage after writing; these checks detect a faulty writer. Each check that fails gives one
line; if offsets are wrong, what they point to is not checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.index.document_ids import hash_ids
from rankwell.index.segment import Segment
from rankwell.index.stored_fields import decode_stored
from rankwell.kernels.postings import checking as posting_checking

_WRONG_LISTS = {
    posting_checking.BLOCK_COUNT: "its number of blocks does not match its document frequency",
    posting_checking.WIDTH_CODE: "a block has an unknown width code",
    posting_checking.POSTING_BYTES: "a block's postings do not end where the next block's begin",
    posting_checking.POSITION_BYTES: "a block's positions do not end where the next block's begin",
    posting_checking.DOCUMENT_ORDER: "its documents do not ascend",
    posting_checking.DOCUMENT_RANGE: "it names a document that the segment does not have",
    posting_checking.LAST_DOCUMENT: "a block's last document is not the recorded one",
    posting_checking.OCCURRENCES: "its occurrences are not the sum of its frequencies",
    posting_checking.POSITION_ORDER: "positions of a document do not ascend",
    posting_checking.POSITION_RANGE: "a position is beyond 2,147,483,647",
    posting_checking.IMPACT_ORDER: "a block's impacts do not ascend",
    posting_checking.IMPACT_BOUND: "a posting is above its block's impacts",
    posting_checking.IMPACT_EXACT: "a block has an impact that no posting of it has",
}


def segment_problems(segment: Segment) -> list[str]:
    """What is wrong with a segment, a line each; the checksums must have been right."""
    problems = [*_wrong_sizes(segment), *_wrong_offsets(segment)]
    if not problems:
        checks: tuple[Callable[[Segment], Iterator[str]], ...] = (_terms, _lists, _ids, _stored)
        problems = [line for check in checks for line in check(segment)]
    return [f"{segment.name}: {problem}." for problem in problems]


def _wrong_sizes(segment: Segment) -> Iterator[str]:
    n_lists = segment.n_terms * segment.lists_per_term
    n_blocks = len(segment["blocks.last_doc"])
    cells = segment.n_docs * segment.lists_per_term
    expected = {
        "terms.offsets": segment.n_terms + 1,
        "lists.first_block": n_lists + 1,
        "lists.doc_freq": n_lists,
        "lists.occurrences": n_lists,
        "blocks.data": n_blocks,
        "blocks.positions": n_blocks,
        "blocks.widths": n_blocks,
        "blocks.first_impact": n_blocks + 1,
        "impacts.length": len(segment["impacts.frequency"]),
        "documents.lengths": cells,
        "documents.distinct": cells,
        "documents.ids.offsets": segment.n_docs + 1,
        "documents.id_hashes": segment.n_docs,
        "documents.id_order": segment.n_docs,
        "documents.statics": segment.n_docs * segment.n_statics,
        "stored.offsets": len(segment["stored.first_doc"]),
    }
    for name, size in expected.items():
        if len(segment[name]) != size:
            yield f"{name} has {len(segment[name]):,} elements, {size:,} are expected"
    if len(segment.tokens) != segment.lists_per_term:
        yield f"tokens are counted for {len(segment.tokens)} list columns, there are {segment.lists_per_term}"


def _wrong_offsets(segment: Segment) -> Iterator[str]:
    """Offsets must ascend from 0 to the end of what they point into."""
    ends = {
        "terms.offsets": len(segment["terms.text"]),
        "lists.first_block": len(segment["blocks.last_doc"]),
        "blocks.first_impact": len(segment["impacts.frequency"]),
        "documents.ids.offsets": len(segment["documents.ids.text"]),
        "stored.offsets": len(segment["stored.data"]),
        "stored.first_doc": segment.n_docs,
    }
    for name, end in ends.items():
        offsets = segment[name]
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != end or np.any(np.diff(offsets) < 0):
            yield f"{name} does not ascend from 0 to {end:,}"
    for name, content in (("blocks.data", "postings"), ("blocks.positions", "positions")):
        offsets, end = segment[name], len(segment[content])
        if len(offsets) and (offsets[0] != 0 or offsets[-1] > end or np.any(np.diff(offsets) < 0)):
            yield f"{name} does not ascend from 0 to {end:,} at most"
    if not len(segment["blocks.data"]) and len(segment["postings"]) + len(segment["positions"]):
        yield "there are postings or positions outside every block"


def _terms(segment: Segment) -> Iterator[str]:
    text, offsets = segment["terms.text"].tobytes(), segment["terms.offsets"].tolist()
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
    wrong, list_number, block = posting_checking.check_lists(
        segment["lists.first_block"],
        segment["lists.doc_freq"],
        segment["lists.occurrences"],
        segment["blocks.last_doc"],
        segment["blocks.data"],
        segment["blocks.positions"],
        segment["blocks.widths"],
        segment["blocks.first_impact"],
        segment["impacts.frequency"],
        segment["impacts.length"],
        segment["postings"],
        segment["positions"],
        segment["documents.lengths"],
        segment.lists_per_term,
        segment.n_streams,
        segment.n_docs,
        total,
        distinct,
    )
    if wrong:
        term = segment.term(list_number // segment.lists_per_term)
        column = list_number % segment.lists_per_term
        yield f"list {list_number:,} (term {term!r}, column {column}), block {block:,}: {_WRONG_LISTS[wrong]}"
        return
    yield from _wrong_totals(segment, total, distinct)


def _wrong_totals(segment: Segment, total: np.ndarray, distinct: np.ndarray) -> Iterator[str]:
    """Counted over all lists: lengths, different terms, tokens; and the whole document against its streams."""
    for name, counted in (("documents.lengths", total), ("documents.distinct", distinct)):
        differs = np.flatnonzero(segment[name] != counted)
        if len(differs):
            doc, column = divmod(int(differs[0]), segment.lists_per_term)
            noted, found = int(segment[name][differs[0]]), int(counted[differs[0]])
            yield f"{name} of document {doc:,}, column {column}, is {noted:,}, the posting lists have {found:,}"
    by_column = total.reshape(segment.n_docs, segment.lists_per_term)
    if tuple(by_column.sum(axis=0).tolist()) != segment.tokens:
        yield f"tokens are recorded as {segment.tokens}, the posting lists have {tuple(by_column.sum(axis=0).tolist())}"
    if segment.n_streams > 1:
        differs = np.flatnonzero(by_column[:, :-1].sum(axis=1) != by_column[:, -1])
        if len(differs):
            doc, whole, streams = int(differs[0]), by_column[differs[0], -1], by_column[differs[0], :-1].sum()
            yield f"document {doc:,} has {whole:,} words as a whole, its streams have {streams:,}"
        occurrences = segment["lists.occurrences"].reshape(segment.n_terms, segment.lists_per_term)
        documents = segment["lists.doc_freq"].reshape(segment.n_terms, segment.lists_per_term).astype(np.int64)
        streams, whole = documents[:, :-1], documents[:, -1]
        differs = occurrences[:, :-1].sum(axis=1) != occurrences[:, -1]
        differs |= (whole < streams.max(axis=1)) | (whole > streams.sum(axis=1))
        if differs.any():
            term = segment.term(int(np.argmax(differs)))
            yield f"term {term!r}: the whole document's list does not match those of the streams"


def _ids(segment: Segment) -> Iterator[str]:
    order, hashes = segment["documents.id_order"], segment["documents.id_hashes"]
    if not np.array_equal(np.sort(order), np.arange(segment.n_docs)):
        yield "documents.id_order does not name every document once"
        return
    expected = hash_ids(segment["documents.ids.text"], segment["documents.ids.offsets"])
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
    offsets, first_docs = segment["stored.offsets"], segment["stored.first_doc"]
    for block in range(len(offsets) - 1):
        try:
            lines = decode_stored(segment["stored.data"][offsets[block] : offsets[block + 1]])
            are_objects = all(isinstance(json.loads(line), dict) for line in lines)
        except (FileFormatError, ValueError):
            are_objects = False
        if not are_objects or len(lines) != first_docs[block + 1] - first_docs[block]:
            yield f"the stored fields of documents {first_docs[block]:,} to {first_docs[block + 1] - 1:,} are damaged"
            return
