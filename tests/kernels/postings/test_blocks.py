from __future__ import annotations

import numpy as np
import pytest

from rankwell.index.segments.posting_arrays import posting_arrays
from rankwell.index.segments.segment import ARRAYS, Segment
from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.postings.blocks import (
    block_documents,
    block_frequencies,
    block_positions,
    load_frequency,
    seek_block,
)
from rankwell.kernels.postings.packing import find_number
from rankwell.kernels.postings.reference import build_postings, decode_list
from rankwell.kernels.postings.rules import BLOCK

# (documents, gap between them, occurrences): narrow and wide runs, and sizes around a block's edge.
LISTS = [(1, 1, 1), (127, 1, 1), (128, 2, 2), (129, 3, 1), (300, 1, 300), (130, 600, 1), (3, 70_000, 2), (257, 5, 3)]


@kernel
def documents_of(arrays, number, block, out):
    return block_documents(arrays, number, block, out, 0)


@kernel
def frequencies_of(arrays, block, count, out):
    block_frequencies(arrays, block, count, out)


@kernel
def frequency_of(arrays, block, count, j):
    return load_frequency(arrays.postings, arrays.data[block], arrays.widths[block], count, j)


@kernel
def positions_of(arrays, block, count, frequencies, j, out):
    block_positions(arrays, block, count, frequencies, j, out)


@kernel
def find(documents, doc):
    return find_number(documents, 0, np.uint32(doc))


@pytest.fixture(scope="module")
def segment() -> Segment:
    """One stream; list i has the documents 0, gap, 2·gap, ... of `LISTS[i]`, the term occurring at even places."""
    documents: list[list[list[tuple[bytes, int]]]] = [[[]] for _ in range(150_000)]
    for number, (count, gap, occurrences) in enumerate(LISTS):
        for doc in range(0, count * gap, gap):
            documents[doc][0] += [(f"t{number}".encode(), 2 * place) for place in range(occurrences)]
    arrays = build_postings(documents, 1)
    empty = {name: np.empty(0, dtype=dtype) for name, dtype in ARRAYS.items()}
    meta = {"n_docs": len(documents), "n_terms": len(LISTS), "n_streams": 1, "n_statics": 0, "tokens": [0]}
    return Segment.in_memory(empty | arrays, meta)


@pytest.mark.parametrize("number", range(len(LISTS)))
def test_blocks_are_what_the_reference_reads(segment: Segment, number: int) -> None:
    arrays = posting_arrays(segment)
    wanted = decode_list({name: segment[name] for name in ARRAYS}, number, has_positions=True)
    documents, frequencies, found = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint32), []
    for block in range(arrays.first_block[number], arrays.first_block[number + 1]):
        count = documents_of(arrays, number, block, documents)
        frequencies_of(arrays, block, count, frequencies)
        for j in range(count):
            assert frequency_of(arrays, block, count, j) == frequencies[j]
            places = np.empty(frequencies[j], np.int64)
            positions_of(arrays, block, count, frequencies, j, places)
            found.append((int(documents[j]), int(frequencies[j]), places.tolist()))
    assert found == wanted


@pytest.mark.parametrize("number", range(len(LISTS)))
def test_documents_are_found_in_their_blocks(segment: Segment, number: int) -> None:
    arrays = posting_arrays(segment)
    first, stop = arrays.first_block[number : number + 2].tolist()
    present = {doc: place for place, (doc, _, _) in enumerate(decode_list(
        {name: segment[name] for name in ARRAYS}, number, has_positions=False))}  # fmt: skip
    wanted = sorted({near for doc in present for near in (doc - 1, doc, doc + 1) if near >= 0})
    block, documents = first, np.empty(BLOCK, np.uint32)
    for doc in wanted:
        block = seek_block(arrays.last_doc, block, stop, doc)
        assert block == first + int(np.searchsorted(arrays.last_doc[first:stop], doc))
        if block < stop:
            count = documents_of(arrays, number, block, documents)
            place = find(documents, doc)
            assert place == present[doc] - BLOCK * (block - first) if doc in present else place >= count
        else:
            assert doc > max(present)
