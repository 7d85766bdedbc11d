"""A folder of shards answers as one index with all documents does."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path

import pytest

from rankwell.corpus.bad_documents import BadDocuments
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.reading import read_corpus
from rankwell.errors import DataError, FileFormatError, RankwellError
from rankwell.index import shard_building
from rankwell.index.checking import check_index
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.shard_building import build_shards, learn_fields, run_here, run_in_processes, shards_of
from rankwell.index.shards import SHARDS_NAME, ShardedIndex, shard_folders
from rankwell.index.statistics import Statistics
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter

WORDS = ["wing", "flow", "heat", "shock", "plate", "jet", "layer", "speed", "pressure", "mach", "body", "nose"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    chosen = random.Random(7)
    path = tmp_path / "docs.jsonl"
    with path.open("w") as lines:
        for number in range(400):
            document = {"id": f"d{number}", "body": " ".join(chosen.choices(WORDS, k=chosen.randint(3, 40)))}
            if number % 3 == 0:
                document["title"] = " ".join(chosen.choices(WORDS, k=4))
            if number > 200:
                document["year"] = 1900 + number % 50
            lines.write(json.dumps(document) + "\n")
    return path


def build(folder: Path, corpus: Path, n_shards: int, *, run=run_here, schema=None, **options) -> None:
    schema = schema or Schema()
    learn_fields(read_corpus(corpus), schema, BadDocuments("error"))
    build_shards(folder, [str(corpus)], CorpusOptions(), schema, Analysis(), n_shards, run=run, **options)


@pytest.fixture
def whole(corpus: Path, tmp_path: Path) -> Index:
    with IndexWriter(tmp_path / "whole") as writer:
        for batch in read_corpus(corpus):
            writer.add(batch)
        writer.commit()
    return Index.open(tmp_path / "whole")


def found(index: Index, query: str, **options) -> dict[str, float]:
    result = index.search(query, k=400, **options)
    return {index.id_of(int(doc)): float(score) for doc, score in zip(result.docs, result.scores, strict=True)}


@pytest.mark.parametrize("n_shards", [1, 3, 7])
def test_scores_are_those_of_one_index(corpus: Path, whole: Index, tmp_path: Path, n_shards: int) -> None:
    build(tmp_path / "shards", corpus, n_shards)
    index = Index.open(tmp_path / "shards")
    assert isinstance(index, ShardedIndex)
    assert len(index.shards) == n_shards
    assert index.n_docs == whole.n_docs == 400
    assert index.schema == whole.schema
    assert Statistics.of(index).tokens.tolist() == Statistics.of(whole).tokens.tolist()
    for query in ("wing heat", "title:shock", '"jet layer"', "press* -mach", "year:>1910 wing"):
        assert found(index, query) == found(whole, query)
    for query, filter in (("wing -haet~1", None), ("wing AND NOT (preshure~ OR jte~1)", None), ("wing", "-shokc~1")):
        assert found(index, query, filter=filter) == found(whole, query, filter=filter)
        assert 0 < len(found(index, query, filter=filter)) < len(found(whole, "wing"))
    assert index.stored(index.find("d17")) == whole.stored(whole.find("d17"))


def test_an_id_is_always_in_the_same_shard(corpus: Path, tmp_path: Path) -> None:
    build(tmp_path / "shards", corpus, 4)
    expected = shards_of([f"d{number}" for number in range(400)], 4)
    sizes = [expected.tolist().count(shard) for shard in range(4)]
    assert min(sizes) > 60
    for shard, index in enumerate(Index.open(tmp_path / "shards").shards):
        assert index.n_docs == sizes[shard]
        assert all(expected[int(index.id_of(doc)[1:])] == shard for doc in range(index.n_docs))


def test_processes_build_the_same_shards(corpus: Path, tmp_path: Path) -> None:
    build(tmp_path / "here", corpus, 3)
    build(tmp_path / "apart", corpus, 3, run=run_in_processes(2))
    here, apart = Index.open(tmp_path / "here"), Index.open(tmp_path / "apart")
    assert [one.commit for one in here.shards] == [one.commit for one in apart.shards]
    assert check_index(tmp_path / "apart").is_sound


def _die_once(task):
    """Die in the middle of shard 1, once."""
    mark = Path(task.folder).parent.parent / "died"
    if task.number == 1 and not mark.exists():
        mark.touch()
        with IndexWriter(task.folder, overwrite=True) as writer:
            writer.add([{"id": "half", "body": "a half"}])
            os.kill(os.getpid(), signal.SIGKILL)
    return _build_shard(task)


def _always_die(task):
    os.kill(os.getpid(), signal.SIGKILL)


_build_shard = shard_building.build_shard


def test_a_shard_whose_process_dies_is_built_again(corpus: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(shard_building, "build_shard", _die_once)
    build(tmp_path / "shards", corpus, 3, run=run_in_processes(2))
    assert (tmp_path / "died").exists()
    index = Index.open(tmp_path / "shards")
    assert index.n_docs == 400
    assert index.find("half") == -1


def test_a_shard_that_never_succeeds_leaves_what_was_there(corpus: Path, tmp_path: Path, monkeypatch) -> None:
    build(tmp_path / "shards", corpus, 2)
    before = Index.open(tmp_path / "shards").commit
    monkeypatch.setattr(shard_building, "build_shard", _always_die)
    with pytest.raises(RankwellError, match="processes that build shards 0, 1, 2 died 3 times"):
        build(tmp_path / "shards", corpus, 3, run=run_in_processes(2))
    assert Index.open(tmp_path / "shards").commit == before
    assert len(list((tmp_path / "shards").iterdir())) == 3


def test_another_build_replaces_the_shards_and_a_reader_sees_it(corpus: Path, tmp_path: Path) -> None:
    build(tmp_path / "shards", corpus, 2)
    index = Index.open(tmp_path / "shards")
    assert index.reopen() is index
    (tmp_path / "shards" / "shard-0002-0000").mkdir()  # of a build that was killed
    corpus.write_text('{"id": "one", "body": "wing"}\n')
    build(tmp_path / "shards", corpus, 3)
    newest = index.reopen()
    assert (newest.n_docs, len(newest.shards)) == (1, 3)
    assert found(index, "wing")  # the old snapshot still answers
    assert {path.name for path in (tmp_path / "shards").iterdir()} == {
        SHARDS_NAME, *(path.name for path in shard_folders(tmp_path / "shards"))
    }  # fmt: skip


def test_a_commit_to_one_shard_is_seen(corpus: Path, tmp_path: Path) -> None:
    build(tmp_path / "shards", corpus, 2)
    index = Index.open(tmp_path / "shards")
    first = index.id_of(0)
    with IndexWriter(index.shards[0].path) as writer:
        writer.delete([first])
        writer.commit()
    assert index.reopen().n_docs == 399
    assert index.reopen().find(first) == -1


def test_an_id_twice_is_found_in_its_shard(corpus: Path, tmp_path: Path) -> None:
    with corpus.open("a") as lines:
        lines.write('{"id": "d5", "body": "again"}\n')
    with pytest.raises(DataError, match="id 'd5' exists already"):
        build(tmp_path / "shards", corpus, 3)
    assert not (tmp_path / "shards" / SHARDS_NAME).exists()
    build(tmp_path / "shards", corpus, 3, skip=True)
    assert Index.open(tmp_path / "shards").n_docs == 400


def test_a_damaged_list_of_shards_is_refused(corpus: Path, tmp_path: Path) -> None:
    build(tmp_path / "shards", corpus, 2)
    for content in ("{}", '{"format": "rankwell-shards", "version": 1, "shards": ["../whole"]}', "[", '"x"'):
        (tmp_path / "shards" / SHARDS_NAME).write_text(content)
        with pytest.raises(FileFormatError, match=r"shards.json is unreadable"):
            Index.open(tmp_path / "shards")


def test_shards_of_different_analysis_are_refused(corpus: Path, tmp_path: Path) -> None:
    build(tmp_path / "shards", corpus, 2)
    last = shard_folders(tmp_path / "shards")[1]
    with IndexWriter(last, analysis=Analysis("english"), overwrite=True) as writer:
        writer.add([{"id": "x", "body": "wings"}])
        writer.commit()
    with pytest.raises(DataError, match="cuts text into words otherwise"):
        Index.open(tmp_path / "shards")


def test_a_writer_refuses_a_folder_of_shards(corpus: Path, tmp_path: Path) -> None:
    build(tmp_path / "shards", corpus, 2)
    with pytest.raises(DataError, match="is not an index and not empty"):
        IndexWriter(tmp_path / "shards")
