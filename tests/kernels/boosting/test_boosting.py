"""Every RankBoost backend and weak learner against the float64 reference, round by round."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from unittest.mock import Mock

import numpy as np
import pytest
from tests.kernels.boosting.boosting_inputs import PROBLEMS, Problem, make_dataset
from tests.tolerances import TOLERANCES

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DeviceError
from rankwell.kernels.boosting.cpu.booster import LevelBooster
from rankwell.kernels.boosting.cpu.documents import DocumentWeights, initial_weights, replay_round
from rankwell.kernels.boosting.cpu.pairs import PairBooster, list_pairs
from rankwell.kernels.boosting.precision import LARGEST_R, PI_UNIT, tolerance, weight_factors
from rankwell.kernels.boosting.reference import boost_reference, document_potentials
from rankwell.kernels.device_report import report_device

N_ROUNDS = 70  # past two choices of new exponents


def level_booster(problem, weights=None, **options):
    weights = weights or initial_weights(problem.queries)
    return LevelBooster(problem.interleaved, problem.n_features, problem.n_bins, problem.queries, weights, **options)


def pair_booster(problem, weak_learner, **options):
    pairs = list_pairs(problem.queries)
    return PairBooster(problem.interleaved, problem.n_features, problem.n_bins, pairs, weak_learner, **options)


def opencl_booster(problem, weights=None, **options):
    from rankwell.kernels.boosting.opencl.booster import OpenClBooster

    weights = weights or initial_weights(problem.queries)
    return OpenClBooster(problem.by_feature, problem.n_features, problem.n_bins, problem.queries, weights, **options)


def placed_opencl_booster(problem, weights=None, *, columns=None, per_array=None, **options):
    """With memory for some feature columns, and arrays that have at most `per_array` of them."""
    stride = problem.by_feature.shape[1]
    if columns is not None:
        options["memory"] = columns * stride
    with pytest.MonkeyPatch.context() as patch:
        if per_array is not None:
            report = replace(report_device("opencl"), largest_buffer=per_array * stride)
            patch.setattr("rankwell.kernels.boosting.opencl.booster.report_device", lambda kind: report)
        booster = opencl_booster(problem, weights, **options)
    several = problem.n_features > (per_array or problem.n_features)
    assert booster._bins.streams == (columns is not None and problem.n_features + several > columns)
    assert booster._bins.streams or len(booster.placement.resident) > several
    return booster


def cuda_booster(problem, weights=None, **options):
    from rankwell.kernels.boosting.cuda.booster import CudaBooster

    weights = weights or initial_weights(problem.queries)
    return CudaBooster(problem.by_feature, problem.n_features, problem.n_bins, problem.queries, weights, **options)


def eight_lane_booster(problem, weights=None, **options):
    """As for very many queries, where eight lanes of a warp work on each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankwell.kernels.boosting.cuda.booster._lanes_per_query", lambda queries: 8)
        return cuda_booster(problem, weights, **options)


def streamed_booster(problem, weights=None, **options):
    booster = cuda_booster(problem, weights, memory=4 * problem.by_feature.shape[1], **options)
    assert booster.streams or problem.n_features <= 4
    return booster


def marked(make, name, device):
    report = report_device(device)
    marks = [pytest.mark.gpu] if device == "cuda" else []
    marks.append(pytest.mark.skipif(not report.usable, reason=report.description))
    return pytest.param(make, id=name, marks=marks)


# Where the bins are: none of them stays on the device, some do in one or several arrays, all do in several.
OPENCL_PLACEMENTS = {
    "none stays": {"columns": 3},
    "some stay": {"columns": 5},
    "some stay in several arrays": {"columns": 6, "per_array": 2},
    "all stay in several arrays": {"per_array": 2},
}
OPENCL_PLACED = [
    marked(partial(placed_opencl_booster, documents_on_host=on_host, **placement), f"opencl, {name}{where}", "opencl")
    for name, placement in OPENCL_PLACEMENTS.items()
    for on_host, where in ((False, ""), (True, ", without doubles"))
]
# Those that compute in factorised form have the same bits as the CPU's.
SAME_BITS = [
    pytest.param(partial(level_booster, n_jobs=1), id="one thread"),
    pytest.param(partial(level_booster, naive=True), id="m3"),
    pytest.param(partial(level_booster, bounded=True), id="by bounds"),
    marked(opencl_booster, "opencl", "opencl"),
    marked(partial(opencl_booster, documents_on_host=True), "opencl without doubles", "opencl"),
    *OPENCL_PLACED,
    marked(cuda_booster, "cuda", "cuda"),
    marked(eight_lane_booster, "cuda, eight lanes", "cuda"),
    marked(streamed_booster, "cuda, streamed", "cuda"),
]
PAIRWISE = [
    pytest.param(partial(pair_booster, weak_learner=kind), id=f"pairs, {kind}")
    for kind in ("m2", "m2.2dint", "m3", "m3.int")
]


