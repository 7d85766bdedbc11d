"""Rankers that people write: what they compute, and what is said, with line and column, if they are wrong."""

import re
import textwrap

import numpy as np
import pytest

from rankwell import FileFormatError, LeastSquares, MadeRanker, load


@pytest.fixture
def write(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    import rankwell

    data = rankwell.RankingDataset(X, X[:, 0] - X[:, 1], group=[20] * 3, feature_names=["bm25.title", "bm25.body"])
    LeastSquares(normalize="standard").fit(data).save(tmp_path / "learned.rank")

    def made(text):
        (tmp_path / "ranker.yaml").write_text(textwrap.dedent(text))
        return MadeRanker.from_yaml(tmp_path / "ranker.yaml")

    return made


def test_each_transform(write):
    ranker = write("""
        features: [x, y]
        inputs:
          - linear: {feature: x, scale: 2, offset: 1, missing: -5}
          - log-linear: {feature: y, scale: 1e1, offset: .5}
          - bucket: {feature: x, edges: [0, 10], values: [100, 200, 300], missing: 400}
          - expression: x * y - 1
          - expression: {text: 1 / x, missing: 9}
          - constant: 1000
        """)
    rows = np.array([[0.0, 0.0], [10.0, np.e - 1], [11.0, np.nan], [np.nan, 0.0]], np.float32)
    log = 10 * np.log(np.float64(rows[1, 1]) + 1) + 0.5
    expected = [
        1 + 0.5 + 100 - 1 + 9 + 1000,
        21 + log + 200 + (10 * np.float64(rows[1, 1]) - 1) + 0.1 + 1000,
        23 + 0 + 300 + 0 + 1 / 11 + 1000,
        -5 + 0.5 + 400 + 0 + 9 + 1000,
    ]
    np.testing.assert_allclose(ranker.predict(rows), expected, rtol=1e-12)


def test_a_boost_over_a_learned_score(write, tmp_path):
    ranker = write("""
        rankers:
          learned: {file: learned.rank}
        inputs:
          - expression: learned * (1 + 0.1 * log1p(static.clicks))
        """)
    assert ranker.description_.feature_names == ("bm25.title", "bm25.body", "static.clicks")
    rows = np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 7.0]], np.float32)
    learned = load(tmp_path / "learned.rank").predict(rows[:, :2]).astype(np.float32)
    np.testing.assert_allclose(ranker.predict(rows), learned * (1 + 0.1 * np.log1p([0.0, 7.0])), rtol=1e-12)


def test_features_of_a_ranker_are_found_by_name_in_any_order(write, tmp_path):
    ranker = write("""
        features: [static.clicks, bm25.body, bm25.title]
        rankers: {learned: {file: learned.rank}}
        inputs: [linear: {feature: learned}]
        """)
    rows = np.random.default_rng(1).normal(size=(30, 3)).astype(np.float32)
    learned = load(tmp_path / "learned.rank").predict(rows[:, [2, 1]])
    np.testing.assert_array_equal(ranker.predict(rows), learned.astype(np.float32))


def test_a_ranker_without_names_is_told_what_its_columns_are(write, tmp_path):
    LeastSquares().fit(np.eye(4, 2), [0, 1, 2, 3]).save(tmp_path / "plain.rank")
    ranker = write("""
        features: [a, b, c]
        rankers:
          plain: {file: plain.rank, features: [c, a]}
        inputs: [linear: {feature: plain}]
        """)
    rows = np.random.default_rng(1).normal(size=(9, 3)).astype(np.float32)
    plain = load(tmp_path / "plain.rank").predict(rows[:, [2, 0]])
    np.testing.assert_array_equal(ranker.predict(rows), plain.astype(np.float32))


def test_rankers_over_different_features_are_added(write, tmp_path, golden):
    (tmp_path / "model.json").write_bytes((golden / "xgboost.json").read_bytes())
    ranker = write("""
        rankers:
          learned: {file: learned.rank}
          trees: {file: model.json, features: [bm25.body, u, v, bm25.title]}
        inputs:
          - linear: {feature: learned, scale: 0.5}
          - linear: {feature: trees, scale: 2}
        """)
    assert ranker.description_.feature_names == ("bm25.title", "bm25.body", "u", "v")
    from rankwell import ImportedRanker

    rows = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32)
    learned = load(tmp_path / "learned.rank").predict(rows[:, :2]).astype(np.float32)
    trees = ImportedRanker.from_model(golden / "xgboost.json").predict(rows[:, [1, 2, 3, 0]]).astype(np.float32)
    np.testing.assert_allclose(ranker.predict(rows), 0.5 * learned + 2.0 * np.float64(trees), rtol=1e-12)


