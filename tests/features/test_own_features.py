"""Your own features: tables, functions and vectors, the same in training and in serving."""

import json
import math

import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest

from rankwell import Index, IndexWriter, LeastSquares, RankedSearch
from rankwell.errors import DataError, ParameterError
from rankwell.features.extraction import extract
from rankwell.features.feature_set import FeatureSet
from rankwell.features.hit_reading import collect_hits
from rankwell.features.own_features import OwnFeatures, with_own
from rankwell.features.queries import QueryText
from rankwell.features.training_data import judged_features
from rankwell.index.schema import Schema

NAMES = ["bm25.whole", "own.rate", "own.age(default=-1)", "own.popular", "own.length", "cosine.embedding", "dot.image"]
NAMES += ['fresh = "bm25.whole" / (1 + "own.age(default=-1)")', "cosine.image(default=0)"]
PAIRS = [
    {"query": "Crude  OIL", "document": "a", "rate": 0.5},
    {"query": "crude oil", "document": "c", "rate": 0.25},
    {"query": "grain", "document": 7, "rate": 1.0},
    {"query": "grain", "document": "gone", "rate": 9.0},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own") / "index"
    schema = Schema(vectors={"embedding": 2, "image": (2, "int8")})
    with IndexWriter(folder, schema=schema, max_segments=9) as writer:
        writer.add([{"id": "a", "body": "crude oil", "embedding": [1.0, 0.0], "image": [127.0, 0.0]}])
        writer.add([{"id": "b", "body": "oil and grain", "embedding": [3.0, 4.0]}])
        writer.commit()
        writer.add([{"id": "c", "body": "crude grain"}, {"id": 7, "body": "grain", "image": [0.0, -12.7]}])
        writer.commit()
    return Index.open(folder)


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def own(tmp_path):
    pyarrow.parquet.write_table(
        pyarrow.table({"document": ["a", "b", "7"], "age": [1.0, None, 3.0]}), tmp_path / "ages.parquet"
    )
    tables = [
        write_lines(tmp_path / "rates.jsonl", PAIRS),
        tmp_path / "ages.parquet",
        write_lines(tmp_path / "queries.jsonl", [{"query": "grain", "popular": 5}]),
    ]
    vectors = {
        "embedding": write_lines(tmp_path / "vectors.jsonl", [{"query": "oil", "vector": [4, 3]}]),
        "image": lambda text: [float(len(text)), 0.0] if text != "grain" else None,
    }
    functions = {"length": lambda query, documents: [len(query) + len(document) for document in documents]}
    return OwnFeatures(tables, functions, vectors)


def values_of(index, own, text, ids):
    feature_set = FeatureSet(NAMES)
    query, docs = index.parse(text), np.array([index.find(name) for name in ids])
    hits = with_own(collect_hits(index, [query], [docs]), feature_set, index, [query], [docs], own)
    rows = extract(hits, feature_set)
    return {name: rows[:, column].tolist() for column, name in enumerate(feature_set.names)}


def test_by_hand(index, own):
    nan = pytest.approx(math.nan, nan_ok=True)
    values = values_of(index, own, "+crude oil", ["c", "a", "b"])
    # A query is known by its words: case, white space and operators make no difference.
    assert values["own.rate"] == [0.25, 0.5, nan]
    assert values["own.age(default=-1)"] == [-1, 1, -1]
    assert values["own.popular"] == [nan, nan, nan]
    assert values["own.length"] == [11, 11, 11]
    assert values["cosine.embedding"] == [nan, nan, nan]
    assert values["dot.image"] == [nan, 10 * 127, nan]
    assert values["cosine.image(default=0)"] == [0, 1, 0]
    values = values_of(index, own, "oil", ["a", "b", "7", "c"])
    assert values["own.rate"] == [nan] * 4
    assert values["cosine.embedding"] == [pytest.approx(0.8), pytest.approx(24 / 25), nan, nan]
    assert values["dot.image"] == [3 * 127, nan, 0, nan]
    values = values_of(index, own, "grain", ["7", "b"])
    assert values["own.rate"] == [1, nan]
    assert values["own.popular"] == [5, 5]
    assert values["dot.image"] == [nan, nan]
    fresh = FeatureSet(NAMES).names.index('fresh = "bm25.whole" / (1 + "own.age(default=-1)")')
    assert list(values)[fresh].startswith("fresh")
    assert values[list(values)[fresh]][0] == pytest.approx(values["bm25.whole"][0] / 4)


def test_a_ranker_gets_in_serving_what_it_was_trained_on(index, own):
    queries = [QueryText("1", "crude oil"), QueryText("2", "grain"), QueryText("3", "oil")]
    qrels = {"1": {"a": 2.0, "c": 0.0}, "2": {"7": 1.0}, "3": {"b": 1.0}}
    feature_set = FeatureSet(NAMES)
    train = judged_features(index, queries, qrels, feature_set, own=own).dataset
    ranker = LeastSquares(normalize="none").fit(np.nan_to_num(train.features), train.labels, group=train.query_sizes)
    ranker.description_ = ranker.description_.__class__(
        feature_names=feature_set.names, normaliser=ranker.description_.normaliser,
        inputs=ranker.description_.inputs, layers=ranker.description_.layers,
    )  # fmt: skip
    search = RankedSearch(index, ranker, own=own)
    place = 0
    for query, size in zip(queries, train.query_sizes.tolist(), strict=True):
        ids = train.comments[place : place + size]
        ids = [one.decode() if isinstance(one, bytes) else str(one) for one in ids]
        np.testing.assert_array_equal(search.features(query.text, ids), train.features[place : place + size])
        place += size
    assert len(search.search("crude oil").ids) == 3
    with pytest.raises(DataError, match=r"there is no source of own\.rate, .*There are values of: none"):
        RankedSearch(index, ranker)
    with pytest.raises(DataError, match=r"no source of own\.rate"):
        judged_features(index, queries, qrels, feature_set)


def test_feather_and_compressed_lines_are_read_too(index, tmp_path):
    import gzip

    table = pyarrow.table({"document": ["a"], "x": [2]})
    pyarrow.feather.write_feather(table, tmp_path / "x.feather")
    with gzip.open(tmp_path / "y.jsonl.gz", "wt") as lines:
        lines.write('{"document": "a", "y": 3}\n\n{"document": "b"}\n')
    own = OwnFeatures([tmp_path / "x.feather", tmp_path / "y.jsonl.gz"])
    assert own.names == ("x", "y")
    docs = np.array([index.find("b"), index.find("a")])
    values = own.values(FeatureSet(["own.y", "own.x"]), index, [index.parse("q")], [docs])
    np.testing.assert_array_equal(values, np.array([[np.nan, np.nan], [3, 2]], np.float32))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"x": 1}], "must have a column 'query' \\(a text\\), a column 'document' \\(an id\\) or both"),
        ([{"document": "a"}], "and columns of numbers besides; it has document"),
        ([{"document": "a", "x": "much"}], "row 1: 'x' must be a number, or missing, got 'much'"),
        ([{"document": 1.5, "x": 1}], "row 1: 'document' must be a text, got '1.5'"),
        ([{"query": "A b", "document": "a", "x": 1}, {"query": "a  B", "document": "a", "x": 2}],
         "row 2 is of query 'a b' and document 'a', as row 1 is"),
        ([[1, 2]], "line 1 must be a JSON object"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused(tmp_path, rows, words):
    with pytest.raises(DataError, match=words):
        OwnFeatures([write_lines(tmp_path / "bad.jsonl", rows)])


def test_what_a_function_raises_is_told(index):
    def boom(query, documents=()):
        raise KeyError("no such word")

    failing = OwnFeatures(functions={"x": boom}, query_vectors={"embedding": boom})
    for feature, name in (("own.x", "x"), ("dot.embedding", "embedding")):
        said = (
            rf"the function tests\.features\.\S+boom of '{name}' failed for the query 'a b': KeyError: 'no such word'\."
        )
        with pytest.raises(DataError, match=said) as caught:
            failing.values(FeatureSet([feature]), index, [index.parse("a b")], [np.array([0])])
        assert isinstance(caught.value.__cause__, KeyError)


def test_other_mistakes(index, tmp_path):
    with pytest.raises(DataError, match=r"its name must end in one of \.parquet"):
        OwnFeatures([tmp_path / "x.txt"])
    (tmp_path / "no.jsonl").write_text("{")
    with pytest.raises(DataError, match="line 1 is not JSON"):
        OwnFeatures([tmp_path / "no.jsonl"])
    with pytest.raises(ParameterError, match="two sources have the feature 'x'"):
        OwnFeatures([write_lines(tmp_path / "x.jsonl", [{"document": "a", "x": 1}])], {"x": len})
    docs = [np.array([0])]
    wrong = OwnFeatures(functions={"x": lambda query, documents: [1, 2]}, query_vectors={"embedding": lambda text: [1]})
    with pytest.raises(DataError, match="must return a number for each of 1 documents, got an array of shape \\(2,\\)"):
        wrong.values(FeatureSet(["own.x"]), index, [index.parse("q")], docs)
    with pytest.raises(DataError, match=r"'embedding' must have 2 numbers, as those of the index, got .* \(1,\)"):
        wrong.values(FeatureSet(["dot.embedding"]), index, [index.parse("q")], docs)
    texts = OwnFeatures(
        functions={"x": lambda query, documents: ["many"]}, query_vectors={"embedding": lambda text: "v"}
    )
    with pytest.raises(
        DataError, match=r"must return a number for each of 1 documents, got \['many'\] for the query 'q'"
    ):
        texts.values(FeatureSet(["own.x"]), index, [index.parse("q")], docs)
    with pytest.raises(
        DataError, match=r"'embedding' must return a list of numbers, or None, got 'v' for the query 'q'"
    ):
        texts.values(FeatureSet(["dot.embedding"]), index, [index.parse("q")], docs)
    other = OwnFeatures(query_vectors={"other": lambda text: [1]})
    with pytest.raises(DataError, match="the index has no vectors 'other'; it has: embedding, image"):
        other.values(FeatureSet(["dot.other"]), index, [index.parse("q")], docs)
    with pytest.raises(ParameterError, match=r"own\.x has the setting default, a finite number, and no others"):
        FeatureSet(["own.x(k1=2)"])
