"""Shards as processes, as users run them: killed or stopped under load, back again, and ended with the server."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the server needs the extra 'serve'")

from tests.serving.node_network import make_shards
from tests.serving.served_index import N_CANDIDATES, QUERIES
from tests.serving.server_process import node_process, serving_from

from rankwell import Client, Index, RankedSearch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds the nodes in /proc")

TIMEOUT_MS = 3000


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    return make_shards(folder, 4)


@pytest.fixture(scope="module")
def server(shards, served):
    """A server of four shards, which tests disturb and leave as it was."""
    rankers = [part for name in ("cascade", "linear") for part in ("--ranker", served[1][name])]
    options = ["--candidates", N_CANDIDATES, "--timeout", TIMEOUT_MS, "--cache", 0]
    with serving_from(*shards, *options, *rankers) as (process, client):
        yield process, client
        nodes = nodes_of(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert [pid for pid in nodes.values() if is_alive(pid)] == []


def nodes_of(process):
    """The processes of nodes by the name of their index."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    commands = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in children}
    return {Path(words[4].decode()).name: pid for pid, words in commands.items() if b"node" in words}


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Load:
    """Threads that search one query after the other, and keep what they got."""

    def __init__(self, client, n_threads=2):
        self.answers, self.failures = [], []
        self._address, self._stop = client.address, threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(n_threads)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, number):
        with Client(self._address) as client:
            while not self._stop.is_set():
                started = time.monotonic()
                try:
                    answer = client.search(QUERIES[number % len(QUERIES)])
                    self.answers.append((time.monotonic(), time.monotonic() - started, answer))
                except Exception as error:
                    self.failures.append(error)
                number += 1

    def since(self, moment):
        return [one for one in self.answers if one[0] - one[1] >= moment]


def wait_until(condition, within=30.0):
    until = time.monotonic() + within
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)


def is_whole(client):
    return client.search("w1")["coverage"]["answered"] == 4


def test_four_processes_answer_as_one_index(server, shards, served):
    _, client = server
    whole = Index.open(shards[0].parent / "all")
    for name in ("cascade", "linear"):
        search = RankedSearch(whole, served[1][name], n_candidates=N_CANDIDATES)
        for query in QUERIES[:6]:
            answer, found = client.search(query, ranker=name), search.search(query)
            expected = list(zip(found.ids, found.scores, strict=True))
            assert [(one["id"], one["score"]) for one in answer["results"]] == expected
            assert answer["coverage"] == {"shards": 4, "answered": 4, "missing": [], "unranked": []}
            first = answer["results"][0]["id"]
            (explained,) = search.explain(query, document=first)
            assert client.explain(query, first, ranker=name)["score"] == explained.explanation.score
    facts = client.index()
    assert facts["documents"] == 80
    assert [shard["documents"] for shard in facts["shards"]] == [20] * 4
    assert [shard["nodes"][0]["state"] for shard in facts["shards"]] == ["up"] * 4


def test_metrics_have_what_the_nodes_do(server):
    _, client = server
    assert client.search("w1 w2 w3", ranker="linear")["device"] == "cpu"

    def values(name, labels=""):
        found = re.findall(rf'^{name}{{{labels}replica="0",shard="\d"}} (\S+)$', metrics(client), re.MULTILINE)
        return [float(value) for value in found]

    # Nodes say it when they are asked the next time whether they live.
    wait_until(lambda: all(value > 0 for value in values("rankwell_node_ranked", 'device="cpu",')))
    batches, requests = values("rankwell_node_batches"), values("rankwell_node_requests")
    assert len(batches) == len(requests) == 4
    assert all(0 < own <= each for own, each in zip(batches, requests, strict=True))
    assert values("rankwell_node_ranked", 'device="cuda",') == [0.0] * 4
    assert len(values("rankwell_node_queue_length")) == 4
    assert "rankwell_batch_size" not in metrics(client)


def test_a_node_that_is_killed_under_load_is_missing_and_started_again(server):
    process, client = server
    wait_until(lambda: is_whole(client))
    killed = nodes_of(process)["shard-2"]
    with Load(client) as load:
        wait_until(lambda: len(load.answers) > 5)
        moment = time.monotonic()
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: any(one["coverage"]["answered"] == 3 for _, _, one in load.since(moment)))
        wait_until(lambda: load.answers[-1][2]["coverage"]["answered"] == 4)
    assert load.failures == []
    partial = [one for _, _, one in load.answers if one["degraded"] is not None]
    assert {one["degraded"]["reason"] for one in partial} <= {"shards"}
    assert all(len(one["coverage"]["missing"]) == 1 and one["results"] for one in partial)
    assert max(seconds for _, seconds, _ in load.answers) < TIMEOUT_MS / 1000 + 1.0
    assert nodes_of(process)["shard-2"] != killed
    assert "rankwell_node_restarts 1.0" in metrics(client)


