"""What each tree is grown on, if not on everything: random queries, documents and features.

Random numbers are hashes (`kernels/cpu/random_numbers`) of the seed, a stream, the tree's number and what is drawn, so
that they are the same on any device and after any interruption. A query counts for a tree if its number is below
`queries`, a document if its own is below `documents` too. Of the features, exactly the share `features` is allowed in a
tree, rounded, those with the smallest numbers. In a leaf, each of these is allowed if its number for the leaf is below
`node_features`. Leaves are numbered over all trees: tree·2·`MOST_LEAVES`, plus 0 for the root, and 2·k and 2·k + 1 for
the left and the right child of the tree's k-th cut, counted from 1.

A document that does not count is one with gradient and Hessian 0: it still gets its leaf's value. The estimate of a
leaf's number of documents counts those that do: min_docs_leaf is multiplied by documents / counting documents.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_GOLDEN, _MIX_1, _MIX_2 = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
QUERY_STREAM, DOCUMENT_STREAM, FEATURE_STREAM, NODE_STREAM = range(1, 5)


@dataclass(frozen=True)
class Sampling:
    """The shares that a tree is grown on, each above 0 and at most 1."""

    queries: float = 1.0
    documents: float = 1.0
    features: float = 1.0
    node_features: float = 1.0
    seed: int = 0

    @property
    def draws_everything(self) -> bool:
        """Whether a tree is grown on all documents, and may cut all features."""
        return not self.draws_documents and self.features >= 1.0

    @property
    def is_random(self) -> bool:
        """Whether anything is drawn anew for each tree."""
        return not self.draws_everything or self.node_features < 1.0

    @property
    def draws_documents(self) -> bool:
        return self.queries < 1.0 or self.documents < 1.0

    def counting_documents(
        self, number: int, query_ptr: np.ndarray, first_query: int = 0, first_doc: int = 0
    ) -> np.ndarray:
        """1 for the documents that count for tree `number`, else 0; uint8 (n_docs,).

        first_query, first_doc : the numbers of the first query and document, if these are a part of all
        """
        n_docs = int(query_ptr[-1])
        counts = np.ones(n_docs, bool)
        if self.queries < 1.0:
            seed = stream_seed(self.seed, QUERY_STREAM)
            kept = random_units(seed, number, len(query_ptr) - 1, first_query) < self.queries
            counts &= np.repeat(kept, np.diff(query_ptr))
        if self.documents < 1.0:
            seed = stream_seed(self.seed, DOCUMENT_STREAM)
            counts &= random_units(seed, number, n_docs, first_doc) < self.documents
        return counts.astype(np.uint8)

    def allowed_features(self, number: int, varying: np.ndarray, n_features: int) -> np.ndarray:
        """1 for the features that tree `number` may cut, out of the numbers `varying`; uint8 (n_features,)."""
        allowed = np.zeros(n_features, np.uint8)
        n_chosen = max(1, round(self.features * len(varying)))
        units = random_units(stream_seed(self.seed, FEATURE_STREAM), number, n_features)[varying]
        allowed[varying[np.argsort(units, kind="stable")[:n_chosen]]] = 1
        return allowed


def stream_seed(seed: int, stream: int) -> int:
    """The seed of one of the streams."""
    return (seed + (stream << 40)) % 2**63


def random_units(seed: int, number: int, size: int, first: int = 0) -> np.ndarray:
    """The random numbers of (seed, number, first), (seed, number, first + 1), ..., float64 in (0, 1)."""
    with np.errstate(over="ignore"):
        start = _mix(np.array([seed], np.uint64) + _GOLDEN * np.uint64(number + 1))
        bits = _mix(start + _GOLDEN * (np.arange(size, dtype=np.uint64) + np.uint64(first + 1)))
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def _mix(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))
