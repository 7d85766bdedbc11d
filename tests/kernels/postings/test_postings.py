"""Posting lists: what the kernels encode against the slow definition, byte for byte, and read back."""

from __future__ import annotations

import numpy as np
import pytest

from rankwell.index.commits.pipelining import InlineExecutor
from rankwell.index.segments.encoding import Inverted, write_postings
from rankwell.index.segments.sink import MemorySink
from rankwell.kernels.postings.encoding import add_impact
from rankwell.kernels.postings.reference import build_postings, decode_list, encode_lists, frontier
from rankwell.kernels.postings.rules import BLOCK, PADDING, POSTING_ARRAYS

# (document, positions) of one list
Postings = list[tuple[int, list[int]]]


def encode(lists: dict[bytes, list[Postings]], lengths: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays that the kernels write for terms given by the postings of their streams."""
    terms = sorted(lists)
    n_streams = len(lists[terms[0]])
    flat = [
        np.array([doc << 32 | place for doc, places in postings for place in places], dtype=np.int64)
        for term in terms
        for postings in lists[term]
    ]
    starts = np.concatenate(([0], np.cumsum([len(one) for one in flat]))).astype(np.int64)
    counted = lengths.ravel().astype(np.int32)
    inverted = Inverted(np.concatenate(flat), starts, counted, np.zeros_like(counted), n_streams, len(terms))
    sink = MemorySink()
    write_postings(inverted, sink, InlineExecutor(), 1)
    sink.finish({"n_docs": len(lengths), "n_terms": len(terms), "n_streams": n_streams, "n_statics": 0, "tokens": []})
    segment = sink.segment()
    return {name: segment[name] for name in POSTING_ARRAYS}


def expected(lists: dict[bytes, list[Postings]], lengths: np.ndarray) -> dict[str, np.ndarray]:
    """The same arrays by the definition."""
    full = {}
    for term, streams in lists.items():
        full[term] = [[(doc, len(places), places) for doc, places in postings] for postings in streams]
        if len(streams) > 1:
            frequencies: dict[int, int] = {}
            for doc, places in (posting for postings in streams for posting in postings):
                frequencies[doc] = frequencies.get(doc, 0) + len(places)
            full[term].append([(doc, frequencies[doc], []) for doc in sorted(frequencies)])
    return encode_lists(full, lengths)


def check(lists: dict[bytes, list[Postings]], lengths: np.ndarray) -> dict[str, np.ndarray]:
    """Encode, compare with the definition, and decode; returns the arrays."""
    arrays, wanted = encode(lists, lengths), expected(lists, lengths)
    for name in POSTING_ARRAYS:
        if not name.startswith(("terms", "documents")):
            assert arrays[name].dtype == wanted[name].dtype
            assert np.array_equal(arrays[name], wanted[name]), name
    n_lists = lengths.shape[1]
    for number, term in enumerate(sorted(lists)):
        for stream, postings in enumerate(lists[term]):
            found = decode_list(arrays, number * n_lists + stream, has_positions=True)
            assert found == [(doc, len(places), places) for doc, places in postings]
    return arrays


@pytest.mark.parametrize("n_postings", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1])
def test_lists_around_the_edge_of_a_block(n_postings):
    lengths = np.arange(n_postings)[::-1, None] + 1
    arrays = check({b"a": [[(doc, [doc]) for doc in range(n_postings)]]}, lengths)
    assert arrays["lists.first_block"].tolist() == [0, -(-n_postings // 128)]


@pytest.mark.parametrize(("value", "width"), [(1, 0), (2, 1), (3, 2), (256, 8), (257, 9), (65536, 16), (65537, 17)])
def test_widths_of_documents(value, width):
    """The second document is written as its distance from the first one, less one."""
    lengths = np.ones((value + 1, 1), dtype=np.int64)
    arrays = check({b"a": [[(0, [0]), (value, [0])]]}, lengths)
    assert arrays["blocks.widths"].tolist() == [width]
    assert len(arrays["postings"]) == -(-2 * width // 8) + PADDING


@pytest.mark.parametrize(("value", "width"), [(1, 1), (255, 8), (256, 9), (65536, 17), (2**31 - 1, 31)])
def test_widths_of_positions(value, width):
    arrays = check({b"a": [[(0, [0, value])]]}, np.array([[7]]))
    # One bit for a frequency of 2, less one.
    assert arrays["blocks.widths"].tolist() == [1 << 5 | width << 10]


@pytest.mark.parametrize(("frequency", "width"), [(1, 0), (2, 1), (256, 8), (257, 9), (300_000, 19)])
def test_widths_of_frequencies(frequency, width):
    arrays = check({b"a": [[(0, list(range(frequency)))]]}, np.full((4, 1), frequency))
    assert (arrays["blocks.widths"] & 1023).tolist() == [width << 5]
    assert arrays["lists.occurrences"].tolist() == [frequency]


def test_a_list_of_one_block_has_no_impacts():
    """Its postings say what they would."""
    for n_docs, has_impacts in ((1, False), (BLOCK, False), (BLOCK + 1, True)):
        arrays = check({b"a": [[(doc, [0]) for doc in range(n_docs)]]}, np.ones((n_docs, 1), dtype=np.int64))
        assert bool(len(arrays["impacts.frequency"])) is has_impacts


def test_the_second_block_counts_from_the_first_ones_end():
    docs = [*range(BLOCK), 1000, 1255, 1256]
    arrays = check({b"a": [[(doc, [1]) for doc in docs]]}, np.ones((2000, 1), dtype=np.int64))
    assert arrays["blocks.last_doc"].tolist() == [127, 1256]
    # 1000 - 128 needs ten bits; the first block's documents follow each other.
    assert (arrays["blocks.widths"] & 31).tolist() == [0, 10]


def test_streams_and_their_whole():
    title: Postings = [(0, [0]), (2, [4])]
    body: Postings = [(1, [0, 9]), (2, [1, 2])]
    lengths = np.array([[5, 0, 5], [0, 10, 10], [5, 3, 8]])
    arrays = check({b"a": [title, body], b"b": [[], [(1, [3])]], b"c": [[(0, [2])], []]}, lengths)
    assert decode_list(arrays, 2, has_positions=False) == [(0, 1, []), (1, 2, []), (2, 3, [])]
    assert arrays["lists.doc_freq"].tolist() == [2, 2, 3, 0, 1, 1, 1, 0, 1]
    assert arrays["lists.occurrences"].tolist() == [2, 4, 6, 0, 1, 1, 1, 0, 1]


def test_random_lists_of_several_streams():
    generator = np.random.default_rng(3)
    n_docs = 700
    lengths = generator.integers(1, 30, size=(n_docs, 4))
    lists: dict[bytes, list[Postings]] = {}
    for term in range(40):
        streams: list[Postings] = []
        for _ in range(3):
            docs = np.flatnonzero(generator.random(n_docs) < generator.beta(0.4, 2))
            widest = int(generator.choice([10, 300, 70_000]))
            streams.append(
                [
                    (doc, sorted(generator.choice(widest, size=int(generator.geometric(0.4)) % 9 + 1, replace=False)))
                    for doc in docs.tolist()
                ]
            )
        if any(streams):
            lists[f"t{term:02d}".encode()] = [
                [(doc, [int(place) for place in places]) for doc, places in stream] for stream in streams
            ]
    check(lists, lengths)


def test_documents_without_words():
    arrays = build_postings([[[]], [[]]], 1)
    assert arrays["terms.offsets"].tolist() == [0]
    assert arrays["lists.first_block"].tolist() == [0]
    assert arrays["documents.lengths"].tolist() == [0, 0]


def test_frontier_by_hand():
    # (3, 9) has the highest frequency; (2, 5) and (1, 4) are shorter; (2, 7) and (1, 5) are beaten by (2, 5).
    assert frontier([(1, 5), (2, 7), (3, 9), (2, 5), (1, 4)]) == [(1, 4), (2, 5), (3, 9)]


def test_impacts_kept_one_by_one_are_the_frontier():
    generator = np.random.default_rng(5)
    for n_pairs in (1, 2, 5, 128):
        for _ in range(50):
            pairs = list(zip(*generator.integers(1, 9, size=(2, n_pairs)).tolist(), strict=True))
            frequencies, lengths = np.empty(n_pairs, dtype=np.int32), np.empty(n_pairs, dtype=np.int32)
            stop = 0
            for frequency, length in pairs:
                stop = add_impact(frequencies, lengths, 0, stop, frequency, length)
            kept = list(zip(frequencies[:stop].tolist(), lengths[:stop].tolist(), strict=True))
            assert kept == frontier(pairs)
