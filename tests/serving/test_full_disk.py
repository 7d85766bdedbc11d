"""Logs that cannot be written: searches go on, the loss is counted and told, and what a user sent is refused."""

import logging
import resource
import subprocess
import sys

import pytest

pytest.importorskip("starlette", reason="the server needs the extra 'serve'")

from tests.serving.in_process_shards import shards_client
from tests.serving.node_network import make_shards
from tests.serving.served_index import N_CANDIDATES
from tests.serving.server_process import said_first
from tests.serving.test_app import make_client

from rankwell import Client, ServerError
from rankwell.clicks.use_log import read_impressions
from rankwell.features.qrels import read_qrels
from rankwell.serving.ranking.feature_log import FeatureLogReader
from rankwell.serving.use import Use
from rankwell.streams.appended_file import AppendedFile, WriteError


@pytest.fixture
def disk(monkeypatch):
    """A disk that is full while `disk["full"]` says so."""
    state, write = {"full": False}, AppendedFile.write

    def limited(file, content):
        if state["full"]:
            raise WriteError(f"cannot write {file.path}: No space left on device. Free some space or log elsewhere.")
        write(file, content)

    monkeypatch.setattr(AppendedFile, "write", limited)
    return state


def lost(client, log):
    (line,) = [one for one in client.get("/metrics").text.splitlines() if one.startswith("rankwell_log_lost{")]
    assert f'log="{log}"' in line
    return float(line.split()[-1])


def check_losses(client, disk, caplog, log):
    """Searches go on while the log is lost, and it is written again when there is space."""
    statuses = []
    for number, is_full in enumerate([False, True, True, True, False]):
        disk["full"] = is_full
        statuses.append(client.get(f"/search?q=w1+w{number + 2}").status_code)
    assert statuses == [200] * 5
    assert lost(client, log) == 3
    first, last = [record.getMessage() for record in caplog.records if "entries" in record.getMessage()]
    assert "loses entries, and searches go on: cannot write" in first
    assert "is written again, after 3 entries were lost" in last


def test_a_use_log_that_cannot_be_written_ends_no_search(served, tmp_path, disk, caplog):
    with caplog.at_level(logging.WARNING), make_client(served, use=Use(tmp_path / "use.jsonl")) as client:
        check_losses(client, disk, caplog, "use")
        disk["full"] = True
        assert client.get("/search?q=w1").json()["impression"] is None
    assert len(list(read_impressions(tmp_path / "use.jsonl"))) == 2


def test_a_feature_log_that_cannot_be_written_ends_no_search(served, tmp_path, disk, caplog):
    with caplog.at_level(logging.WARNING), make_client(served, feature_log=tmp_path / "features") as client:
        check_losses(client, disk, caplog, "features")
    assert len(list(FeatureLogReader(tmp_path / "features"))) == 2


def test_over_shards_a_feature_log_that_cannot_be_written_ends_no_search(served, tmp_path, disk, caplog):
    settings = {"n_candidates": N_CANDIDATES, "feature_log": tmp_path / "features"}
    folders = make_shards(tmp_path, 2)
    with caplog.at_level(logging.WARNING), shards_client(folders, served[1], **settings) as client:
        check_losses(client, disk, caplog, "features")
    assert len(list(FeatureLogReader(tmp_path / "features"))) == 2


def test_what_a_user_sends_is_refused_if_it_cannot_be_kept(served, tmp_path, disk, monkeypatch):
    use = Use(tmp_path / "use.jsonl", tmp_path / "votes.qrels")
    with make_client(served, use=use) as client:
        answer = client.get("/search?q=w1").json()
        click = {"impression": answer["impression"], "document": answer["results"][0]["id"]}
        up, down = ({"query": "w1", "document": "d1", "vote": vote} for vote in (1, -1))
        disk["full"] = True
        refused = [client.post("/clicks", json=click), client.post("/votes", json=up)]
        assert [one.status_code for one in refused] == [507, 507]
        assert all("No space left on device" in one.json()["error"] for one in refused)
        # A vote that was not kept can be given again; one that replaces another may fail too.
        disk["full"] = False
        assert client.post("/votes", json=up).status_code == 204
        with monkeypatch.context() as patched:
            patched.setattr("rankwell.serving.votes.replace_file", _full)
            assert client.post("/votes", json=down).status_code == 507
        assert list(read_qrels(tmp_path / "votes.qrels").values()) == [{"d1": 1.0}]
        assert client.post("/votes", json=down).status_code == 204
    assert list(read_qrels(tmp_path / "votes.qrels").values()) == [{"d1": 0.0}]


def _full(path, content):
    raise OSError(28, "No space left on device")


def _click_often(client, answer):
    """Until nothing more fits."""
    for _ in range(60):
        client.click(answer["impression"], answer["results"][0]["id"])


def test_a_server_whose_files_may_not_grow_answers_all_searches(served, tmp_path):
    """As a full disk: the system refuses what is written beyond 4 kB."""
    folder, _ = served
    log = tmp_path / "use.jsonl"
    command = [sys.executable, "-m", "rankwell", "serve", folder / "index", "--port", "0", "--use-log", log]
    command += ["--timeout", "30000"]
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True, preexec_fn=limit)
    try:
        with Client(said_first(r"http://\S+", process.stderr)[0]) as client:
            answers = [client.search("w1 w2") for _ in range(60)]
            logged = [one for one in answers if one["impression"] is not None]
            assert all(one["results"] for one in answers)
            assert 0 < len(logged) < 60
            with pytest.raises(ServerError, match=r"cannot write .*use\.jsonl: File too large") as refused:
                _click_often(client, logged[-1])
            assert refused.value.status == 507
    finally:
        process.kill()
        process.wait(30)
        process.stderr.close()
    assert len(list(read_impressions(log))) == len(logged)
