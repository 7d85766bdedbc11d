"""Options of `rankwell serve`: what reaches the processes of nodes, and what is refused at the start."""

import pytest

pytest.importorskip("starlette", reason="the server needs the extra 'serve'")

from tests.serving.node_network import make_shards

from rankwell.cli.serve_options import read_token
from rankwell.cli.serve_shards import start_places
from rankwell.errors import DataError


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
    ("content", "words"),
    [
        (b"\xff\xfe\n", "number 1 is '\\xff'"),
        ("geh\u00e9im\n".encode(), "number 4 is '\\xc3'"),
        (b"one\ntwo\n", "number 4 is '\\n'"),
        (b" \n", "is empty: a token is needed in it"),
    ],
    ids=["not UTF-8", "not ASCII", "two lines", "empty"],
)
@pytest.mark.parametrize("command", ["serve", "node"])
def test_a_token_that_no_header_can_have_is_refused(rankwell, folders, tmp_path, command, content, words):
    file = tmp_path / "token"
    file.write_bytes(content)
    refused = rankwell(command, str(folders[0]), "--token-file", str(file), "--port", "0")
    assert refused.exit_code == 1
    text = " ".join(refused.stderr.split())
    assert words in text
    assert str(file) in "".join(refused.stderr.split())


def test_the_token_of_a_file_or_of_the_environment(tmp_path, monkeypatch):
    (tmp_path / "token").write_bytes(b"s3cret and more\n")
    assert read_token(tmp_path / "token", "RANKWELL_TOKEN") == "s3cret and more"
    monkeypatch.setenv("RANKWELL_TOKEN", "other")
    assert read_token(None, "RANKWELL_TOKEN") == "other"
    monkeypatch.setenv("RANKWELL_TOKEN", "geh\u00e9im")
    with pytest.raises(DataError, match="RANKWELL_TOKEN: a token is printable ASCII characters"):
        read_token(None, "RANKWELL_TOKEN")
    monkeypatch.delenv("RANKWELL_TOKEN")
    assert read_token(None, "RANKWELL_TOKEN") is None


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
