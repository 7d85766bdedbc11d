"""The scorer against a literal reading of the description, value by value."""

import math

import numpy as np
import pytest
from scipy import sparse
from tests.scoring.random_rankers import forest, random_ranker, random_rows, random_trees

from rankwell import ParameterError, RankingDataset
from rankwell.kernels.scoring.cpu.inputs import linear_inputs
from rankwell.scoring import scorer as scorer_module
from rankwell.scoring.description import BucketInputs, Dense, LinearInputs, Mean, RankerDescription, Sum
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.reference_scores import reference_scores
from rankwell.scoring.scorer import RankerScorer, score_description

NAN = np.nan


def describe(n_features, inputs, layers):
    names = tuple(f"f{i}" for i in range(n_features))
    return RankerDescription(names, Normaliser("none"), tuple(inputs), tuple(layers))


def score(description, rows):
    return score_description(description, RankingDataset(np.array(rows, dtype=np.float32)))


def test_linear_inputs_scale_shift_and_replace_missing_values():
    inputs = LinearInputs(np.array([1]), np.array([2.0]), np.array([0.5]), np.array([-9.0]))
    np.testing.assert_array_equal(score(describe(2, [inputs], [Sum()]), [[0, 3], [0, NAN]]), [2 * 3 + 0.5, -9])


def test_bucket_inputs_step_above_each_edge():
    inputs = BucketInputs(
        feature=np.array([0]),
        edge_ptr=np.array([0, 2]),
        edges=np.array([1.0, 5.0], dtype=np.float32),
        values=np.array([10.0, 20.0, 30.0]),
        missing=np.array([-1.0]),
    )
    rows = [[0.5], [1.0], [1.5], [5.0], [5.5], [NAN]]
    np.testing.assert_array_equal(score(describe(1, [inputs], [Sum()]), rows), [10, 10, 20, 20, 30, -1])


def test_several_input_groups_side_by_side():
    steps = BucketInputs(
        np.array([1, 0]),
        np.array([0, 1, 1]),
        np.array([0.0], dtype=np.float32),
        np.array([1.0, 2.0, 100.0]),
        np.array([0.0, 0.0]),
    )
    description = describe(2, [LinearInputs.identity(2), steps], [Sum()])
    # row (3, 4): 3 + 4 from the linear inputs, 2 since 4 > 0, and 100 from the input without edges
    np.testing.assert_array_equal(score(description, [[3, 4]]), [3 + 4 + 2 + 100])


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("identity", lambda x: x),
        ("relu", lambda x: max(x, 0.0)),
        ("tanh", math.tanh),
        ("sigmoid", lambda x: 1 / (1 + math.exp(-x))),
    ],
)
def test_dense_layers(activation, function):
    weights = np.array([[1.0, -2.0], [0.5, 3.0]])
    bias = np.array([0.25, -1.0])
    description = describe(
        2, [LinearInputs.identity(2)], [Dense(weights, bias, activation), Dense(np.array([[1.0, 10.0]]), np.zeros(1))]
    )
    x = [1.5, 0.5]
    first = [function(1.0 * x[0] - 2.0 * x[1] + 0.25), function(0.5 * x[0] + 3.0 * x[1] - 1.0)]
    assert score(description, [x])[0] == pytest.approx(first[0] + 10 * first[1], rel=1e-15)


def test_sigmoid_does_not_overflow():
    description = describe(1, [LinearInputs.identity(1)], [Dense(np.ones((1, 1)), np.zeros(1), "sigmoid")])
    np.testing.assert_array_equal(score(description, [[-1e6], [1e6]]), [0, 1])