def metrics(client):
    import urllib.request

    with urllib.request.urlopen(f"{client.address}/metrics") as response:
        return response.read().decode()


def test_a_node_that_is_stopped_under_load_is_missing_until_it_goes_on(server):
    process, client = server
    wait_until(lambda: is_whole(client))
    stopped = nodes_of(process)["shard-1"]
    with Load(client) as load:
        wait_until(lambda: len(load.answers) > 5)
        moment = time.monotonic()
        os.kill(stopped, signal.SIGSTOP)
        try:
            wait_until(lambda: any(one["coverage"]["answered"] == 3 for _, _, one in load.since(moment)))
            # Once it is known to hang, nobody waits for it.
            wait_until(
                lambda: load.answers[-1][1] < 0.5 and load.answers[-1][2]["coverage"]["answered"] == 3, within=20.0
            )
        finally:
            os.kill(stopped, signal.SIGCONT)
        back = time.monotonic()
        wait_until(lambda: load.answers[-1][2]["coverage"]["answered"] == 4)
    assert time.monotonic() - back < 15.0
    assert load.failures == []
    assert max(seconds for _, seconds, _ in load.answers) < TIMEOUT_MS / 1000 + 1.0
    assert nodes_of(process)["shard-1"] == stopped


def test_nodes_end_when_their_server_is_killed(shards):
    with serving_from(*shards[:2]) as (process, client):
        assert client.search("w1")["coverage"]["answered"] == 2
        nodes = nodes_of(process)
        assert len(nodes) == 2
        process.kill()
        wait_until(lambda: not any(map(is_alive, nodes.values())))


def test_nodes_elsewhere_with_a_token_and_a_replica(shards, served, tmp_path):
    (tmp_path / "token").write_text("of the nodes\n")
    token = ["--token-file", tmp_path / "token"]
    with (
        node_process(shards[0], *token) as (first, one),
        node_process(shards[0], *token) as (_, other),
        node_process(shards[1], *token) as (_, second),
    ):
        options = ["--nodes", f"{one}|{other},{second}", "--node-token-file", tmp_path / "token"]
        with serving_from(*options, "--ranker", served[1]["linear"], "--timeout", TIMEOUT_MS) as (_, client):
            before = client.search("w1 w2")
            assert before["coverage"] == {"shards": 2, "answered": 2, "missing": [], "unranked": []}
            first.kill()
            for k in range(1, 6):
                answer = client.search("w1 w2", k)
                assert answer["degraded"] is None
                assert answer["results"] == before["results"][:k]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve"], "give the folders of one or several indexes, or --nodes"),
        (["serve", "--nodes", "here"], "must be host:port"),
        (["serve", "a", "a"], "the same index is named twice"),
        (["serve", "--nodes", "h:1", "--replicas", "2"], "--replicas and --spares are for indexes on this machine"),
        (["serve", "no", "such"], "there is no index"),
        (["node", "a", "b"], "a node has one index"),
        (["node", "a", "--host", "0.0.0.0"], "a token is needed"),
    ],
)
def test_mistakes_are_told(tmp_path, arguments, words):
    done = subprocess.run(
        [sys.executable, "-m", "rankwell", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_folder_of_shards_is_served_as_one_index(tmp_path):
    corpus = tmp_path / "docs.jsonl"
    corpus.write_text(
        "".join(json.dumps({"id": f"d{n}", "body": f"wing {'flow ' * (n % 4)}"}) + "\n" for n in range(40))
    )
    build = ["index", "build", str(corpus), "--language", "none", "--quiet", "--out"]
    for arguments in ([str(tmp_path / "one")], [str(tmp_path / "many"), "--shards", "2", "--workers", "1"]):
        subprocess.run([sys.executable, "-m", "rankwell", *build, *arguments], check=True, capture_output=True)
    with serving_from(tmp_path / "many") as (_, client):
        answer = client.search("flow", k=40)
    one = Index.open(tmp_path / "one")
    result = one.search("flow", k=40)
    expected = {one.id_of(int(doc)): score for doc, score in zip(result.docs, result.scores.tolist(), strict=True)}
    assert answer["coverage"]["answered"] == 2
    assert {hit["id"]: hit["score"] for hit in answer["results"]} == expected
