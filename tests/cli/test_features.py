"""`rankwell features`: from an index, and from a log."""

import json

import numpy as np
import pytest

from rankwell.data.candidates import N_CANDIDATES, Candidates
from rankwell.data.files import read
from rankwell.index.reader import Index
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter
from rankwell.rankers.registry import load
from rankwell.serving.ranking.feature_log import FeatureLog
from rankwell.serving.ranking.ranked_search import RankedSearch

ANIMALS = [
    {"id": "a", "title": "the red fox", "body": "a fox is red and quick", "age": 3},
    {"id": "b", "title": "lazy dogs", "body": "dogs sleep and the fox does not", "age": 4},
    {"id": "c", "title": "birds", "body": "red birds sing"},
    {"id": "d", "body": "nothing of note"},
]


@pytest.fixture
def collection(tmp_path):
    folder = tmp_path / "index"
    with IndexWriter(folder, analysis=Analysis()) as writer:
        writer.add(ANIMALS)
        writer.commit()
    (tmp_path / "queries.tsv").write_text("1\tred fox\n2\tdogs\n3\tbirds\n")
    (tmp_path / "qrels.txt").write_text("1 0 a 2\n1 0 d 0\n2 0 b 1\n2 0 zebra 1\n9 0 a 1\n")
    return [str(folder), str(tmp_path / "queries.tsv"), str(tmp_path / "qrels.txt")]


def run(rankwell, *arguments):
    result = rankwell("features", *arguments)
    assert result.exit_code == 0, result.stderr
    return result


def test_a_name_that_tells_no_format_is_refused_before_the_work(rankwell, collection, tmp_path):
    outcome = rankwell("features", "absent.idx", *collection[1:], "--out", str(tmp_path / "train.xyz"))
    assert outcome.exit_code == 1
    assert "train.xyz does not tell its format. Use one of the endings .txt" in outcome.stderr


@pytest.mark.parametrize("name", ["train.txt", "train.parquet"])
def test_training_data_with_names(rankwell, collection, tmp_path, name):
    out = tmp_path / name
    result = run(
        *(rankwell, *collection, "--out", str(out), "--top", "2", "--candidates", "judged+top"),
        *("--add", "fresh = bm25.title / static.age"),
    )
    data = read(out)
    assert data.query_ids.tolist() == [1, 2]
    # Of query 1, a and d are judged, and the first pass finds a and b or c.
    assert list(data.comments)[:2] == ["a", "b"] or list(data.comments)[:2] == ["a", "c"]
    assert data.labels[0] == 2
    assert data.feature_names[0] == "covered_terms.body"
    assert data.feature_names[-1] == "fresh = bm25.title / static.age"
    age = data.feature_names.index("static.age")
    assert np.isnan(data.features[list(data.comments).index("d"), age])
    assert "1 judged documents are absent" in result.stderr
    assert "1 queries have no judgments" in result.stderr
    assert "1 judged queries are not among the queries" in result.stderr


def test_parameters_are_in_the_names(rankwell, collection, tmp_path):
    out = tmp_path / "train.txt"
    run(
        rankwell,
        *collection,
        "--out",
        str(out),
        "--features",
        "mslr",
        "--parameter",
        "k1=0.9",
        "--parameter",
        "b.title=0.5",
    )
    names = read(out).feature_names
    assert len(names) == 75
    assert "bm25.title(b=0.5;k1=0.9)" in names
    assert json.loads(out.read_text().splitlines()[0].removeprefix("# features: ")) == list(names)


def test_a_ranker_knows_its_features_from_the_data(rankwell, collection, tmp_path):
    out, model = tmp_path / "train.txt", tmp_path / "model.rank"
    run(rankwell, *collection, "--out", str(out), "--features", "mslr")
    trained = rankwell("train", "least-squares", str(out), "--out", str(model))
    assert trained.exit_code == 0, trained.stderr
    assert load(model).description_.feature_names == read(out).feature_names
    assert RankedSearch(Index.open(collection[0]), model).search("red fox").ids[0] == "a"