def test_trees_by_reference_are_inputs_of_layers(write, tmp_path, golden):
    (tmp_path / "model.json").write_bytes((golden / "xgboost.json").read_bytes())
    ranker = write("""
        inputs:
          - trees: {file: model.json}
          - constant: 10
        layers:
          - sum: {bias: 1}
        """)
    from rankwell import ImportedRanker

    imported = ImportedRanker.from_model(golden / "xgboost.json")
    rows = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32)
    bias = imported.description_.layers[0].bias
    np.testing.assert_allclose(ranker.predict(rows), imported.predict(rows) - bias + 11, rtol=1e-6)


def test_two_passes_rank_the_rest_below_in_their_order(write):
    ranker = write("""
        features: [bm25.title, bm25.body]
        rankers: {first: {file: learned.rank}}
        first-pass: {ranker: first, keep: 2}
        inputs: [linear: {feature: bm25.body, scale: 100}]
        """)
    # The first pass orders by title minus body, the second by body.
    rows = np.array([[0, -3], [0, -5], [0, -4], [0, 7], [0, 2], [9, -9]], np.float32)
    order = [row.tolist() for row in ranker.rank(rows, group=[5, 1])]
    assert order == [[2, 1, 0, 4, 3], [5]]
    assert ranker.predict(rows, group=[5, 1])[[2, 1, 5]].tolist() == [-400, -500, -900]


def test_a_scale_may_be_infinite(write):
    ranker = write(_STANDARD.format(mean="1, 2", scale="2, .inf") + "\n  - linear: {feature: y}")
    assert ranker.predict(np.array([[5, 7]], np.float32)).tolist() == [(5 - 1) / 2 + 0]


def test_a_ranker_that_nothing_reads_is_named(write, caplog):
    text = """
        rankers:
          first: {file: learned.rank}
          idle: {file: learned.rank}
          read: {file: learned.rank}
        first-pass: {ranker: first, keep: 2}
        inputs: [expression: read * 2]
        """
    write(text)
    (warning,) = caplog.messages
    assert re.search(r"ranker.yaml, line 4, column \d+: no input and no first pass reads the ranker 'idle'", warning)
    caplog.clear()
    write(text.replace("read * 2", "read * idle"))
    assert not caplog.messages


