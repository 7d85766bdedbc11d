"""A segment: the arrays of some of an index's documents, never changed once written.

Vocabulary. A *term* has `lists_per_term` posting lists: one for each stream and, if there is more than one stream,
a last one for the whole document. List number = term * lists_per_term + stream. A list is cut into *blocks* of up to
128 postings. `ARRAYS` names every array; all are flat and little-endian.

On disk every page has a checksum. `segment[name]` is an array that was checked whole, on its first use. The arrays that
grow with the text (postings, positions, blocks, terms, stored fields) are checked by the part instead: take them with
`unverified(name)` and call `verify_list`, `verify_rows` before the part is read. So no altered byte is ever ranked,
and opening a segment reads none of them. With the checksums, what the numbers lead to is checked too
(`structure`), because whoever forges an index forges its checksums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from rankwell.index.segments.keyword_arrays import KEYWORD_ARRAYS
from rankwell.index.segments.structure import check_array, check_documents, check_positions, check_range, forged
from rankwell.kernels.postings.rules import FORWARD_ARRAYS, PADDING, POSTING_ARRAYS, lists_per_term

ARRAYS: Mapping[str, str] = {
    **POSTING_ARRAYS,
    "documents.ids.text": "<u1",
    "documents.ids.offsets": "<i8",
    "documents.id_hashes": "<u8",
    "documents.id_order": "<i4",
    "documents.statics": "<f8",
    "documents.vectors": "<i4",
    "stored.data": "<u1",
    "stored.offsets": "<i8",
    "stored.first_doc": "<i4",
    **KEYWORD_ARRAYS,
    **FORWARD_ARRAYS,
}

_TERMS_REMEMBERED = 65_536
_DOCUMENTS_CHECKED = 1
_POSITIONS_CHECKED = 2
_ALL_CHECKED = bytes([_DOCUMENTS_CHECKED | _POSITIONS_CHECKED])

# Checks the bytes [start, stop) of the array of that name against the checksums of their pages, once.
Verifier = Callable[[str, int, int], None]


class Segment:
    """Arrays by name, and their verification on first use.

    Parameters
    ----------
    arrays : every array of `ARRAYS`, with its dtype
    meta : ``n_docs``, ``n_terms``, ``n_streams``, ``n_statics``, ``n_keywords`` and ``tokens`` (a list: the indexed
        words of each list column); ``forward`` if there is a forward index: the numbers of its streams;
        ``vector_words`` if documents have vectors: the 32-bit words of a document's
    name : what the segment is called in its index
    verifier : checks a range of an array's bytes; None if the arrays are in memory and cannot have been altered
    release : gives back the memory of mapped files
    """

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        meta: Mapping[str, Any],
        *,
        name: str = "memory",
        verifier: Verifier | None = None,
        release: Callable[[], None] | None = None,
    ) -> None:
        self.name = name
        self.meta = dict(meta)
        self.n_docs = int(meta["n_docs"])
        self.n_terms = int(meta["n_terms"])
        self.n_streams = int(meta["n_streams"])
        self.n_statics = int(meta["n_statics"])
        self.n_keywords = int(meta.get("n_keywords", 0))
        self.forward_streams = tuple(int(stream) for stream in meta.get("forward", ()))
        self.vector_words = int(meta.get("vector_words", 0))
        self.lists_per_term = lists_per_term(self.n_streams)
        self.tokens = tuple(int(count) for count in meta["tokens"])
        self._arrays = {key: _read_only(array) for key, array in arrays.items()}
        self._verifier = verifier
        self._release = release
        self._checked_lists = bytearray(self.n_terms * self.lists_per_term if verifier else 0)
        self._checked_ids = bytearray(self.n_docs if verifier else 0)
        self._checked_records = np.zeros(self.n_docs if verifier and self.forward_streams else 0, bool)
        self._checked_arrays: set[str] = set()
        self._term_numbers: dict[bytes, int] = {}

    @classmethod
    def in_memory(cls, arrays: Mapping[str, Any], meta: Mapping[str, Any], *, name: str = "memory") -> Segment:
        """A segment of arrays that were never on disk (tests, and what a sink collected); those not given are empty."""
        return cls(
            {key: np.asarray(arrays.get(key, ()), dtype=dtype) for key, dtype in ARRAYS.items()}, meta, name=name
        )

    def __getitem__(self, name: str) -> np.ndarray:
        """The array `name`, checked whole on its first use."""
        array = self._arrays[name]
        if self._verifier is not None and name not in self._checked_arrays:
            self.verify_rows(name, 0, len(array))
            check_array(self, name, array)
            self._checked_arrays.add(name)
        return array

    @cached_property
    def vectors(self) -> np.ndarray:
        """The vectors of documents (`rankwell.kernels.vectors.rules`), int32 (n_docs, vector_words)."""
        return self["documents.vectors"].reshape(self.n_docs, self.vector_words)

    @property
    def names(self) -> list[str]:
        """The names of all arrays."""
        return list(self._arrays)

    def unverified(self, name: str) -> np.ndarray:
        """The array `name`, not verified: call `verify_list` or `verify_rows` for the part that will be read."""
        return self._arrays[name]

    def verify_rows(self, name: str, start: int, stop: int) -> None:
        """Check elements [start, stop) of the array `name`; raises FileFormatError if a byte was altered."""
        if self._verifier is not None and start < stop:
            width = self._arrays[name].itemsize
            self._verifier(name, start * width, stop * width)

    def verify_list(self, list_number: int, *, positions: bool = True) -> None:
        """Check all parts of a posting list, its positions only if they will be read: their checksums, and that they
        lead no kernel outside its arrays.
        """
        if self._verifier is None:
            return
        wanted = _DOCUMENTS_CHECKED | (_POSITIONS_CHECKED if positions else 0)
        done = self._checked_lists[list_number]
        if done & wanted == wanted:
            return
        if not done & _DOCUMENTS_CHECKED:
            self._verify_documents(list_number)
            check_documents(self, list_number)
        if positions and not done & _POSITIONS_CHECKED and list_number % self.lists_per_term < self.n_streams:
            check_positions(self, list_number)
        # Another thread may have checked other parts meanwhile.
        self._checked_lists[list_number] |= wanted

    def verify_lists(self, first: int, stop: int) -> None:
        """`verify_list` of the lists of some streams of a term, which is mostly done already."""
        if self._verifier is None or self._checked_lists[first:stop] == _ALL_CHECKED * (stop - first):
            return
        for number in range(first, stop):
            self.verify_list(number)

    def verify_records(self, docs: np.ndarray) -> None:
        """Check the checksums of documents' records of the forward index; what they hold is checked by who reads them.

        docs : int64, numbers of documents that the segment has
        """
        if self._verifier is None:
            return
        offsets = self["forward.offsets"]
        for doc in docs[~self._checked_records[docs]].tolist():
            self.verify_rows("forward.data", int(offsets[doc]), int(offsets[doc + 1]))
            self._checked_records[doc] = True

    def release(self) -> None:
        """Give back the memory that mapped files take (a merge reads whole segments once); they stay readable."""
        if self._release is not None:
            self._release()

    def _verify_documents(self, list_number: int) -> None:
        self.verify_rows("lists.first_block", list_number, list_number + 2)
        self.verify_rows("lists.doc_freq", list_number, list_number + 1)
        self.verify_rows("lists.occurrences", list_number, list_number + 1)
        first, stop = self._blocks(list_number)
        self.verify_rows("blocks.last_doc", first, stop)
        self.verify_rows("blocks.widths", first, stop)
        self.verify_rows("blocks.first_impact", first, stop + 1)
        impacts = self._arrays["blocks.first_impact"]
        for name in ("impacts.frequency", "impacts.length"):
            check_range(self, name, int(impacts[first]), int(impacts[stop]))
            self.verify_rows(name, int(impacts[first]), int(impacts[stop]))
        if first < stop:
            self._verify_postings(first, stop)

    def _verify_postings(self, first: int, stop: int) -> None:
        """Blocks are stored in their order: one ends where the next begins."""
        starts, n_bytes = self._arrays["blocks.data"], len(self._arrays["postings"])
        is_last = stop == len(starts)
        self.verify_rows("blocks.data", first, stop if is_last else stop + 1)
        begin, end = int(starts[first]), n_bytes if is_last else int(starts[stop])
        check_range(self, "postings", begin, end)
        # The last block is read together with what is after it.
        self.verify_rows("postings", begin, min(end + PADDING, n_bytes))

    def _blocks(self, list_number: int) -> tuple[int, int]:
        first_block = self._arrays["lists.first_block"]
        first, stop = int(first_block[list_number]), int(first_block[list_number + 1])
        check_range(self, "blocks.last_doc", first, stop)
        return first, stop

    def term(self, term_number: int) -> bytes:
        """The term of that number, as UTF-8 bytes."""
        return self._slice("terms", term_number)

    def term_number(self, term: bytes) -> int:
        """The number of a term, -1 if no document of this segment has it. By bisection, cached."""
        known = self._term_numbers.get(term)
        if known is not None:
            return known
        low = self._first_term_from(term)
        number = low if low < self.n_terms and self._slice("terms", low) == term else -1
        if len(self._term_numbers) >= _TERMS_REMEMBERED:
            self._term_numbers.clear()
        self._term_numbers[term] = number
        return number

    def terms_with_prefix(self, prefix: bytes) -> tuple[int, int]:
        """The first number of a term that begins with `prefix` (not empty), and the one after the last."""
        # UTF-8 has no byte 0xff: it is after every term that begins so.
        return self._first_term_from(prefix), self._first_term_from(prefix + b"\xff")

    def terms_between(self, first: int, stop: int) -> Iterator[bytes]:
        """The terms of numbers [first, stop)."""
        self.verify_rows("terms.offsets", first, stop + 1)
        offsets = self._arrays["terms.offsets"][first : stop + 1].tolist()
        check_range(self, "terms.text", offsets[0], offsets[-1])
        self.verify_rows("terms.text", offsets[0], offsets[-1])
        text = self._arrays["terms.text"][offsets[0] : offsets[-1]].tobytes()
        return (text[start - offsets[0] : end - offsets[0]] for start, end in pairwise(offsets))

    def _first_term_from(self, term: bytes) -> int:
        """The number of the first term that is not before `term`."""
        low, high = 0, self.n_terms
        while low < high:
            middle = (low + high) // 2
            if self._slice("terms", middle) < term:
                low = middle + 1
            else:
                high = middle
        return low

    def id_of(self, doc: int) -> str:
        """The user's id of the segment's document `doc`."""
        if self._checked_ids and not self._checked_ids[doc]:
            self._slice("documents.ids", doc)
            self._checked_ids[doc] = 1
        offsets = self._arrays["documents.ids.offsets"]
        try:
            return self._arrays["documents.ids.text"][offsets[doc] : offsets[doc + 1]].tobytes().decode()
        except UnicodeDecodeError as cause:
            raise forged(self, f"the id of document {doc:,} is not text") from cause

    def find(self, document_id: bytes, hashed: int) -> int:
        """The document with that id (UTF-8) and hash, deleted or not; -1 if there is none."""
        hashes, order = self["documents.id_hashes"], self["documents.id_order"]
        place = int(np.searchsorted(hashes, np.uint64(hashed)))
        while place < len(hashes) and int(hashes[place]) == hashed:
            doc = int(order[place])
            if self._slice("documents.ids", doc) == document_id:
                return doc
            place += 1
        return -1

    def _slice(self, strings: str, number: int) -> bytes:
        """String `number` of the pair of arrays `strings`.text, `strings`.offsets."""
        self.verify_rows(f"{strings}.offsets", number, number + 2)
        offsets = self._arrays[f"{strings}.offsets"]
        start, stop = int(offsets[number]), int(offsets[number + 1])
        check_range(self, f"{strings}.text", start, stop)
        self.verify_rows(f"{strings}.text", start, stop)
        return self._arrays[f"{strings}.text"][start:stop].tobytes()


def _read_only(array: np.ndarray) -> np.ndarray:
    """Make arrays in memory read-only as mapped ones are, so that kernels are compiled once for both."""
    view = array.view()
    view.flags.writeable = False
    return view
