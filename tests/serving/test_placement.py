"""Where batches are ranked: the break-even of CPU and device, and what happens if the device fails or is missing."""

import logging
import math
import subprocess
import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("starlette", reason="the server needs the extra 'serve'")

from starlette.testclient import TestClient
from tests.serving.in_process_shards import InProcessLink, run_with
from tests.serving.served_index import N_CANDIDATES, QUERIES

from rankwell import Index
from rankwell.errors import DataError, ParameterError
from rankwell.kernels.device_report import report_device
from rankwell.serving import snapshot as snapshots
from rankwell.serving.answer import SearchRequest
from rankwell.serving.deadline import Deadline
from rankwell.serving.http.app import make_app
from rankwell.serving.http.service import SearchService
from rankwell.serving.node import Node
from rankwell.serving.ranking.device_health import DeviceHealth
from rankwell.serving.ranking.feature_log import FeatureLogReader
from rankwell.serving.ranking.placement import BatchCosts, PlacedSearch, batch_size_on
from rankwell.serving.ranking.ranked_search import RankedSearch
from rankwell.serving.ranking.ranker_passes import RankerPasses
from rankwell.serving.shards import shard_rankers
from rankwell.serving.shards.aggregator import Aggregator
from rankwell.serving.shards.shard import Shard
from rankwell.serving.shards.shard_node import ShardNode
from rankwell.serving.shards.shard_rankers import ShardRankers


def request(query, **settings):
    return SearchRequest(query, Deadline.after(10.0), **settings)


def ranking(answer):
    return [(result.id, result.score) for result in answer.results]


class FakeDevice:
    """Searches of the device cuda run on the CPU, and fail while `is_broken`; on which device how many were asked."""

    def __init__(self, monkeypatch):
        self.is_broken, self.batches = False, []
        self.is_missing = False
        device = self

        class Search(RankedSearch):
            def __init__(self, *arguments, **settings):
                self.asked = settings.pop("device")
                if self.asked == "cuda" and device.is_missing:
                    raise DataError("there is no such device")
                super().__init__(*arguments, **settings)

            def search_many(self, queries, *arguments, **settings):
                device.batches.append((self.asked, len(queries)))
                if self.asked == "cuda" and device.is_broken:
                    raise RuntimeError("an illegal memory access was encountered")
                return super().search_many(queries, *arguments, **settings)

        def passes(*arguments, device, **settings):
            """Of a shard; on the device cuda, those of the CPU too."""
            if device == "cuda" and self.is_broken:
                raise RuntimeError("an illegal memory access was encountered")
            return RankerPasses(*arguments, device="cpu", **settings)

        for module in (snapshots, shard_rankers):
            monkeypatch.setattr(module, "RankedSearch", Search)
            monkeypatch.setattr(module, "suits_device", lambda description: True)
        monkeypatch.setattr(shard_rankers, "RankerPasses", passes)


@pytest.fixture
def device(monkeypatch):
    return FakeDevice(monkeypatch)


def make_node(served, **settings):
    folder, rankers = served
    return Node(folder / "index", rankers, n_candidates=N_CANDIDATES, **settings)


@pytest.mark.parametrize(
    ("on_cpu", "on_device", "expected"),
    [
        ({1: 1, 4: 4, 16: 16}, {1: 3, 4: 3, 16: 3}, 3.0),  # n = 3 costs 3 on both
        ({1: 1, 4: 4, 16: 16}, {1: 0.5, 4: 1, 16: 2}, 1.0),
        ({1: 1, 4: 4, 16: 16}, {1: 2, 4: 5, 16: 17}, math.inf),
        # Quicker at 4 by chance: only from where it stays so.
        ({1: 1, 4: 4, 16: 16, 64: 64}, {1: 3, 4: 3.9, 16: 18, 64: 20}, 16 + 48 * 2 / 46),
    ],
)
def test_the_break_even_is_where_the_device_becomes_quicker_and_stays_so(on_cpu, on_device, expected):
    assert BatchCosts(on_cpu, on_device).break_even == pytest.approx(expected)


def test_the_best_batch_is_the_smallest_that_costs_about_as_little_per_query_as_any():
    assert BatchCosts({}, {1: 1.0, 4: 1.2, 16: 2.0, 64: 8.0}).best_size == 16


