"""Feature extraction on a CUDA device: hits of a batch of queries go in as one block, features or scores come out.

A batch may be the hits of all its queries, or several of them, each the hits of some queries in the same collection:
they are copied into the block from where they are.

If scores are wanted, features stay on the device: extraction, expressions, normaliser and scoring are launched one
after the other (recorded once, then replayed), with one copy to the device and one back.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rankwell.errors import DataError
from rankwell.features.feature_set import ExpressionLevel, FeatureSet
from rankwell.features.hits import Hits
from rankwell.kernels.cuda.buffers import Buffers, copy_to_host
from rankwell.kernels.cuda.graph import LaunchGraphs, size_class
from rankwell.kernels.extraction.cuda import launches as kernels
from rankwell.kernels.extraction.cuda.packing import join_queries, pack
from rankwell.kernels.extraction.declarations import FEW_TERMS, HEADER_BYTES
from rankwell.kernels.extraction.rules import FeatureColumns
from rankwell.kernels.scoring.cuda import launches as scoring
from rankwell.kernels.scoring.kinds import ProgramArrays
from rankwell.scoring.cuda_scorer import CudaRankerScorer


def extract_on_cuda(hits: Hits, feature_set: FeatureSet) -> np.ndarray:
    """`CudaFeatureExtractor.extract`, with the extractors of the last feature sets cached."""
    return _extractor(feature_set).extract(hits)


@lru_cache(maxsize=8)
def _extractor(feature_set: FeatureSet) -> CudaFeatureExtractor:
    return CudaFeatureExtractor(feature_set)


class CudaFeatureExtractor:
    """A feature set prepared for the device.

    The same features as `rankwell.features.extraction.extract`: to the bit, except that logarithms of language models
    and functions in expressions may differ in the last place of float64. Several threads may call it: it serves one at
    a time.
    """

    def __init__(self, feature_set: FeatureSet) -> None:
        self.feature_set = feature_set
        self._buffers = Buffers()
        self._graphs = LaunchGraphs()
        self._lock = threading.Lock()
        self._columns: dict[tuple[tuple[str, ...], tuple[str, ...]], FeatureColumns] = {}
        self._expressions = [_upload_level(level) for level in feature_set.expressions]

    def extract(self, hits: Hits | Sequence[Hits]) -> np.ndarray:
        """The features of every candidate: float32 (n_candidates, n_features), in page-locked memory."""
        import cupyx

        parts = _parts_of(hits)
        n_candidates = sum(part.n_candidates for part in parts)
        rows = cupyx.empty_pinned((n_candidates, len(self.feature_set)), dtype=np.float32)
        if rows.size == 0:
            return rows
        with self._lock, self._graphs.stream as stream:
            batch = self._send(parts)
            on_device = self._buffers.device("rows", (batch.size, len(self.feature_set)), np.float32)

            def launch() -> None:
                scoring.transpose(self._launch(batch), len(self.feature_set), on_device)

            self._graphs.run(("extract", *self._key(batch)), launch)
            copy_to_host(on_device[:n_candidates], rows)
            stream.synchronize()
        return rows

    def score(
        self,
        hits: Hits | Sequence[Hits],
        scorer: CudaRankerScorer,
        *,
        by_position: bool = False,
        n_rounds: int | None = None,
    ) -> np.ndarray:
        """The scores that a ranker of these features gives every candidate: float64 (n_candidates,).

        by_position : the ranker's features may have other names than the set's, in the same order
        """
        n_columns = len(self.feature_set)
        if scorer.n_columns != n_columns or not (by_position or scorer.feature_names == self.feature_set.names):
            raise DataError(
                f"the ranker's {len(scorer.feature_names)} features are not the {len(self.feature_set)} of this "
                "feature set in their order. Create the set from the ranker's names: FeatureSet(feature_names)."
            )
        parts = _parts_of(hits)
        n_candidates = sum(part.n_candidates for part in parts)
        if n_candidates == 0:
            return np.empty(0)
        with self._lock, scorer.lock, self._graphs.stream as stream:
            batch = self._send(parts)
            scores = self._buffers.pinned("scores", (batch.size,), np.float64)

            def launch() -> None:
                columns = self._launch(batch)
                scorer.normalise(columns, batch.size, batch.query_ptr, batch.n_queries, batch.most_queries)
                copy_to_host(scorer.launch(columns, batch.size, n_rounds=n_rounds), scores)

            self._graphs.run(("score", scorer.generation, n_rounds, *self._key(batch)), launch)
            stream.synchronize()
            return scores[:n_candidates].copy()

    def _send(self, parts: Sequence[Hits]) -> _Batch:
        """Start the copy of a batch to the device."""
        from rankwell.kernels.extraction.cpu.features import weigh_terms

        arrays, first = [part.for_kernels() for part in parts], parts[0]
        queries = join_queries(arrays)
        packed = pack(
            arrays,
            queries,
            weigh_terms(queries, first.n_docs),
            lambda n_bytes: self._buffers.pinned("hits", (n_bytes,), np.uint8),
        )
        on_device = self._buffers.device("hits", packed.shape, np.uint8)
        on_device.set(packed, stream=self._graphs.stream)
        scratch, n_cells = None, int(queries.cell_base[-1])
        if np.diff(queries.term_ptr).max(initial=0) > FEW_TERMS:
            places = self._buffers.device("merge places", (3 * n_cells,), np.uint32)
            scratch = places, self._buffers.device("merge sums", (n_cells,), np.float64)
        n_candidates, n_queries = int(queries.query_ptr[-1]), len(queries.query_ptr) - 1
        schema = first.streams, first.static_names
        columns = self._columns_for(first)
        return _Batch(on_device, schema, columns, scratch, size_class(n_candidates), size_class(n_queries))

    def _launch(self, batch: _Batch) -> Any:
        """Launch extraction on the current stream: columns of features, float32 (n_features, size)."""
        columns = self._buffers.device("features", (len(self.feature_set), batch.size), np.float32)
        kernels.extract_features(batch.packed, batch.size, batch.columns, batch.scratch, columns)
        for to, programs in self._expressions:
            values = self._buffers.device("expressions", (len(to), batch.size), np.float64)
            scoring.expression_inputs(columns, batch.size, programs, values)
            kernels.store_expressions(values, batch.size, to, columns)
        return columns

    def _key(self, batch: _Batch) -> tuple[Any, ...]:
        """The addresses and sizes that a recording of `_launch` depends on."""
        return batch.schema, batch.size, batch.most_queries, batch.scratch is not None, self._buffers.generation

    def _columns_for(self, hits: Hits) -> FeatureColumns:
        import cupy

        key = hits.streams, hits.static_names
        if key not in self._columns:
            columns = self.feature_set.columns(*key)
            self._columns[key] = FeatureColumns(*(cupy.asarray(np.ascontiguousarray(array)) for array in columns))
        return self._columns[key]


@dataclass(frozen=True)
class _Batch:
    """A batch of hits that is copied to the device.

    packed : uint8, what `pack` made; schema : its streams and statics
    size : candidates, and most_queries : queries, rounded up to a class
    """

    packed: Any
    schema: tuple[tuple[str, ...], tuple[str, ...]]
    columns: FeatureColumns
    scratch: tuple[Any, Any] | None
    size: int
    most_queries: int

    @property
    def n_queries(self) -> Any:
        return self.packed[8:16].view(np.int64)

    @property
    def query_ptr(self) -> Any:
        return self.packed[HEADER_BYTES : HEADER_BYTES + 8].view(np.int64)


def _parts_of(hits: Hits | Sequence[Hits]) -> Sequence[Hits]:
    """The parts of a batch, one or more; refuses those of different collections."""
    parts = [hits] if isinstance(hits, Hits) else hits
    if not parts:
        raise DataError("a batch needs hits: pass those of one query or more.")
    first = _collection_of(parts[0])
    if any(_collection_of(part) != first for part in parts[1:]):
        raise DataError(
            "the hits of a batch must be of one collection: their streams, statics or numbers of documents or words "
            "differ. Extract those of each collection by themselves."
        )
    return parts


def _collection_of(hits: Hits) -> tuple[Any, ...]:
    return hits.n_docs, hits.streams, hits.static_names, hits.stream_tokens.tobytes()


def _upload_level(level: ExpressionLevel) -> tuple[Any, ProgramArrays]:
    """The columns that a level of expressions fills, and the arguments of their kernel."""
    import cupy

    programs = ProgramArrays(*(cupy.asarray(array) for array in level.programs))
    return cupy.asarray(level.columns), programs
