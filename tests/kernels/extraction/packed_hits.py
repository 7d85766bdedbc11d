"""Hits packed for a device, and what the block must be: written slowly, array by array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwell.features.hits import Hits
from rankwell.kernels.extraction.cpu.features import weigh_terms
from rankwell.kernels.extraction.cuda.packing import join_queries, pack
from rankwell.kernels.extraction.declarations import HEADER_BYTES, HIT_ARRAYS

UNTOUCHED = 0xAB


def packed_parts(parts: Sequence[Hits]) -> np.ndarray:
    """The block of a batch in parts; bytes between its arrays are `UNTOUCHED`."""
    arrays = [part.for_kernels() for part in parts]
    queries = join_queries(arrays)
    return pack(
        arrays, queries, weigh_terms(queries, parts[0].n_docs), lambda n_bytes: np.full(n_bytes, UNTOUCHED, np.uint8)
    )


def expected_block(hits: Hits) -> bytes:
    """The block of a batch that is in one part."""
    arrays = [getattr(hits, name).astype(dtype) for name, dtype in HIT_ARRAYS.items()]
    arrays += weigh_terms(hits.for_kernels(), hits.n_docs)
    starts, content = [], bytearray()
    for array in arrays:
        starts.append(HEADER_BYTES + len(content))
        content += array.tobytes()
        content += bytes([UNTOUCHED]) * (-len(content) % 16)
    header = np.array([hits.n_candidates, hits.n_queries, *starts], np.int64).tobytes()
    return header + bytes([UNTOUCHED]) * (HEADER_BYTES - len(header)) + bytes(content)
