"""Is the cost of a RankBoost round on a GPU the function of documents and features that the CUDA paper fits (3, 4)?

The same sizes and the same function as in `rankboost_surface`; a round is everything, bins stay on the device.
"""

from __future__ import annotations

from benchmarks.harness import Benchmark
from benchmarks.rankboost_cases import queries_of
from benchmarks.rankboost_cuda import check_whole_training, random_bins, time_rounds
from benchmarks.rankboost_surface import record_surface
from rankwell.data.shapes import Shape


def run(bench: Benchmark) -> None:
    check_whole_training(bench)

    def round_seconds(shape: Shape) -> float:
        queries = queries_of(shape)
        name = f"{shape.n_docs} documents, {shape.n_features} features"
        return time_rounds(bench, name, random_bins(shape, queries), queries)

    record_surface(bench, round_seconds)
