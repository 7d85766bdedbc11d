"""The model of a round: its equations, the fit, and what it says about more workers."""

from __future__ import annotations

import pytest

from rankwell import make_ranking, write
from rankwell.errors import RankwellError
from rankwell.planning.data_sizes import count_pairs, look_at
from rankwell.planning.measurement import (
    MeasuredRound,
    fit_coefficients,
    measure_round,
    measure_share,
)
from rankwell.planning.memory_model import worker_bytes
from rankwell.planning.plan import make_plan
from rankwell.planning.references import H200, NETWORKS
from rankwell.planning.round_model import Coefficients, Network, RoundModel, TrainingSizes, break_even
from rankwell.planning.worker_measurement import measure_exchange, measure_workers, together

MODEL = RoundModel("cpu", {1: Coefficients(4e-9, 2e-10, 1e-7, 1e-5), 2: Coefficients(2e-9, 1e-10, 1e-7, 2e-5)})
NETWORK = Network(1e9, 1e-4)
SIZES = TrainingSizes(1_000_000, 100)


def test_a_round_is_the_sum_of_its_parts() -> None:
    parts = MODEL.round_time(SIZES, threads=1).parts
    assert parts == pytest.approx(
        {"π and weights": 4e-3, "search": 2e-10 * 1e6 * 112, "features": 1e-5, "fixed": 1e-5}
    )  # 100 features are stored as 112
    assert MODEL.round_time(SIZES, threads=1).limit == "search"
    assert MODEL.round_time(SIZES).parts["search"] == pytest.approx(1e-10 * 1e6 * 112)


def test_few_values_are_searched_by_one_thread() -> None:
    assert MODEL.round_time(TrainingSizes(1000, 16)).parts["fixed"] == 1e-5


def test_bounds_shorten_the_search_only() -> None:
    halved = RoundModel("cpu", MODEL.coefficients, share=0.5)
    whole, half = MODEL.round_time(SIZES).parts, halved.round_time(SIZES).parts
    assert half["search"] == whole["search"] / 2
    assert {name: half[name] for name in half if name != "search"} == {
        name: whole[name] for name in whole if name != "search"
    }


def test_workers_with_documents_each_exchange_histograms() -> None:
    predicted = MODEL.distributed(SIZES, 4, NETWORK, division="documents", threads=1)
    alone = MODEL.round_time(SIZES, threads=1).parts
    assert predicted.parts["search"] == pytest.approx(alone["search"] / 4)
    assert predicted.parts["π and weights"] == pytest.approx(alone["π and weights"] / 4)
    assert predicted.parts["bandwidth"] == pytest.approx(2 * 1024 * 100 * 3 / 4 / 1e9)
    assert predicted.parts["latency"] == pytest.approx(6e-4)  # two for histograms, Z over three and back


def test_workers_with_features_each_receive_the_winners_bits() -> None:
    predicted = MODEL.distributed(SIZES, 4, NETWORK, division="features", threads=1)
    assert predicted.parts["search"] == pytest.approx(2e-10 * 1e6 * 32)  # 25 features, stored as 32
    assert predicted.parts["π and weights"] == pytest.approx(4e-3)
    assert predicted.parts["bandwidth"] == pytest.approx(3 * (1024 + 1e6 / 8) / 1e9)
    assert predicted.parts["latency"] == pytest.approx(2e-4)


def test_break_even_depends_on_the_network() -> None:
    even, best = break_even(MODEL, SIZES, NETWORK, threads=1)
    assert even == 2
    assert best > 8
    assert break_even(MODEL, TrainingSizes(1000, 16), NETWORK) == (None, 1)
    # Two workers would save 13 ms, and send 100 KB in four exchanges: 14 ms.
    assert break_even(MODEL, SIZES, Network(1e7, 1e-3), threads=1) == (None, 1)