@pytest.mark.parametrize("n_docs", [0, 1, 4095, 4096, 4097])
def test_a_document_scores_the_same_alone_and_in_any_batch(n_docs):
    rng = np.random.default_rng(n_docs)
    rows = rng.normal(size=(n_docs, 19)).astype(np.float32)
    layers = [Dense(rng.normal(size=(5, 19)), rng.normal(size=5), "tanh"), Dense(rng.normal(size=(1, 5)), np.zeros(1))]
    description = describe(19, [LinearInputs.identity(19)], layers)
    scores = score(description, rows.reshape(n_docs, 19))
    assert scores.shape == (n_docs,)
    for row in range(0, n_docs, 1000):
        assert score(description, rows[row : row + 1])[0] == scores[row]
    one_thread = score_description(description, RankingDataset(rows), n_jobs=1)
    np.testing.assert_array_equal(one_thread, scores)


def test_sparse_rows_score_as_dense_ones():
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((50, 8)) < 0.7, 0, rng.normal(size=(50, 8))).astype(np.float32)
    description = describe(8, [LinearInputs.identity(8)], [Dense(rng.normal(size=(1, 8)), np.zeros(1))])
    from_sparse = score_description(description, RankingDataset(sparse.csr_matrix(rows)))
    np.testing.assert_array_equal(from_sparse, score(description, rows))


def many_rows():
    return random_rows(np.random.default_rng(5), 1000, 7)


@pytest.mark.parametrize("n_jobs", [1, 2, None])
def test_scores_do_not_depend_on_how_the_work_is_shared_out(n_jobs, monkeypatch):
    rng, rows = np.random.default_rng(4), many_rows()
    trees = random_trees(rng, 50, 7)
    rankers = [random_ranker(rng), forest(trees, 7, bias=0.5), describe(7, [trees], [Mean()])]
    at_once = [RankerScorer(ranker).score(rows) for ranker in rankers]
    monkeypatch.setattr(scorer_module, "_PART_NANOSECONDS", 1)  # a block of 64 documents is a part
    for ranker, expected in zip(rankers, at_once, strict=True):
        np.testing.assert_array_equal(RankerScorer(ranker).score(rows, n_jobs=n_jobs), expected)


def test_rows_may_lie_in_memory_in_any_way():
    scorer, rows = RankerScorer(random_ranker(np.random.default_rng(4))), many_rows()
    expected = scorer.score(rows)
    read_only = rows.copy()
    read_only.flags.writeable = False
    every_second = np.repeat(rows, 2, axis=0)[::2]
    unaligned = np.frombuffer(b"." + rows.tobytes(), np.float32, offset=1).reshape(rows.shape)
    for other in (read_only, every_second, unaligned, np.asfortranarray(rows), rows.astype(np.float64)):
        np.testing.assert_array_equal(scorer.score(other), expected)


def test_rankers_from_files_and_from_training_use_the_same_kernels():
    inputs = LinearInputs.identity(7)
    read_only = [getattr(inputs, name).copy() for name in ("feature", "scale", "offset", "missing")]
    for array in read_only:
        array.flags.writeable = False
    rows = many_rows()
    RankerScorer(describe(7, [inputs], [Sum()])).score(rows)
    n_compiled = len(linear_inputs.signatures)
    RankerScorer(describe(7, [LinearInputs(*read_only)], [Sum()])).score(rows)
    assert len(linear_inputs.signatures) == n_compiled


def test_layers_may_follow_a_sum_of_trees():
    rows = many_rows()
    trees = random_trees(np.random.default_rng(4), 50, 7)
    layers = [Sum(0.5), Dense(np.array([[2.0], [-1.0]]), np.array([0.0, 1.0]), "sigmoid"), Sum()]
    description = describe(7, [trees], layers)
    scorer = RankerScorer(description)
    np.testing.assert_allclose(scorer.score(rows), reference_scores(description, rows), rtol=1e-13)
    for n_docs in (1, 12, 13, 65):
        np.testing.assert_array_equal(scorer.score(rows[:n_docs]), scorer.score(rows)[:n_docs])


@pytest.mark.parametrize("n_jobs", [0, -2])
def test_an_impossible_number_of_threads_is_refused(n_jobs):
    scorer = RankerScorer(describe(7, [LinearInputs.identity(7)], [Sum()]))
    with pytest.raises(ParameterError, match="n_jobs must be a number of threads"):
        scorer.score(many_rows()[:3], n_jobs=n_jobs)
