"""Options of `rankwell serve`: what reaches the processes of nodes, and what is refused at the start."""

import pytest
from tests.serving.node_network import make_shards

pytest.importorskip("starlette", reason="the server needs the extra 'serve'")

from rankwell.cli.serve_shards import start_places


def commands_of(processes):
    return [process.arguments for process in processes]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return make_shards(tmp_path_factory.mktemp("shards"), 2)


def test_threads_reach_the_nodes(folders):
    places = start_places(folders, 2, 1, 7, ["--device", "cpu"])
    assert len(places.processes) == 5
    for arguments in commands_of(places.processes):
        assert arguments[arguments.index("--threads") + 1] == "7"


def test_by_default_nodes_share_the_cores_that_the_process_may_use(folders, monkeypatch):
    monkeypatch.setattr("rankwell.kernels.threads.available_cores", lambda: 8)
    for replicas, n_threads in ((1, "4"), (2, "2"), (8, "1")):
        for arguments in commands_of(start_places(folders, replicas, 0, None, []).processes):
            assert arguments[arguments.index("--threads") + 1] == n_threads


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--threads", "3"], "--threads: "),
        (["--device", "nonsense"], "--device: "),
        (["--batch", "3", "--batch-window", "900"], "--batch, --batch-window: "),
        (["--own", "rates.jsonl"], "--own: "),
        (["--query-vectors", "embedding=vectors.jsonl", "--device", "auto"], "--query-vectors, --device: "),
    ],
)
def test_what_nodes_are_told_is_refused_with_nodes(rankwell, options, named):
    refused = rankwell("serve", "--nodes", "127.0.0.1:7631", *options)
    assert refused.exit_code == 2
    text = " ".join(refused.stderr.split())
    assert named + "nodes that --nodes names do that work" in text
    assert "Give it to `rankwell node`." in text
