"""A segment's inverted index, built and read one posting at a time: slow, obvious, and the definition of what is right.

A term has one list per stream and, if there is more than one stream, a last one for the whole document; list number =
term · lists_per_term + stream. A list is cut into blocks of `BLOCK` postings. A block is three runs of numbers in
``postings``: documents, frequencies, positions, each with one width (0 to 31 bits) for the whole block.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rankwell.kernels.postings.rules import BLOCK, PADDING, POSTING_ARRAYS, lists_per_term

PLANES = (16, 8, 4, 2, 1)

# A posting: a document, how often the term occurs there, and where (empty for the whole document of several streams).
Posting = tuple[int, int, list[int]]
# A document's words, stream by stream: (term, position).
Words = Sequence[Sequence[tuple[bytes, int]]]


def build_postings(documents: Sequence[Words], n_streams: int) -> dict[str, np.ndarray]:
    """The arrays of the inverted index (those of `POSTING_ARRAYS`) of documents given by their words."""
    n_lists = lists_per_term(n_streams)
    lengths = np.zeros((len(documents), n_lists), dtype=np.int64)
    lists: dict[bytes, list[list[Posting]]] = {}
    for doc, words in enumerate(documents):
        positions: dict[bytes, dict[int, list[int]]] = {}
        for stream, stream_words in enumerate(words):
            lengths[doc, stream] = len(stream_words)
            for term, position in stream_words:
                positions.setdefault(term, {}).setdefault(stream, []).append(position)
        for term, streams in positions.items():
            of_term = lists.setdefault(term, [[] for _ in range(n_lists)])
            for stream, places in streams.items():
                of_term[stream].append((doc, len(places), sorted(places)))
            if n_streams > 1:
                of_term[-1].append((doc, sum(map(len, streams.values())), []))
    if n_streams > 1:
        lengths[:, -1] = lengths[:, :-1].sum(axis=1)
    return encode_lists(lists, lengths)


def encode_lists(lists: dict[bytes, list[list[Posting]]], lengths: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of terms given by their lists of postings; lengths : (n_docs, lists of a term)."""
    terms = sorted(lists)
    distinct = np.zeros_like(lengths)
    columns: dict[str, list[int]] = {name: [] for name in POSTING_ARRAYS}
    columns["terms.text"] = list(b"".join(terms))
    columns["terms.offsets"] = [0, *np.cumsum([len(term) for term in terms]).tolist()]
    columns["blocks.first_impact"] = [0]
    for term in terms:
        for column, postings in enumerate(lists[term]):
            columns["lists.first_block"].append(len(columns["blocks.last_doc"]))
            columns["lists.doc_freq"].append(len(postings))
            columns["lists.occurrences"].append(sum(frequency for _, frequency, _ in postings))
            for doc, _, _ in postings:
                distinct[doc, column] += 1
            base = 0
            for start in range(0, len(postings), BLOCK):
                block, has_impacts = postings[start : start + BLOCK], len(postings) > BLOCK
                base = _encode_block(columns, block, base, lengths[:, column], has_impacts)
    columns["lists.first_block"].append(len(columns["blocks.last_doc"]))
    columns["postings"] += [0] * PADDING
    columns["documents.lengths"] = lengths.ravel().tolist()
    columns["documents.distinct"] = distinct.ravel().tolist()
    return {name: np.array(values, dtype=POSTING_ARRAYS[name]) for name, values in columns.items()}


def _encode_block(
    columns: dict[str, list[int]], block: list[Posting], base: int, lengths: np.ndarray, has_impacts: bool
) -> int:
    """Append one block to the columns; returns the base of the next block's documents."""
    docs = [doc - before - 1 for (before, *_), (doc, *_) in pairwise([(base - 1, 0, []), *block])]
    frequencies = [frequency - 1 for _, frequency, _ in block]
    gaps = [gap for _, _, places in block for gap in np.diff(places, prepend=0).tolist()]
    widths = [max(values, default=0).bit_length() for values in (docs, frequencies, gaps)]
    columns["blocks.last_doc"].append(block[-1][0])
    columns["blocks.data"].append(len(columns["postings"]))
    columns["blocks.widths"].append(widths[0] | widths[1] << 5 | widths[2] << 10)
    columns["postings"] += pack(docs, widths[0]) + pack(frequencies, widths[1]) + to_bytes(gaps, widths[2])
    if has_impacts:
        for frequency, length in frontier([(frequency, int(lengths[doc])) for doc, frequency, _ in block]):
            columns["impacts.frequency"].append(frequency)
            columns["impacts.length"].append(length)
    columns["blocks.first_impact"].append(len(columns["impacts.frequency"]))
    return block[-1][0] + 1