@pytest.fixture(scope="module")
def expected():
    """The reference's rounds, worked out once a problem."""
    known = {}

    def of(name):
        if name not in known:
            problem = PROBLEMS[name]
            known[name] = boost_reference(problem.rows, problem.n_bins, *problem.pairs(), N_ROUNDS)
        return known[name]

    return of


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("make", [pytest.param(level_booster, id="m3.int"), *PAIRWISE])
def test_rounds_are_the_references(make, name, expected):
    problem = PROBLEMS[name]
    rounds = make(problem).boost(N_ROUNDS)
    feature, threshold, r, loss = zip(*expected(name), strict=True)
    # The reference sums in float64: rounding π may leave an r by the tolerance, and so the last round may be missing
    # where training ends by itself.
    n = min(len(rounds), len(feature))
    assert abs(len(rounds) - len(feature)) <= 1
    np.testing.assert_array_equal(rounds.feature[:n], feature[:n])
    np.testing.assert_array_equal(rounds.bin[:n], threshold[:n])
    np.testing.assert_allclose(rounds.r[:n] * PI_UNIT, r[:n], atol=tolerance(problem.dataset.n_docs) * PI_UNIT)
    np.testing.assert_allclose(rounds.loss[:n], loss[:n], **TOLERANCES["cpu"]["boosting loss"])


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("make", SAME_BITS)
def test_same_bits_as_the_cpu(make, name):
    problem = PROBLEMS[name]
    ours, others = level_booster(problem).boost(N_ROUNDS), make(problem).boost(N_ROUNDS)
    for field in ("feature", "bin", "r", "loss"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(others, field))
    assert ours.finished == others.finished


@pytest.mark.parametrize("make", [pytest.param(level_booster, id="m3.int"), PAIRWISE[-1]])
def test_rounds_at_a_learning_rate_are_the_references(make):
    problem = PROBLEMS["five levels"]
    rounds = make(problem, n_halvings=2).boost(N_ROUNDS)
    expected = boost_reference(problem.rows, problem.n_bins, *problem.pairs(), N_ROUNDS, learning_rate=0.25)
    feature, threshold, r, loss = zip(*expected, strict=True)
    np.testing.assert_array_equal(rounds.feature, feature)
    np.testing.assert_array_equal(rounds.bin, threshold)
    np.testing.assert_allclose(rounds.r * PI_UNIT, r, atol=tolerance(problem.dataset.n_docs) * PI_UNIT)
    np.testing.assert_allclose(rounds.loss, loss, **TOLERANCES["cpu"]["boosting loss"])


@pytest.mark.parametrize("make", SAME_BITS)
@pytest.mark.parametrize("n_halvings", [1, 3, 10])
def test_same_bits_as_the_cpu_at_a_learning_rate(make, n_halvings):
    problem = PROBLEMS["five levels"]
    ours = level_booster(problem, n_halvings=n_halvings).boost(N_ROUNDS)
    others = make(problem, n_halvings=n_halvings).boost(N_ROUNDS)
    for field in ("feature", "bin", "r", "loss"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(others, field))


@pytest.mark.parametrize("make", [pytest.param(level_booster, id="m3.int"), *SAME_BITS])
def test_batches_do_not_matter(make):
    problem = PROBLEMS["five levels"]
    whole = make(problem).boost(50)
    booster = make(problem)
    parts = [booster.boost(n) for n in (1, 16, 17, 16)]
    for field in ("feature", "bin", "r", "loss"):
        np.testing.assert_array_equal(getattr(whole, field), np.concatenate([getattr(part, field) for part in parts]))


@pytest.mark.parametrize("make", SAME_BITS)
@pytest.mark.parametrize(("n_docs", "n_features"), [(511, 5), (512, 6), (513, 7), (4097, 23)])
def test_same_bits_around_block_edges(make, n_docs, n_features):
    sizes = [n_docs - 100, 0, 60, 1, 39]
    problem = Problem(make_dataset(n_docs, sizes, n_features, 4), n_bins=256)
    ours, others = level_booster(problem).boost(40), make(problem).boost(40)
    np.testing.assert_array_equal(ours.r, others.r)
    np.testing.assert_array_equal(ours.loss, others.loss)


