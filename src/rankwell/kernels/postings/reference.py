"""A segment's inverted index, built and read one posting at a time: slow, obvious, and the definition of what is right.

A term has one list per stream and, if there is more than one stream, a last one for the whole document; list number =
term · lists_per_term + stream. A list is cut into blocks of `BLOCK` postings. A block's documents and frequencies are
in ``postings`` and its positions in ``positions``, each with one width (1, 2 or 4 bytes per value) for the whole block.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwell.kernels.postings.rules import BLOCK, POSTING_ARRAYS, lists_per_term

WIDTHS = (1, 2, 4)

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
                base = _encode_block(columns, postings[start : start + BLOCK], base, lengths[:, column])
    columns["lists.first_block"].append(len(columns["blocks.last_doc"]))
    columns["documents.lengths"] = lengths.ravel().tolist()
    columns["documents.distinct"] = distinct.ravel().tolist()
    return {name: np.array(values, dtype=POSTING_ARRAYS[name]) for name, values in columns.items()}


def _encode_block(columns: dict[str, list[int]], block: list[Posting], base: int, lengths: np.ndarray) -> int:
    """Append one block to the columns; returns the base of the next block's documents."""
    docs = [doc - base for doc, _, _ in block]
    frequencies = [frequency - 1 for _, frequency, _ in block]
    gaps = [gap for _, _, places in block for gap in np.diff(places, prepend=0).tolist()]
    codes = [width_code(values) for values in (docs, frequencies, gaps)]
    columns["blocks.last_doc"].append(block[-1][0])
    columns["blocks.data"].append(len(columns["postings"]))
    columns["blocks.positions"].append(len(columns["positions"]))
    columns["blocks.widths"].append(codes[0] | codes[1] << 2 | codes[2] << 4)
    columns["postings"] += to_bytes(docs, codes[0]) + to_bytes(frequencies, codes[1])
    columns["positions"] += to_bytes(gaps, codes[2])
    for frequency, length in frontier([(frequency, int(lengths[doc])) for doc, frequency, _ in block]):
        columns["impacts.frequency"].append(frequency)
        columns["impacts.length"].append(length)
    columns["blocks.first_impact"].append(len(columns["impacts.frequency"]))
    return block[-1][0] + 1


def width_code(values: Sequence[int]) -> int:
    """0, 1 or 2: every value fits in 1, 2 or 4 bytes without sign."""
    largest = max(values, default=0)
    return 0 if largest < 2**8 else 1 if largest < 2**16 else 2


def to_bytes(values: Sequence[int], code: int) -> list[int]:
    return list(np.array(values, dtype=f"<u{WIDTHS[code]}").tobytes())


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
    widths = [WIDTHS[int(arrays["blocks.widths"][block]) >> shift & 3] for shift in (0, 2, 4)]
    start = int(arrays["blocks.data"][block])
    docs = _values(arrays["postings"], start, n_postings, widths[0])
    frequencies = _values(arrays["postings"], start + n_postings * widths[0], n_postings, widths[1])
    place = int(arrays["blocks.positions"][block])
    postings: list[Posting] = []
    for doc, frequency in zip(docs, (value + 1 for value in frequencies), strict=True):
        n_places = frequency if has_positions else 0
        gaps = _values(arrays["positions"], place, n_places, widths[2])
        postings.append((base + doc, frequency, np.cumsum(gaps).tolist() if gaps else []))
        place += n_places * widths[2]
    return postings


def _values(data: np.ndarray, start: int, count: int, width: int) -> list[int]:
    values: list[int] = np.frombuffer(np.asarray(data[start : start + count * width]).tobytes(), f"<u{width}").tolist()
    return values
