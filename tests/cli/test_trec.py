"""Test collections from the command line: folders as BEIR's and ir_datasets', TREC's runs, judgments and topics."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.conftest import Command

import rankwell as library

TEXTS = {
    "d1": "the red fox is quick",
    "d2": "dogs sleep and the fox does not",
    "d3": "red birds sing",
    "d4": "a red fox and a red dog",
    "d5": "birds and dogs",
}
QUERIES = {"q1": "red fox", "q2": "dogs"}
QRELS = {"q1": {"d1": 2.0, "d4": 1.0, "d3": 0.0}, "q2": {"d5": 1.0, "d2": 0.0}}


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rankwell: Command) -> Path:
    """A folder as BEIR's collections are, with an index of it."""
    monkeypatch.chdir(tmp_path)
    documents = [{"_id": name, "title": "", "text": text, "metadata": {}} for name, text in TEXTS.items()]
    Path("corpus.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    queries = [{"_id": name, "text": text, "metadata": {}} for name, text in QUERIES.items()]
    Path("queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    Path("qrels").mkdir()
    lines = [f"{query}\t{name}\t{grade:g}\n" for query, grades in QRELS.items() for name, grade in grades.items()]
    Path("qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    assert rankwell("index", "build", "corpus.jsonl", "--id-field", "_id", "--out", "idx").exit_code == 0
    return tmp_path


def test_search_and_evaluate(rankwell: Command, collection: Path) -> None:
    outcome = rankwell("search", "idx", "--queries", "queries.jsonl", "--run", "run.txt", "--tag", "bm25")
    assert outcome.exit_code == 0, outcome.stderr
    assert all(line.endswith(" bm25") for line in Path("run.txt").read_text().splitlines())
    outcome = rankwell("evaluate", "qrels/test.tsv", "run.txt", "--metrics", "map", "--convention", "trec", "--json")
    found = json.loads(outcome.stdout)["metrics"]["map"]["mean"]
    expected = library.evaluate(QRELS, library.read_run("run.txt"), metrics="map", convention="trec").mean["map"]
    assert found == expected
    assert found > 0.5
    assert rankwell("compare", "qrels/test.tsv", "run.txt", "run.txt", "--convention", "trec").exit_code == 0


@pytest.mark.parametrize(
    "command", [("evaluate", "run.txt", "qrels/test.tsv"), ("compare", "run.txt", "run.txt", "run.txt")]
)
def test_judgments_come_before_the_run(rankwell: Command, collection: Path, command: tuple[str, ...]) -> None:
    library.write_run({"q1": {"d5": 9.0}}, "run.txt")
    outcome = rankwell(*command)
    assert outcome.exit_code == 1
    assert "run.txt is a run of TREC's format, and what it is measured by comes first" in outcome.stderr


def test_topics_of_trec(rankwell: Command, collection: Path) -> None:
    topics = (f"<top>\n<num> Number: {name}\n<title> {text}\n</top>\n" for name, text in QUERIES.items())
    Path("topics.txt").write_text("".join(topics))
    for queries in ("queries.jsonl", "topics.txt"):
        assert rankwell("search", "idx", "--queries", queries, "--run", f"{queries}.run").exit_code == 0
    assert Path("topics.txt.run").read_text() == Path("queries.jsonl.run").read_text()


@pytest.fixture
def ranker(rankwell: Command, collection: Path) -> str:
    made = rankwell("features", "idx", "queries.jsonl", "qrels/test.tsv", "--out", "train.txt")
    assert made.exit_code == 0, made.stderr
    trained = rankwell("train", "ranksvm", "train.txt", "--out", "model.rank")
    assert trained.exit_code == 0, trained.stderr
    return "model.rank"


def test_a_run_is_ranked_again(rankwell: Command, ranker: str) -> None:
    """Every document of another system's run, by the ranker; one that the index lacks is left out."""
    library.write_run({"q1": {"d5": 9.0, "unknown": 8.0, "d4": 7.0, "d1": 6.0}, "other": {"d1": 1.0}}, "foreign.txt")
    arguments = ["--queries", "queries.jsonl", "--ranker", ranker, "--rerank", "foreign.txt", "--run", "reranked.txt"]
    outcome = rankwell("search", "idx", *arguments)
    assert outcome.exit_code == 0, outcome.stderr
    reranked = library.read_run("reranked.txt")
    assert set(reranked) == {"q1"}
    assert list(reranked["q1"])[-1] == "d5"
    assert set(reranked["q1"]) == {"d5", "d4", "d1"}
    search = library.RankedSearch(library.Index.open("idx"), ranker)
    scores = search.score(search.features("red fox", ["d5", "d4", "d1"]))
    assert reranked["q1"] == pytest.approx(dict(zip(["d5", "d4", "d1"], scores.tolist(), strict=True)))
    assert "nothing was found for 1 of 2 queries" in outcome.stderr
    assert "1 of 4 are not and were left out, of the ids 'unknown'. Check that" in outcome.stderr


def save_ranker_of(feature: str, path: str) -> None:
    """A ranker that falls or rises with one feature."""
    fitted = library.LeastSquares(normalize="none").fit([[1.0], [0.0]], [1, 0], group=[2])
    description = replace(fitted.description_, feature_names=(feature,))
    library.MadeRanker.from_description(description).save(path)


SEARCH_OPTIONS = [
    ["--candidates", "3"],
    ["--match", "all"],
    ["--k1", "0"],
    ["--b", "0.75"],
    ["--weights", "text=2"],
    ["--stream", "text"],
    ["--synonyms", "rules.txt"],
]


@pytest.mark.parametrize("options", [["--filter", "birds"], ["--device", "cpu"], *SEARCH_OPTIONS])
def test_reranking_refuses_options_of_a_search(rankwell: Command, collection: Path, options: list[str]) -> None:
    save_ranker_of("length.whole", "model.rank")
    library.write_run({"q1": {"d5": 9.0, "d4": 7.0}}, "foreign.txt")
    Path("rules.txt").write_text("red, birds\n")
    arguments = ["--queries", "queries.jsonl", "--ranker", "model.rank", "--rerank", "foreign.txt", "--run", "out"]
    outcome = rankwell("search", "idx", *arguments, *options)
    assert outcome.exit_code == 2
    assert f"{options[0]} would have no effect with --rerank, which scores every document of the run" in outcome.stderr
    assert "leave it out" in outcome.stderr
    assert not Path("out").exists()
    both = rankwell("search", "idx", *arguments, *options, "--filter", "red", "--k1", "0.9")
    assert "--k1" in both.stderr
    assert "leave them out" in both.stderr


def test_reranking_by_relevance_models_takes_options_of_the_search_that_they_are_made_of(
    rankwell: Command, collection: Path
) -> None:
    # A relevance model has only terms that few documents have.
    texts = ["dogs bark", "dogs and cats howl", "bark at trees", "howl of wolves"] + ["snow"] * 40
    with library.IndexWriter("idx", overwrite=True) as writer:
        writer.add([{"id": f"d{number}", "text": text} for number, text in enumerate(texts)])
        writer.commit()
    library.write_run({"q2": {"d2": 9.0, "d3": 8.0}}, "foreign.txt")
    save_ranker_of("relevance_model.whole(documents=2;terms=5)", "model.rank")
    arguments = ["--queries", "queries.jsonl", "--ranker", "model.rank", "--rerank", "foreign.txt", "--run"]
    scores = []
    for number, options in enumerate(([], ["--candidates", "1"])):
        assert rankwell("search", "idx", *arguments, f"{number}.txt", *options).exit_code == 0
        scores.append(library.read_run(f"{number}.txt")["q2"])
    assert scores[0]["d3"] > 0 == scores[1]["d3"]  # without d1, the model has no howl
    refused = rankwell("search", "idx", *arguments, "again.txt", "--filter", "birds")
    assert "--filter would have no effect with --rerank" in refused.stderr


def test_reranking_forgives_typing_errors(rankwell: Command, ranker: str) -> None:
    library.write_run({"q1": {"d5": 9.0, "d4": 7.0, "d1": 6.0}}, "foreign.txt")
    Path("wrong.tsv").write_text("q1\tredd foxx\n")
    arguments = ["--ranker", ranker, "--rerank", "foreign.txt", "--run"]
    for queries, run, options in (("queries.jsonl", "right", []), ("wrong.tsv", "forgiven", ["--typos"])):
        assert rankwell("search", "idx", "--queries", queries, *arguments, run, *options).exit_code == 0
    assert library.read_run("forgiven")["q1"] == library.read_run("right")["q1"]


UNKNOWN = {"q1": {f"x{place}": 9.0 - place for place in range(6)} | {"d4": 1.0}, "q2": {"x0": 1.0}}
TOLD = (
    "the run's documents must be in the index: 7 of 8 are not and were left out, of the ids 'x0', 'x1', 'x2', 'x3', "
    "'x4', .... Queries that have no other documents: 1, 'q2'. Check that the run is of this collection"
)


def test_documents_that_the_index_lacks_are_counted_and_named(rankwell: Command, ranker: str) -> None:
    library.write_run(UNKNOWN, "foreign.txt")
    sources = ["idx", "queries.jsonl", "qrels/test.tsv"]
    for options in ((), ("--quiet",)):
        outcome = rankwell("features", *sources, "--candidates", "foreign.txt", "--out", "rows.txt", *options)
        assert outcome.exit_code == 0, outcome.stderr
        assert TOLD in outcome.stderr
    assert list(library.read("rows.txt").comments) == ["d4"]
    arguments = ["--queries", "queries.jsonl", "--ranker", ranker, "--rerank", "foreign.txt", "--run", "reranked.txt"]
    assert TOLD in rankwell("search", "idx", *arguments).stderr
    library.write_run({"q1": {"d4": 1.0}}, "foreign.txt")
    assert "must be in the index" not in rankwell("search", "idx", *arguments).stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["red", "--rerank", "x"], "--rerank needs --queries FILE and --ranker FILE"),
        (["--queries", "queries.jsonl", "--run", "out", "--rerank", "x"], "--rerank needs --queries FILE and --ranker"),
        (
            ["--queries", "queries.jsonl", "--run", "out", "--tag", "two words"],
            "--tag must not be empty or contain",
        ),
    ],
)
def test_wrong_usage(rankwell: Command, collection: Path, arguments: list[str], complaint: str) -> None:
    outcome = rankwell("search", "idx", *arguments)
    assert outcome.exit_code != 0
    assert complaint in outcome.stderr
    assert not Path("out").exists()


def test_candidates_of_a_run(rankwell: Command, collection: Path) -> None:
    library.write_run({"q1": {"d5": 9.0, "d3": 8.0, "d1": 7.0}, "q2": {"d1": 1.0}}, "foreign.txt")
    sources = ["idx", "queries.jsonl", "qrels/test.tsv"]
    outcome = rankwell("features", *sources, "--candidates", "foreign.txt", "--top", "2", "--out", "rows.txt")
    assert outcome.exit_code == 0, outcome.stderr
    data = library.read("rows.txt")
    assert data.query_ids.tolist() == ["q1", "q2"]
    assert list(data.comments) == ["d3", "d5", "d1"]
    assert data.candidates is not None
    assert (data.candidates.outside, data.candidates.first_pass) == (0, None)


def test_scores_of_data_as_a_run(rankwell: Command, ranker: str) -> None:
    outcome = rankwell("predict", ranker, "train.txt", "--out", "run.txt", "--trec", "--tag", "svm")
    assert outcome.exit_code == 0, outcome.stderr
    run = library.read_run("run.txt")
    assert set(run) == set(QUERIES)
    assert Path("run.txt").read_text().splitlines()[0].endswith(" svm")