@pytest.mark.parametrize("make", OPENCL_PLACED)
def test_same_bits_with_one_pair(make):
    """And a query of one document, which nothing is learned from."""
    base = make_dataset(2, [1, 2], 9, 2)
    problem = Problem(RankingDataset(base.features, [1, 0, 1], group=base.query_sizes))
    assert problem.queries.n_docs == 2
    ours, others = level_booster(problem).boost(5), make(problem).boost(5)
    assert len(ours) > 0
    for field in ("feature", "bin", "r", "loss"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(others, field))


@pytest.mark.skipif(not report_device("opencl").usable, reason=report_device("opencl").description)
@pytest.mark.parametrize("documents_on_host", [False, True])
@pytest.mark.parametrize(
    ("n_docs", "n_features", "lengths"),
    [(63, 12, []), (64, 13, [3, 3, 2]), (65, 14, [3, 3, 3]), (1023, 15, [3, 3, 3, 1]), (1025, 8, [])],
)
def test_opencl_has_the_same_bits_around_edges_of_blocks(n_docs, n_features, lengths, documents_on_host, monkeypatch):
    """Twelve columns of memory are two blocks of three, the chosen column, and five that stay."""
    monkeypatch.setattr("rankwell.kernels.boosting.opencl.booster._DOCS_PER_PART", 64)
    problem = Problem(make_dataset(n_docs, [n_docs - 20, 0, 19, 1], n_features, 3))
    booster = placed_opencl_booster(problem, columns=12, documents_on_host=documents_on_host)
    assert list(map(len, booster.placement.streamed)) == lengths
    assert booster.placement.n_resident == (5 if lengths else n_features)
    ours, others = level_booster(problem).boost(40), booster.boost(40)
    assert not lengths or documents_on_host or set(others.feature) - set(range(5))
    for field in ("feature", "bin", "r", "loss"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(others, field))


@pytest.mark.skipif(not report_device("opencl").usable, reason=report_device("opencl").description)
@pytest.mark.parametrize("documents_on_host", [False, True])
def test_opencl_reads_a_block_after_it_came_and_before_the_next_comes(documents_on_host):
    """Columns long enough that transfers and kernels really run at the same time, of features that are alike good."""
    base = make_dataset(10, [100] * 1000, 25, 3)
    problem = Problem(RankingDataset(base.features[:, 1:], base.labels, group=base.query_sizes), n_bins=256)
    whole = opencl_booster(problem).boost(20)
    booster = placed_opencl_booster(problem, columns=3, documents_on_host=documents_on_host)
    assert len(booster.placement.streamed) == 24
    np.testing.assert_array_equal(booster.boost(20).r, whole.r)


@pytest.mark.skipif(not report_device("opencl").usable, reason=report_device("opencl").description)
@pytest.mark.parametrize(("columns", "copies"), [(None, 0), (5, 1)])
def test_opencl_waits_in_a_round_only_where_bins_are_streamed(columns, copies, monkeypatch):
    problem = PROBLEMS["five levels"]
    booster = placed_opencl_booster(problem, columns=columns, per_array=2)
    counted = []
    copy = Mock(wraps=booster._copy)
    monkeypatch.setattr(booster, "_copy", copy)
    for n_rounds in (1, 21):
        copy.reset_mock()
        assert len(booster.boost(n_rounds)) == n_rounds
        counted.append(copy.call_count)
    assert counted[1] - counted[0] == 20 * copies


@pytest.mark.parametrize("make", SAME_BITS)
def test_resumed_state_has_the_same_bits(make):
    """Rounds replayed on the host and gone on from elsewhere: the same as without a break."""
    problem = PROBLEMS["five levels"]
    whole = level_booster(problem).boost(60)
    weights = initial_weights(problem.queries)
    for t in range(40):
        above = problem.rows[problem.queries.rows, whole.feature[t]] > whole.bin[t]
        replay_round(problem.queries, weights, above, int(whole.r[t]), 0)
    np.testing.assert_array_equal(make(problem, weights).boost(20).r, whole.r[40:])


@pytest.mark.gpu
def test_a_device_without_room_is_an_error_that_says_how_much():
    pytest.importorskip("cupy", reason="there is no CuPy, so no CUDA device to try")
    problem = PROBLEMS["five levels"]
    with pytest.raises(DeviceError, match=f"three feature columns take {3 * problem.by_feature.shape[1]} bytes, 10"):
        cuda_booster(problem, memory=10)


