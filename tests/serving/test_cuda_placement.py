"""A node on a CUDA device: the same answers as on the CPU, also while the device fails, and from many threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.serving.served_index import N_CANDIDATES, QUERIES
from tests.tolerances import TOLERANCES

from rankwell.features.cuda_extraction import CudaFeatureExtractor
from rankwell.kernels.device_report import report_device
from rankwell.serving.answer import SearchRequest
from rankwell.serving.batching import Batcher
from rankwell.serving.deadline import Deadline
from rankwell.serving.node import Node
from rankwell.serving.ranking.placement import BatchCosts

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not report_device("cuda").usable, reason=report_device("cuda").description),
]


def request(query, **settings):
    return SearchRequest(query, Deadline.after(60.0), **settings)


def make_node(served, device):
    folder, rankers = served
    return Node(folder / "index", rankers, n_candidates=N_CANDIDATES, device=device)


def assert_same(answer, expected):
    """The same documents; only those whose scores are within the tolerance may change places."""
    by_id = {result.id: result.score for result in expected.results}
    scores = np.array([result.score for result in answer.results])
    most = TOLERANCES["cuda"]["scores of extracted features"]["rtol"] * np.abs([*by_id.values(), 1.0]).max()
    in_its_order = np.array([by_id[result.id] for result in answer.results])
    np.testing.assert_allclose(scores, in_its_order, rtol=0, atol=most)
    assert len(answer.results) == len(expected.results)


@pytest.mark.parametrize("ranker", ["boosted", "linear", "cascade"])
def test_answers_are_those_of_the_cpu(served, ranker):
    # All candidates, so that no tie is cut off.
    asked = [request(query, ranker=ranker, k=N_CANDIDATES) for query in QUERIES]
    on_device, on_cpu = make_node(served, "cuda"), make_node(served, "cpu")
    for answer, expected in zip(on_device.answer(asked), on_cpu.answer(asked), strict=True):
        assert (answer.device, answer.fallback) == ("cuda", None)
        assert_same(answer, expected)


def test_the_break_even_is_measured_and_kept_to(served):
    node = make_node(served, "auto")
    for placed in node.snapshot.placed.values():
        assert set(placed.costs.on_cpu) == set(placed.costs.on_device) >= {1, 4}
        assert all(seconds > 0 for seconds in placed.costs.on_device.values())
    node.snapshot.placed["boosted"].costs = BatchCosts({1: 1.0, 16: 16.0}, {1: 2.0, 16: 2.0})
    assert {answer.device for answer in node.answer([request("w1")])} == {"cpu"}
    assert {answer.device for answer in node.answer([request(query) for query in QUERIES[:8]])} == {"cuda"}


def test_memory_that_the_device_does_not_have_is_a_fall_back_and_then_works_again(served, monkeypatch):
    import cupy

    node, on_cpu = make_node(served, "cuda"), make_node(served, "cpu")
    asked = [request(query, k=N_CANDIDATES) for query in QUERIES[:8]]
    expected = on_cpu.answer(asked)
    whole = CudaFeatureExtractor._send

    def too_much(self, hits):
        cupy.empty(2**50, np.uint8)
        return whole(self, hits)

    with monkeypatch.context() as patched:
        patched.setattr(CudaFeatureExtractor, "_send", too_much)
        for answer, one in zip(node.answer(asked), expected, strict=True):
            assert answer.device == "cpu"
            assert answer.fallback.startswith("cuda failed: ")
            assert_same(answer, one)
    health = node.snapshot.placed["boosted"].health
    assert not health.may_be_used
    health._next_try = 0.0
    for answer, one in zip(node.answer(asked), expected, strict=True):
        assert (answer.device, answer.fallback) == ("cuda", None)
        assert_same(answer, one)


def test_clients_at_the_same_time_get_their_own_answers(served):
    node, on_cpu = make_node(served, "auto"), make_node(served, "cpu")
    rankers = ["boosted", "linear", "cascade"]
    asked = [request(query, ranker=ranker, k=N_CANDIDATES) for query in QUERIES for ranker in rankers]
    expected = [on_cpu.answer([one])[0] for one in asked]
    batcher = Batcher(node.answers, most=64)
    with ThreadPoolExecutor(64) as clients:
        answers = list(clients.map(lambda one: batcher.submit(one).result(60), asked * 3))
    batcher.close()
    for answer, one in zip(answers, expected * 3, strict=True):
        assert_same(answer, one)
