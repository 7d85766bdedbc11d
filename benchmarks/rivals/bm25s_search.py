"""bm25s: scores of every posting computed beforehand, summed by its Numba backend, its fastest."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

NAME = "bm25s"
IS_INSTALLED = find_spec("bm25s") is not None


class Bm25sIndex:
    """An index of documents that are given as words.

    Parameters
    ----------
    documents : int32 arrays, the words of each document as numbers
    n_words : how many different words there are
    """

    def __init__(self, documents: Sequence[np.ndarray], n_words: int, *, k1: float, b: float) -> None:
        import bm25s

        self._factor = k1 + 1.0
        self._index: Any = bm25s.BM25(method="lucene", k1=k1, b=b, backend="numba")
        vocabulary = {number: number for number in range(n_words)}
        self._index.index(([words.tolist() for words in documents], vocabulary), show_progress=False)
        self._index.activate_numba_scorer()

    def search(self, queries: Sequence[Sequence[int]], k: int) -> tuple[np.ndarray, np.ndarray]:
        """Documents and scores, one row per query, by falling score; one thread.

        Its scores leave out the factor k1 + 1, the same for every document; here they have it.
        """
        docs, scores = self._index.retrieve(
            [list(query) for query in queries], k=k, show_progress=False, n_threads=1, return_as="tuple"
        )
        return docs, scores * np.float32(self._factor)