@pytest.mark.skipif(not report_device("opencl").usable, reason=report_device("opencl").description)
def test_an_opencl_device_without_room_is_an_error_that_says_how_much():
    problem = PROBLEMS["five levels"]
    with pytest.raises(DeviceError, match=f"three feature columns take {3 * problem.by_feature.shape[1]} bytes, 10"):
        opencl_booster(problem, memory=10)


def test_potentials_are_the_references():
    for problem in PROBLEMS.values():
        lower, higher, weight = problem.pairs()
        exact = document_potentials(weight / weight.sum(), lower, higher, problem.dataset.n_docs)
        pi = DocumentWeights(problem.queries, initial_weights(problem.queries)).potentials()
        rows = problem.queries.rows
        query = problem.dataset.query_of_rows()[rows]
        longest = np.bincount(query).max()
        assert not np.delete(exact, rows).any()
        assert np.abs(pi * PI_UNIT - exact[rows]).max() <= (longest / 2 + 1) * PI_UNIT
        assert (np.bincount(query, pi) == 0).all()


def test_no_sum_of_potentials_can_overflow():
    """All weight on one pair is the worst case: π is ±1, 2^30 units, and an int32 holds twice that."""
    queries = Problem(RankingDataset(np.array([[0.0], [1.0]]), [0, 1])).queries
    pi = DocumentWeights(queries, initial_weights(queries)).potentials()
    assert pi.tolist() == [-(2**30), 2**30]


def test_weight_factors_are_the_exponentials_of_alpha():
    for r in (1, -1, 2**29, -(2**29), LARGEST_R, -LARGEST_R):
        for n_halvings in (0, 1, 5):
            up, down = weight_factors(r, n_halvings)
            alpha = np.arctanh(r * PI_UNIT) / 2**n_halvings
            assert up == pytest.approx(np.exp(alpha), rel=1e-9)
            assert down == pytest.approx(np.exp(-alpha), rel=1e-9)
    assert max(weight_factors(LARGEST_R, 0)) < 2**10.51


def contested_dataset():
    """Separable, but by no weak ranker alone: H grows for ever, over two and over three levels.

    In query 0 only feature 0 tells the better document; in query 1 feature 1 does and feature 0 is wrong; query 2 wants
    feature 2 for its lower levels and feature 0 for its upper ones.
    """
    X = [[1, 0, 0], [0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1], [1, 0, 1]]
    y = [1, 0, 1, 0, 0, 1, 2]
    return RankingDataset(np.array(X, dtype=np.float32), y, group=[2, 2, 3])


def test_two_hundred_thousand_rounds_do_not_overflow():
    problem = Problem(contested_dataset(), n_bins=4)
    booster = level_booster(problem, n_jobs=1)
    rounds = booster.boost(200_000)
    assert len(rounds) == 200_000
    assert np.isfinite(rounds.loss).all()
    assert rounds.loss[0] < 1.0
    alpha = np.arctanh(rounds.r * PI_UNIT)
    scores = np.zeros(7)
    for f in range(3):
        for b in range(3):
            scores += alpha[(rounds.feature == f) & (rounds.bin == b)].sum() * (problem.rows[:, f] > b)
    lower, higher, weight = problem.pairs()
    margins = scores[higher] - scores[lower]
    assert margins.min() > 1000  # e^1000 is beyond a float64
    # The weights are still right: the reference's π from these scores is the same.
    distribution = weight * np.exp(margins.min() - margins)
    pi = document_potentials(distribution / distribution.sum(), lower, higher, 7)
    np.testing.assert_allclose(booster.documents.potentials() * PI_UNIT, pi[problem.queries.rows], atol=1e-5)


@pytest.mark.parametrize("options", [{"n_jobs": 1}, {"naive": True}, {"bounded": True}])
def test_weights_by_rank_are_the_same_however_they_are_searched(options):
    problem = PROBLEMS["five levels"]
    plain = level_booster(problem, initial_weights(problem.queries, by_rank=True)).boost(40)
    booster = level_booster(problem, initial_weights(problem.queries, by_rank=True), **options)
    parts = [booster.boost(n) for n in (3, 4, 33)]
    for field in ("feature", "bin", "r", "loss"):
        np.testing.assert_array_equal(getattr(plain, field), np.concatenate([getattr(part, field) for part in parts]))
    assert plain.r.tolist() != level_booster(problem).boost(40).r.tolist()