def test_small_batches_are_ranked_on_the_cpu_and_large_ones_on_the_device(served, device):
    node = make_node(served, device="auto")
    placed = node.snapshot.placed["boosted"]
    assert set(placed.costs.on_cpu) == set(placed.costs.on_device) >= {1, 4}
    placed.costs = BatchCosts({1: 1.0, 4: 4.0}, {1: 2.5, 4: 2.5})
    expected = [make_node(served).answer([request(query)])[0] for query in QUERIES[:4]]
    device.batches.clear()
    small, large = node.answer([request(QUERIES[0])] * 2), node.answer([request(query) for query in QUERIES[:4]])
    assert device.batches == [("cpu", 2), ("cuda", 4)]
    assert {(answer.device, answer.fallback) for answer in small} == {("cpu", None)}
    assert {(answer.device, answer.fallback) for answer in large} == {("cuda", None)}
    assert [ranking(answer) for answer in large] == [ranking(answer) for answer in expected]


def test_a_device_that_fails_is_replaced_by_the_cpu_and_tried_again_after_a_pause(served, device, caplog):
    node = make_node(served, device="cuda")
    health = node.snapshot.placed["boosted"].health
    now = [0.0]
    health._clock = lambda: now[0]
    (whole,) = node.answer([request("w1 w2")])
    assert (whole.device, whole.fallback) == ("cuda", None)
    device.is_broken = True
    for _ in range(3):
        (answer,) = node.answer([request("w1 w2")])
        assert ranking(answer) == ranking(whole)
        assert (answer.device, answer.fallback) == ("cpu", "cuda failed: an illegal memory access was encountered")
    # One try for the first of them, of all rankers together.
    assert [asked for asked, _ in device.batches[-4:]] == ["cuda", "cpu", "cpu", "cpu"]
    assert node.answer([request("w1 w2", ranker="linear")])[0].fallback is not None
    now[0] = 31.0
    assert node.answer([request("w1 w2")])[0].device == "cpu"
    device.is_broken = False
    assert node.answer([request("w1 w2")])[0].device == "cpu"
    now[0] = 62.0
    (again,) = node.answer([request("w1 w2")])
    assert (again.device, again.fallback, ranking(again)) == ("cuda", None, ranking(whole))
    # Logged when it changes, and not at every try.
    assert [record.message.split(",")[0] for record in caplog.records] == ["cuda failed", "cuda works again"]


def test_a_device_that_is_missing_does_not_keep_a_node_from_starting(served, device):
    device.is_missing = True
    node = make_node(served, device="cuda")
    (answer,) = node.answer([request("w1 w2")])
    assert (answer.device, answer.fallback) == ("cpu", "cuda failed: there is no such device")
    assert ranking(answer) == ranking(make_node(served).answer([request("w1 w2")])[0])


@pytest.mark.skipif(report_device("cuda").usable, reason="there is a CUDA device")
def test_without_a_device_cuda_is_a_fall_back_and_auto_is_the_cpu(served):
    (asked,) = make_node(served, device="cuda").answer([request("w1 w2")])
    assert asked.device == "cpu"
    assert asked.fallback.startswith("cuda failed: device='cuda' cannot be used")
    (auto,) = make_node(served, device="auto").answer([request("w1 w2")])
    assert (auto.device, auto.fallback, ranking(auto)) == ("cpu", None, ranking(asked))
    with pytest.raises(ParameterError, match="device must be one of cpu, cuda, auto, got 'tpu'"):
        make_node(served, device="tpu")


def shard_answers(served, queries, device, prepare=lambda node: None):
    """The answers of one shard, why it fell back, and its node."""
    folder, rankers = served
    node = ShardNode(folder / "index", device=device)
    link = InProcessLink(node)

    async def ask(aggregator):
        prepare(node)
        answers = [await aggregator.answer(request(query)) for query in queries]
        link.facts = node.describe()
        return answers, aggregator.fallback()

    return *run_with(Aggregator([Shard([link])], rankers, n_candidates=N_CANDIDATES), ask), node


def test_nodes_of_shards_place_batches_by_their_documents(served, device):
    queries = ["w1 w2", "w77", '"w1 w2"']
    expected, _, _ = shard_answers(served, queries, "cpu")
    sizes = [answer.n_candidates for answer in expected]
    assert sizes[0] == N_CANDIDATES > max(sizes[1:]) > 0

    def prepare(node):
        # Both were measured, then the node is told from how many documents on the device is quicker.
        assert {("cpu", 4), ("cuda", 4)} <= set(device.batches)
        assert len(node._rankers._break_even) == len(served[1])
        node._rankers._break_even = dict.fromkeys(node._rankers._break_even, N_CANDIDATES)
        node._rankers.n_ranked.clear()

    answers, fallback, node = shard_answers(served, queries, "auto", prepare)
    assert [ranking(answer) for answer in answers] == [ranking(answer) for answer in expected]
    assert [answer.device for answer in answers] == ["cuda", "cpu", "cpu"]
    assert fallback is None
    assert node.describe().load.n_ranked == {"cuda": 1, "cpu": sum(size > 0 for size in sizes[1:])}


