"""Shards built on Ray."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

pytest.importorskip("ray")

from rankwell.cluster import indexing
from rankwell.cluster.indexing import ShardBuilder, run_on_cluster
from rankwell.cluster.session import cluster_session
from rankwell.corpus.bad_documents import BadDocuments
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.reading import read_corpus
from rankwell.errors import DataError
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.shard_building import build_shards, learn_fields, run_here
from rankwell.index.text.analysis import Analysis


@pytest.fixture(scope="module")
def session():
    with cluster_session("local", n_cpus=2) as session:
        yield session


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "docs.jsonl"
    path.write_text("".join(json.dumps({"id": f"d{n}", "body": f"wing flow {n % 7}"}) + "\n" for n in range(200)))
    return path


def build(folder: Path, corpus: Path, run) -> None:
    schema = Schema()
    learn_fields(read_corpus(corpus), schema, BadDocuments("error"))
    build_shards(folder, [str(corpus)], CorpusOptions(), schema, Analysis(), 3, run=run)


def test_a_cluster_builds_the_shards_that_one_process_builds(session, corpus: Path, tmp_path: Path) -> None:
    build(tmp_path / "here", corpus, run_here)
    build(tmp_path / "there", corpus, run_on_cluster(session))
    here, there = Index.open(tmp_path / "here"), Index.open(tmp_path / "there")
    assert [shard.commit for shard in there.shards] == [shard.commit for shard in here.shards]


def test_a_builder_that_dies_is_started_again(session, corpus: Path, tmp_path: Path, monkeypatch) -> None:
    mark = str(tmp_path / "died")

    class DiesOnce(ShardBuilder):
        def build(self, task):
            if task["number"] == 1 and not os.path.exists(mark):
                open(mark, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            return super().build(task)

    monkeypatch.setattr(indexing, "ShardBuilder", DiesOnce)
    build(tmp_path / "shards", corpus, run_on_cluster(session))
    assert os.path.exists(mark)
    assert Index.open(tmp_path / "shards").n_docs == 200


def test_a_users_mistake_is_told_as_it_is(session, corpus: Path, tmp_path: Path) -> None:
    with corpus.open("a") as lines:
        lines.write('{"id": "d5", "body": "again"}\n')
    # More than once: other shards finish at about the time at which their builders are ended.
    for _ in range(5):
        with pytest.raises(DataError, match="id 'd5' exists already"):
            build(tmp_path / "shards", corpus, run_on_cluster(session))
        assert list((tmp_path / "shards").iterdir()) == []
