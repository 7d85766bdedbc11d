"""What boosted trees on a CUDA device accept, and the memory they ask for."""

from __future__ import annotations

import dataclasses

import numpy as np
from tests.kernels.trees.device_inputs import INPUTS

from rankwell.kernels.trees.contract import BOOSTED_TREES, MOST_CUDA_LEAVES
from rankwell.kernels.trees.cuda.booster import LEVEL_BYTES, device_bytes
from rankwell.kernels.trees.cuda.gradients import BLOCK_DOCUMENTS, place_queries, query_bytes
from rankwell.kernels.trees.cuda.workspace import GrowthSizes, slab_pieces
from rankwell.kernels.trees.losses import LOSSES, RankingLoss, judged_queries
from rankwell.kernels.trees.sampling import Sampling

CUDA = BOOSTED_TREES.devices["cuda"]


def with_leaves(n_leaves):
    problem = INPUTS["plain"].problem()
    return dataclasses.replace(problem, settings=dataclasses.replace(problem.settings, n_leaves=n_leaves))


def test_too_many_leaves_are_refused():
    assert CUDA.limits(with_leaves(MOST_CUDA_LEAVES), None) is None
    refusal = CUDA.limits(with_leaves(MOST_CUDA_LEAVES + 1), None)
    assert (refusal.got, refusal.allowed) == ("1025 leaves", "at most 1024")


def test_symmetric_trees_of_ten_levels_are_accepted():
    for levels, is_accepted in ((10, True), (11, False)):
        problem = INPUTS["plain"].symmetric(levels).problem()
        assert CUDA.lacks(problem) is None
        assert (CUDA.limits(problem, None) is None) == is_accepted


def test_symmetric_trees_need_a_histogram_for_every_other_leaf():
    histogram = 64 * 256 * 8
    few, many = (device_bytes(INPUTS["plain"].symmetric(levels).problem(), None) for levels in (1, 8))
    assert 127 * histogram < many - few < 128 * histogram


def test_rules_of_features_take_memory():
    plain = INPUTS["31 leaves"]
    parts = 1 + 2 * 90
    free, bounded, grouped, categorical = (
        device_bytes(made.problem(), None)
        for made in (
            plain,
            plain.ruled([1]),
            plain.ruled(groups=[[first] for first in range(8)] * 9),
            plain.ruled(n_categories=[255]),
        )
    )
    assert bounded - free == (parts - 1) * 16
    assert grouped - free == parts * 2 * 8 - 8
    # One word of columns; a set for what is found in it, for each part, and for each node.
    assert categorical - free == (parts + 128 + 31) * 32 - 2 * 4


def test_memory_grows_with_leaves_and_documents():
    few, many = (device_bytes(with_leaves(n_leaves), None) for n_leaves in (2, 200))
    slab, histogram = 700 * 64, 64 * 256 * 8
    assert few > 700 * (3 * 4 + 2 * 12) + slab + 3 * histogram
    assert many - few > 2 * 198 * histogram


def test_random_queries_take_memory():
    problem = dataclasses.replace(INPUTS["plain"].problem(), query_ptr=np.array([0, 700]))
    sizes = [
        device_bytes(dataclasses.replace(problem, sampling=sampling), None)
        for sampling in (None, Sampling(documents=0.5), Sampling(queries=0.5))
    ]
    assert sizes[0] == sizes[1] == sizes[2] - 4 * 700


def test_queries_take_memory():
    """Numbers of each query and document; of documents of a long query more, and with noise their noisy scores."""
    problem = INPUTS["plain"].problem()
    query_ptr, gains = np.array([0, 50, 700]), np.arange(700.0)

    def taken(name, **settings):
        loss = RankingLoss(LOSSES[name], 30, 1.0, 1, **settings)
        return query_bytes(loss, judged_queries(loss, query_ptr, gains))

    assert taken("xendcg") == taken("xendcg", noise=0.3) >= 700 * (4 + 4) + 2 * 3 * 8 + 650 * 2 * 8
    assert taken("lambdarank") >= 700 * (4 + 4) + 2 * 3 * 8 + 650 * 9 * 4
    assert taken("lambdarank", noise=0.3) == taken("lambdarank") + 4 * 700
    loss = RankingLoss(LOSSES["xendcg"], 30, 1.0, 1)
    with_queries = dataclasses.replace(problem, loss=loss, queries=judged_queries(loss, query_ptr, gains))
    assert device_bytes(with_queries, None) == device_bytes(problem, None) + taken("xendcg")


def test_leaves_and_levels_fit_the_shared_memory_of_every_device():
    """99 KB on compute capability 8.6 and 8.9, of which kernels declare some themselves."""
    assert GrowthSizes(1, 1, 1, MOST_CUDA_LEAVES).frontier_bytes <= 99 * 1024 - 8192
    assert GrowthSizes(1, 1, 1, MOST_CUDA_LEAVES, is_symmetric=True).frontier_bytes <= 99 * 1024 - 8192
    assert LEVEL_BYTES <= 99 * 1024 - 8192


def test_pieces_cover_every_column_once():
    for n_columns in (1, 16, 17, 48, 64, 107, 136, 646):
        for groups in (1, 2):
            pieces = slab_pieces(n_columns, groups)
            assert pieces["n_columns"].sum() == n_columns
            assert pieces["readers"].max() <= 2 * groups
            assert (pieces["n_columns"] <= 16 * pieces["readers"]).all()
            assert (pieces["offset"] + pieces["n_columns"] <= 64).all()


def test_queries_have_a_place_in_a_block():
    sizes = np.array([3, 0, BLOCK_DOCUMENTS, 1, BLOCK_DOCUMENTS + 1, 200, 300, 40])
    short, long = place_queries(np.concatenate(([0], np.cumsum(sizes))))
    assert long.order.tolist() == [4]
    assert short.order.tolist() == [2, 6, 5, 7, 0, 3]
    # Two at a time, one for each warp, unless they do not fit into a block together: 528 and 300.
    assert short.block_ptr.tolist() == [0, 1, 2, 6]
    assert short.offset.tolist() == [0, 0, 0, 200, 240, 244]