def test_from_a_log(rankwell, collection, tmp_path):
    out, model, again = tmp_path / "train.txt", tmp_path / "model.rank", tmp_path / "again.txt"
    run(rankwell, *collection, "--out", str(out), "--features", "mslr", "--candidates", "top")
    rankwell("train", "least-squares", str(out), "--out", str(model))
    index, ranker = Index.open(collection[0]), load(model)
    searcher = RankedSearch(index, ranker)
    with FeatureLog(tmp_path / "served.log", searcher.feature_set) as log:
        for query_id, text in (("1", "red fox"), ("2", "dogs")):
            RankedSearch(index, ranker, log=log).search(text, query_id=query_id)
    run(rankwell, collection[2], "--from-log", str(tmp_path / "served.log"), "--out", str(again))
    first, second = read(out), read(again)
    assert second.feature_names == first.feature_names
    rows = [list(second.comments).index(name) for name in list(first.comments)[: first.query_ptr[1]]]
    np.testing.assert_array_equal(second.features[rows], first.features[: first.query_ptr[1]])


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (["--features", "letor"], 2, "a feature set is one of mslr, full, got 'letor'"),
        (["--parameter", "k1=high"], 2, "--parameter must be KEY=VALUE"),
        (["--add", "x = bm25.abstract"], 2, "there is no feature of this name"),
        (["--add", "bm25.abstract"], 1, "the index lacks what 1 feature needs: bm25.abstract"),
        (["--candidates", "all"], 2, "judged+top"),
    ],
)
def test_mistakes_are_one_line(rankwell, collection, tmp_path, change, code, message):
    result = rankwell("features", *collection, "--out", str(tmp_path / "train.txt"), *change)
    assert result.exit_code == code
    assert message in result.stderr
    assert not (tmp_path / "train.txt").exists()


def test_the_number_of_files_is_checked(rankwell, collection, tmp_path):
    result = rankwell("features", collection[0], "--out", str(tmp_path / "train.txt"))
    assert (result.exit_code, "IDX QUERIES QRELS must be 3 paths, got 1" in result.stderr) == (2, True)


def test_candidates_are_what_the_first_pass_finds_unless_asked_otherwise(rankwell, collection, tmp_path):
    out = tmp_path / "train.txt"
    result = run(rankwell, *collection, "--out", str(out))
    data = read(out)
    assert "d" not in list(data.comments)  # judged for query 1, but it has no word of it
    assert data.candidates == Candidates("top", N_CANDIDATES, 0, "bm25.whole")
    assert "did not find" not in result.stderr
    assert "flatter" not in rankwell("train", "least-squares", str(out), "--out", str(tmp_path / "m")).stderr


@pytest.mark.parametrize("name", ["train.txt", "train.txt.gz", "train.parquet", "train.feather"])
def test_rows_from_outside_the_first_pass_are_told_of_at_every_step(rankwell, collection, tmp_path, name):
    out, model = tmp_path / name, str(tmp_path / "model.rank")
    result = run(rankwell, *collection, "--out", str(out), "--candidates", "judged+top")
    assert "note: 1 of 5 rows are judged documents that the first pass did not find (judged+top)" in result.stderr
    trained = rankwell("train", "least-squares", str(out), "--out", model)
    assert "1 rows of the training data are judged documents that the first pass did not find" in trained.stderr
    for command in (["evaluate", str(out), model], ["compare", str(out), model, "--baseline", "bm25.whole"]):
        told = rankwell(*command)
        assert told.exit_code == 0, told.stderr
        assert "note: these figures flatter: 1 of 5 rows" in told.stderr


def test_csv_cannot_tell_and_says_so(rankwell, collection, tmp_path):
    result = run(rankwell, *collection, "--out", str(tmp_path / "train.csv"), "--candidates", "judged")
    assert "CSV cannot hold the note that 1 rows are from outside the first pass" in result.stderr
    assert read(tmp_path / "train.csv").candidates is None
