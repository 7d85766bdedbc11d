"""`--own`, `--vectors` and `--query-vectors`: from documents to results, as a user does it."""

import json

import pytest

from rankwell.data.files import read
from rankwell.data.trec_run import read_run

DOCUMENTS = [
    {"id": "a", "body": "the red fox", "embedding": [1.0, 0.0]},
    {"id": "b", "body": "a red dog", "embedding": [0.0, 1.0]},
    {"id": "c", "body": "red birds sing"},
    {"id": "d", "body": "nothing of note", "embedding": [1.0, 1.0]},
]
RATES = [
    {"query": "red fox", "document": "a", "rate": 0.5},
    {"query": "red fox", "document": "b", "rate": 0.1},
    {"query": "dog", "document": "b", "rate": 0.7},
]
MODULE = """
def fox(query, documents):
    return [float("fox" in query and document == "a") for document in documents]

def vector(text):
    return [1.0, 2.0] if "red" in text else None

def boom(query, documents):
    return [1 / 0 for document in documents]

table = 3
"""


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def folder(rankwell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "documents.jsonl", DOCUMENTS)
    write_lines(tmp_path / "rates.jsonl", RATES)
    write_lines(tmp_path / "vectors.jsonl", [{"query": "red fox", "vector": [1, 2]}])
    (tmp_path / "my_own_signals.py").write_text(MODULE)
    (tmp_path / "queries.tsv").write_text("1\tred fox\n2\tdog\n")
    (tmp_path / "qrels.txt").write_text("1 0 a 2\n1 0 b 0\n1 0 c 0\n2 0 b 1\n")
    built = rankwell("index", "build", "documents.jsonl", "--out", "idx", "--vectors", "embedding=2")
    assert built.exit_code == 0, built.stderr
    assert "embedding of 2 float32" in built.stdout
    return tmp_path


@pytest.mark.parametrize("vectors", ["embedding=vectors.jsonl", "embedding=my_own_signals:vector"])
def test_from_documents_to_results(rankwell, folder, vectors):
    sources = ["--own", "rates.jsonl", "--own", "fox=my_own_signals:fox", "--query-vectors", vectors]
    made = rankwell(
        *("features", "idx", "queries.tsv", "qrels.txt", "--features", "mslr", "--out", "train.txt", *sources),
        *("--add", "own.rate(default=0)"),
    )
    assert made.exit_code == 0, made.stderr
    data = read(folder / "train.txt")
    assert data.feature_names[-4:] == ("own.rate(default=0)", "own.fox", "dot.embedding", "cosine.embedding")
    first = list(data.comments).index("a")
    assert data.features[first, -4:-1].tolist() == [0.5, 1.0, 1.0]
    assert data.features[first, -1] == pytest.approx(5**-0.5)
    trained = rankwell("train", "rankboost", "train.txt", "--out", "m.rank", "--set", "n_rounds=3")
    assert trained.exit_code == 0, trained.stderr
    found = rankwell("search", "idx", "red", "fox", "--ranker", "m.rank", "--json", *sources)
    assert found.exit_code == 0, found.stderr
    assert {row["id"] for row in json.loads(found.stdout)["results"]} == {"a", "b", "c"}
    assert "embedding" not in json.loads(found.stdout)["results"][0]["fields"]
    explained = rankwell("explain", "m.rank", "idx", "--query", "red fox", "--document", "a", "--json", *sources)
    assert explained.exit_code == 0, explained.stderr
    assert json.loads(explained.stdout)[0]["values"]["own.rate(default=0)"] == 0.5
    without = rankwell("search", "idx", "red", "fox", "--ranker", "m.rank")
    assert without.exit_code != 0
    assert "there is no source of own.rate(default=0)" in " ".join(without.stderr.split())