_STANDARD = (
    "features: [x, y]\nnormaliser:\n  standard: {{mean: [{mean}], scale: [{scale}]}}\n"
    "inputs:\n  - linear: {{feature: x}}"
)
WRONG = [
    ("inputs: [linear: {feature: x, scal: 2}]", 1, 31, "linear has no 'scal' (did you mean 'scale'?)"),
    ("inputs:\n  - linear: {feature: x, scale: two}", 2, 33, "scale must be a number, got 'two'"),
    ("inputs:\n  - linear: {scale: 2}", 2, 13, "linear lacks 'feature'"),
    ("features: [x]\ninputs:\n  - linear: {feature: y}", 3, 23, "there is no feature or ranker 'y'"),
    ("features: [x]\ninputs:\n  - expression: x + * 2", 3, 17, "column 5: expected a number"),
    ("features: [x]\ninputs:\n  - expression: x + y", 3, 17, "there is no feature of this name, got 'y'"),
    ("features: [x, x]\ninputs: [constant: 1]", 1, 12, "the name 'x' is given twice"),
    ("inputs:\n  - bucket: {feature: x, edges: [2, 1], values: [1, 2, 3]}", 2, 33, "edges must ascend"),
    ("inputs:\n  - bucket: {feature: x, edges: [2], values: [1, 2, 3]}", 2, 46, "1 edges make 2 buckets"),
    ("inputs:\n  - linear: {feature: x}\n    constant: 2", 2, 5, "an input has one key"),
    ("inputs: []", 1, 1, "at least one input"),
    ("inputs:\n  - constant: .inf", 2, 15, "must be a finite number"),
    ("inputs:\n  - quadratic: {feature: x}", 2, 5, "an input has no 'quadratic'"),
    ("inputs: [constant: 1]\nlayers:\n  - dense: {weights: [[1, 2]]}", 3, 5, "must have 1 numbers, got 2"),
    ("inputs: [constant: 1]\nlayers:\n  - dense: {weights: [[1], [2]]}", 3, 3, "must give one score, it gives 2"),
    ("inputs: [constant: 1]\nlayers:\n  - dense: {weights: [[1]], activation: relo}", 3, 41, "did you mean 'relu'"),
    ("inputs: [constant: 1]\nlayers: [product]", 2, 10, "must be one of dense, sum, mean"),
    ("inputs: [constant: 1]\nnormaliser: standard", 2, 13, "needs numbers"),
    (
        _STANDARD.format(mean="1, 2", scale="1,\n  0"),
        4,
        3,
        "a number of scale must be above 0, .inf for a feature that",
    ),
    (
        _STANDARD.format(mean="1, 2", scale="1, -2"),
        3,
        39,
        "scale must be above 0, .inf for a feature that does not vary",
    ),
    (_STANDARD.format(mean=".inf, 2", scale="1, 2"), 3, 21, "a number of mean must be a finite number, got .inf"),
    (_STANDARD.format(mean="1, 2", scale="1"), 3, 35, "scale must have a number for each of 2 features, got 1"),
    (
        "inputs: [constant: 1]\nfirst-pass: {ranker: a, keep: 2}",
        2,
        13,
        "first-pass names one of the rankers, and there are none",
    ),
    ("rankers:\n  a: {file: none.rank}\ninputs: [constant: 1]", 2, 13, "there is no file"),
    ("rankers:\n  a: {file: ranker.yaml}\ninputs: [constant: 1]", 2, 13, "neither a LightGBM model"),
    ("rankers:\n  a: {file: learned.rank, part: b}\ninputs: [constant: 1]", 2, 33, "there is no part 'b'"),
    ("features: [x]\nrankers:\n  a: {file: learned.rank}\ninputs: [constant: 1]", 3, 6, "reads 'bm25.title'"),
    ("inputs:\n  - trees: {file: learned.rank}", 2, 19, "has no trees"),
    ("inputs: [constant: 1]\ninputs: [constant: 2]", 2, 1, "the key 'inputs' is there twice"),
    ("inputs: &a [constant: 1]\nlayers: *a", 1, 9, "anchors and aliases"),
    ("inputs: !!python/object:os.system [constant: 1]", 1, 9, "tags are not supported"),
    ("inputs: [constant: 1\nlayers: [sum]", 2, 7, "this is not YAML"),
    ("inputs: " + "[" * 30 + "]" * 30, 1, 24, "nested 16 deep"),
    ("inputs: [constant: 1]\n---\ninputs: [constant: 2]", 2, 1, "a second document"),
    ("- inputs", 1, 1, "a ranker description must be a mapping"),
    ("input: [constant: 1]", 1, 1, "did you mean 'inputs'"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), WRONG, ids=[case[3][:30] for case in WRONG])
def test_what_is_wrong_is_said_with_its_place(write, text, line, column, message):
    with pytest.raises(FileFormatError, match=re.escape(message)) as caught:
        write(text)
    assert f"ranker.yaml, line {line}, column {column}: " in str(caught.value)


def test_an_empty_file_and_one_that_is_not_text(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"")
    with pytest.raises(FileFormatError, match=r"a\.yaml is empty"):
        MadeRanker.from_yaml(tmp_path / "a.yaml")
    (tmp_path / "a.yaml").write_bytes(b"inputs: \xff")
    with pytest.raises(FileFormatError, match="not UTF-8 text: byte 8 is 0xff"):
        MadeRanker.from_yaml(tmp_path / "a.yaml")


def test_aliases_do_not_make_a_short_file_large(write):
    laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(20)
    )
    with pytest.raises(FileFormatError, match="anchors and aliases"):
        write(laughs)