def pack(values: Sequence[int], width: int) -> list[int]:
    """A run of documents or frequencies: in planes if there are 128."""
    if len(values) != BLOCK:
        return to_bytes(values, width)
    packed, shift = [], 0
    for bits in PLANES:
        if width & bits:
            parts = [value >> shift & (1 << bits) - 1 for value in values]
            # Number j is in byte j mod 16·bits; those of a byte are one after another in its bits.
            n_places = BLOCK if bits == 16 else 16 * bits
            packed += [byte for place in range(n_places) for byte in to_bytes(parts[place::n_places], bits)]
            shift += bits
    return packed


def to_bytes(values: Sequence[int], width: int) -> list[int]:
    """Numbers of `width` bits, one after another from the lowest bit on."""
    together = sum(value << place * width for place, value in enumerate(values))
    return list(together.to_bytes((len(values) * width + 7) // 8, "little"))


def frontier(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pairs (frequency, length) that no other one beats with at least the frequency and at most the length."""
    return sorted(
        {
            pair
            for pair in pairs
            if not any(other != pair and other[0] >= pair[0] and other[1] <= pair[1] for other in pairs)
        }
    )


def decode_list(arrays: dict[str, np.ndarray], list_number: int, *, has_positions: bool) -> list[Posting]:
    """The postings of one list of a segment."""
    first, last = (int(block) for block in arrays["lists.first_block"][list_number : list_number + 2])
    left = int(arrays["lists.doc_freq"][list_number])
    postings: list[Posting] = []
    base = 0
    for block in range(first, last):
        n_postings = min(left, BLOCK)
        postings += _decode_block(arrays, block, n_postings, base, has_positions)
        base = postings[-1][0] + 1
        left -= n_postings
    return postings


def _decode_block(
    arrays: dict[str, np.ndarray], block: int, n_postings: int, base: int, has_positions: bool
) -> list[Posting]:
    widths = [int(arrays["blocks.widths"][block]) >> shift & 31 for shift in (0, 5, 10)]
    start = int(arrays["blocks.data"][block])
    sizes = [(n_postings * width + 7) // 8 for width in widths[:2]]
    docs = np.cumsum([distance + 1 for distance in unpack(arrays["postings"], start, n_postings, widths[0])])
    frequencies = [value + 1 for value in unpack(arrays["postings"], start + sizes[0], n_postings, widths[1])]
    n_gaps = sum(frequencies) if has_positions else 0
    gaps = from_bytes(arrays["postings"], start + sum(sizes), n_gaps, widths[2])
    postings: list[Posting] = []
    for doc, frequency in zip(docs.tolist(), frequencies, strict=True):
        own, gaps = gaps[:frequency], gaps[frequency:]
        postings.append((base - 1 + doc, frequency, np.cumsum(own).tolist() if own else []))
    return postings


def unpack(data: np.ndarray, start: int, count: int, width: int) -> list[int]:
    """The numbers of a run of documents or frequencies that begins at a byte."""
    if count != BLOCK:
        return from_bytes(data, start, count, width)
    values, shift = [0] * BLOCK, 0
    for bits in PLANES:
        if width & bits:
            n_places = BLOCK if bits == 16 else 16 * bits
            parts = from_bytes(data, start, BLOCK, bits)
            # As they are stored, those of one byte follow each other.
            for number, part in enumerate(parts):
                place, turn = divmod(number, BLOCK // n_places)
                values[turn * n_places + place] |= part << shift
            start, shift = start + 16 * bits, shift + bits
    return values


def from_bytes(data: np.ndarray, start: int, count: int, width: int) -> list[int]:
    """The inverse of `to_bytes`."""
    together = int.from_bytes(np.asarray(data[start : start + (count * width + 7) // 8]).tobytes(), "little")
    return [together >> place * width & (1 << width) - 1 for place in range(count)]