def test_the_fit_finds_the_coefficients_of_times_that_follow_the_model() -> None:
    made = [
        MeasuredRound(docs, features, 1, MODEL.round_time(TrainingSizes(docs, features), threads=1).total)
        for docs, features in ((5_000, 32), (5_000, 320), (40_000, 96), (80_000, 32), (160_000, 256))
    ]
    found, true = fit_coefficients(made), MODEL.coefficients[1]
    assert vars(found) == pytest.approx(vars(true), rel=1e-6)


def test_no_coefficient_is_negative() -> None:
    noisy = [MeasuredRound(docs, 32, 1, 1e-3) for docs in (1000, 2000, 4000, 8000)]
    assert min(vars(fit_coefficients(noisy)).values()) >= 0.0


def test_a_measured_round_is_positive_and_larger_for_more_values() -> None:
    small, large = measure_round(2_000, 16, 1), measure_round(40_000, 64, 1)
    assert 0 < small.seconds < large.seconds


def test_bounds_leave_a_share() -> None:
    assert 0.0 < measure_share(make_ranking(n_docs=400, n_queries=20, n_features=8)) <= 1.0


def test_exchanges_between_workers_are_measured() -> None:
    network = measure_exchange()
    assert network.bandwidth > 1e6
    assert 0 < network.latency < 0.5


@pytest.mark.parametrize("division", ["documents", "features"])
def test_rounds_of_two_workers_are_measured(division) -> None:
    measured = measure_workers(2_000, 48, 2, division)
    assert measured.n_workers == 2
    assert measured.seconds > 0


def _die(exchange) -> None:
    raise SystemExit(1)


def test_a_worker_that_dies_is_an_error() -> None:
    with pytest.raises(RankwellError, match="a worker that was to be measured has died"):
        together(_die, 2)


def test_memory_is_less_on_disk_and_for_more_workers() -> None:
    one, four = worker_bytes(SIZES), worker_bytes(SIZES, 4)
    assert one["disk"] < one["memory"]
    assert four["memory"] < one["memory"]
    assert one["memory"] > 9 * 1e8  # features twice, and bins


@pytest.mark.parametrize("suffix", ["txt", "csv", "parquet", "feather"])
def test_sizes_of_a_small_file_are_exact(tmp_path, suffix) -> None:
    dataset = make_ranking(n_docs=300, n_queries=12, n_features=7)
    write(dataset, tmp_path / f"data.{suffix}")
    sample = look_at(tmp_path / f"data.{suffix}")
    assert sample.sizes == TrainingSizes(300, 7, 12, count_pairs(dataset))
    assert not sample.is_estimated


def test_sizes_of_a_long_file_are_estimated(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("rankwell.planning.data_sizes._SAMPLE_BYTES", 2**14)
    dataset = make_ranking(n_docs=3000, n_queries=60, n_features=9)
    write(dataset, tmp_path / "data.txt")
    sample = look_at(tmp_path / "data.txt")
    assert sample.is_estimated
    assert sample.sizes.n_docs == pytest.approx(3000, rel=0.1)
    assert sample.sizes.n_features == 9


def test_pairs_are_counted_by_levels() -> None:
    dataset = make_ranking(n_docs=60, n_queries=5, n_features=2)
    expected = sum(
        int((dataset.labels[rows][:, None] > dataset.labels[rows][None, :]).sum()) for rows in dataset.queries()
    )
    assert count_pairs(dataset) == expected


def test_a_plan_names_what_limits_each_run() -> None:
    plan = make_plan([MODEL, H200], SIZES, [1, 8], NETWORKS["10gbit"], 300)
    assert [(run.device, run.round.n_workers) for run in plan.runs] == [
        ("cpu", 1),
        ("cpu", 8),
        ("H200", 1),
        ("H200", 8),
    ]
    assert plan.to_json()["runs"][0]["limit"] == "search"
    assert plan.runs[2].round.total < plan.runs[0].round.total
    assert plan.runs[2].memory_on_disk is None