def test_sources_that_fit_nothing_are_warned_of(rankwell, folder):
    """Keys of another collection, or a query's identifier where its words are needed; defaults are no values."""
    write_lines(folder / "miss.jsonl", [{"query": "1", "document": "a", "miss": 0.5}])
    write_lines(folder / "vectors.jsonl", [{"query": "1", "vector": [1, 2]}])
    (folder / "my_own_silence.py").write_text("def none(query, documents):\n    return [None] * len(documents)\n")
    sources = ["--own", "miss.jsonl", "--own", "rates.jsonl", "--own", "none=my_own_silence:none"]
    made = rankwell(
        *("features", "idx", "queries.tsv", "qrels.txt", "--features", "mslr", "--out", "train.txt", *sources),
        *("--query-vectors", "embedding=vectors.jsonl", "--add", "own.miss(default=0)", "--quiet"),
    )
    assert made.exit_code == 0, made.stderr
    told = made.stderr
    assert (
        "own.miss(default=0): no row has a value (the first key of miss.jsonl is query '1' and document 'a')." in told
    )
    assert "own.none: no row has a value (its function my_own_silence:none returned no number)." in told
    assert "dot.embedding: no row has a value (the first query of vectors.jsonl is '1')." in told
    assert "own.rate" not in made.stderr


def test_a_product_that_overflows_is_named(rankwell, folder):
    write_lines(folder / "vectors.jsonl", [{"query": "red fox", "vector": [3e38, 3e38]}])
    write_lines(folder / "large.jsonl", [row | {"embedding": [2.0, 2.0]} for row in DOCUMENTS])
    assert rankwell("index", "build", "large.jsonl", "--out", "large", "--vectors", "embedding=2").exit_code == 0
    made = rankwell(
        *("features", "large", "queries.tsv", "qrels.txt", "--features", "mslr", "--out", "train.txt"),
        *("--query-vectors", "embedding=vectors.jsonl"),
    )
    assert made.exit_code == 1
    assert (
        "dot.embedding must be finite in float32 or missing: of document 'a' for query '1' it is inf. Scale down"
        in made.stderr
    )


def test_vectors_of_an_unknown_kind(rankwell, folder):
    built = rankwell("index", "build", "documents.jsonl", "--out", "other", "--vectors", "embedding=2:int4")
    assert built.exit_code != 0
    assert "numbers of float32 or int8, got 2 numbers of int4." in built.stderr


def test_a_run_is_ranked_again_by_own_features(rankwell, folder):
    sources = ["--own", "rates.jsonl", "--query-vectors", "embedding=my_own_signals:vector"]
    sum_of_both = '"own.rate(default=0)" + "dot.embedding(default=0)"'
    (folder / "own.yaml").write_text(f"inputs: [{{expression: '{sum_of_both}'}}]")
    assert rankwell("ranker", "make", "own.yaml", "--out", "own.rank").exit_code == 0
    (folder / "foreign.txt").write_text("1 Q0 c 1 3 x\n1 Q0 a 2 2 x\n1 Q0 b 3 1 x\n2 Q0 b 1 1 x\n")
    done = rankwell(
        *("search", "idx", "--queries", "queries.tsv", "--ranker", "own.rank", *sources),
        *("--rerank", "foreign.txt", "--run", "again.txt"),
    )
    assert done.exit_code == 0, done.stderr
    reranked = read_run(folder / "again.txt")
    assert list(reranked["1"]) == ["b", "a", "c"]
    assert reranked["1"] == pytest.approx({"b": 0.1 + 2.0, "a": 0.5 + 1.0, "c": 0.0})
    assert reranked["2"] == pytest.approx({"b": 0.7})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--own", "x=my_own_signals:none"], "which cannot be imported"),
        (["--own", "x=no_such_module:f"], "which cannot be imported"),
        (["--own", "x=my_own_signals:table"], "which is not a function"),
        (["--own", "none.jsonl"], "none.jsonl"),
        (
            ["--own", "x=my_own_signals:boom"],
            "the function my_own_signals:boom of 'x' failed for the query 'red fox': ZeroDivisionError: division by",
        ),
        (["--query-vectors", "vectors.jsonl"], "--query-vectors must be like embedding=FILE"),
    ],
)
def test_mistakes_are_told(rankwell, folder, options, words):
    done = rankwell("features", "idx", "queries.tsv", "qrels.txt", "--out", "t.txt", *options)
    assert done.exit_code != 0
    assert words in " ".join(done.stderr.split())


def test_vectors_that_cannot_be_read_are_told(rankwell, folder):
    for written in ("embedding", "embedding=many", "embedding=3:int4"):
        done = rankwell("index", "build", "documents.jsonl", "--out", "other", "--vectors", written)
        assert done.exit_code != 0
        assert "--vectors" in done.stderr
