"""Which documents count for a tree, in compiled code: what `Sampling.counting_documents` draws."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.lean_compilation import kernel
from rankwell.kernels.cpu.random_numbers import random_unit
from rankwell.kernels.threads import run_ranges
from rankwell.kernels.trees.sampling import DOCUMENT_STREAM, QUERY_STREAM, Sampling, stream_seed


@kernel
def draw_documents(first, last, query_ptr, queries, query_seed, documents, document_seed, number, counts):
    """counts[d] = 1 for the documents of queries first, ..., last − 1 that count for tree `number`, else 0.

    queries, documents : float64, the shares drawn; query_seed, document_seed : int64, of their streams
    """
    for query in range(first, last):
        is_drawn = queries >= 1.0 or random_unit(np.uint64(query_seed), number, query) < queries
        for document in range(query_ptr[query], query_ptr[query + 1]):
            own = documents >= 1.0 or random_unit(np.uint64(document_seed), number, document) < documents
            counts[document] = 1 if is_drawn and own else 0


def counting_documents(sampling: Sampling, number: int, query_ptr: np.ndarray) -> np.ndarray:
    """See `Sampling.counting_documents`."""
    counts = np.zeros(int(query_ptr[-1]), np.uint8)
    seeds = [stream_seed(sampling.seed, stream) for stream in (QUERY_STREAM, DOCUMENT_STREAM)]
    run_ranges(
        lambda first, last: draw_documents(
            first, last, query_ptr, sampling.queries, seeds[0], sampling.documents, seeds[1], number, counts
        ),
        len(query_ptr) - 1,
    )
    return counts