def test_a_measured_break_even_is_one_of_documents(served, device, monkeypatch):
    """From 3 queries on the device is quicker, and a query has 20 documents: 60 documents."""
    costs = BatchCosts({1: 1.0, 4: 4.0}, {1: 3.0, 4: 3.0}, documents=20.0)
    monkeypatch.setattr(PlacedSearch, "measure", lambda placed, queries: setattr(placed, "costs", costs))
    rankers = ShardRankers("auto", None)
    rankers.put(served[1]["boosted"].read_bytes(), Index.open(served[0] / "index"), "w1")
    assert list(rankers._break_even.values()) == [60.0]


def test_a_measurement_counts_the_documents_of_a_query(served, device):
    placed = make_node(served, device="auto").snapshot.placed["boosted"]
    assert 1 <= placed.costs.documents <= N_CANDIDATES


def test_a_device_of_a_shard_that_fails_is_replaced_by_the_cpu(served, device):
    expected, _, _ = shard_answers(served, ["w1 w2"], "cpu")
    device.is_broken = True
    answers, fallback, _ = shard_answers(served, ["w1 w2"], "cuda")
    assert ranking(answers[0]) == ranking(expected[0])
    assert answers[0].device == "cpu"
    assert fallback.endswith("cuda failed: an illegal memory access was encountered")


@pytest.mark.skipif(report_device("cuda").usable, reason="there is a CUDA device")
def test_without_a_device_nodes_of_shards_take_the_cpu(served):
    answers, fallback, node = shard_answers(served, ["w1 w2"], "auto")
    assert (answers[0].device, fallback) == ("cpu", None)
    assert set(node._rankers._break_even.values()) == {math.inf}
    assert [batch_size_on(name) for name in ("cpu", "auto", "cuda")] == [16, 16, 64]
    with pytest.raises(ParameterError, match="device must be one of cpu, cuda, auto, got 'tpu'"):
        ShardNode(served[0] / "index", device="tpu")


def test_what_fails_on_the_cpu_too_is_not_the_device_s_fault():
    def broken(*arguments, **settings):
        raise DataError("damaged")

    health = DeviceHealth("cuda")
    placed = PlacedSearch(SimpleNamespace(search_many=broken), lambda _: SimpleNamespace(search_many=broken), health)
    with pytest.raises(DataError, match="damaged"):
        placed.search_many(["query"], 1)
    assert health.reason is None


def test_features_are_logged_once_if_the_device_fails_after_extraction(served, device, tmp_path, monkeypatch):
    node = make_node(served, device="cuda", feature_log=tmp_path / "log")
    search = node.snapshot.placed["boosted"]._device_search()

    def broken(rows, hits):
        raise RuntimeError("broken")

    monkeypatch.setattr(search._ranker, "score_rows", broken)
    assert node.answer([request("w1", query_id="q1")])[0].device == "cpu"
    node.close()
    assert [logged.query_id for logged in FeatureLogReader(tmp_path / "log")] == ["q1"]


def test_fall_backs_are_counted_and_told(served, device, caplog):
    node = make_node(served, device="cuda")
    device.is_broken = True
    with caplog.at_level(logging.CRITICAL), TestClient(make_app(SearchService(node))) as client:
        answer = client.get("/search?q=w1+w2").json()
        client.get("/search?q=w1+w3")
        metrics = client.get("/metrics").text
    assert (answer["device"], answer["fallback"]) == ("cpu", "cuda failed: an illegal memory access was encountered")
    assert answer["degraded"] is None
    assert "rankwell_fallbacks_total 2.0" in metrics
    assert 'rankwell_ranked_total{device="cpu"} 2.0' in metrics


def test_batches_devices_and_nodes_need_no_http_library():
    blocked = ("starlette", "msgspec", "uvicorn", "prometheus_client", "httptools", "uvloop")
    code = f"import sys; sys.modules.update(dict.fromkeys({blocked}))\n"
    code += "import rankwell.serving.batching, rankwell.serving.node, rankwell.serving.ranking.placement"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
