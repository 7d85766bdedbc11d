"""Plots of results: what they show is what the rows say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.report.drawing import Drawing
from benchmarks.report.figures.growth import finding_seconds, scoring_seconds
from benchmarks.report.figures.listnet import LISTNET_BITS, LISTNET_GRADIENTS, LISTNET_LENGTHS, LISTNET_LOSSES
from benchmarks.report.figures.paper_times import paper_times
from benchmarks.report.figures.quality import QUALITY
from benchmarks.report.figures.rankboost import RANKBOOST_GAMMA, RANKBOOST_ROUTINES, RANKBOOST_SURFACE
from benchmarks.report.figures.ranksvm import RANKSVM_CONVERGENCE, descents
from benchmarks.report.figures.training import TRAINING
from benchmarks.report.figures.web_search import SEARCH_DOCUMENTS, SEARCH_ENERGY, SEARCH_SHARES
from benchmarks.report.stored_results import StoredResults
from benchmarks.row import Row


def stored(name: str, machine: str, *rows: Row) -> StoredResults:
    return StoredResults([document(name, machine, rows)])


def document(name: str, machine: str, rows: Any, timings: Any = ()) -> dict[str, Any]:
    rows = [row.as_json() for row in rows]
    return {"name": name, "machine": {"short_name": machine}, "rows": rows, "timings": list(timings)}


def lines_of(drawing: Drawing, results: StoredResults) -> list[list[tuple[float, float]]]:
    """The points of every line of a plot, panel by panel."""
    figure = drawing.draw(results)
    return [[tuple(point) for point in line.get_xydata()] for panel in figure.axes for line in panel.get_lines()]


def test_times_that_papers_print():
    row = Row("training", 1.0, "s", paper="DCM 2,791 s, OST 2.5 s, GPU 276 ms (raw features)")
    assert paper_times(row) == {"DCM": 2791.0, "OST": 2.5, "GPU": pytest.approx(0.276)}
    assert paper_times(Row("training", 1.0, "s")) == {}


def test_scoring_takes_the_best_of_each_library():
    results = StoredResults([document("evaluate_trees", "cpu2", (), [
        {"name": "rankwell, 1 documents (200 calls)", "minimum_s": 0.2},
        {"name": "LightGBM, form 0, 1000 documents", "minimum_s": 0.3},
        {"name": "LightGBM, form 1, 1000 documents", "minimum_s": 0.1},
    ])])  # fmt: skip
    assert scoring_seconds(results) == {"rankwell": {1: 0.001}, "LightGBM": {1000: 0.1}}


def test_finding_is_by_words_of_a_query():
    times = [
        {"name": "varied, rankwell, top 10, 3 words", "minimum_s": 0.05},
        {"name": "varied, rankwell, no pruning, top 10, 3 words", "minimum_s": 0.5},
    ]
    assert finding_seconds(StoredResults([document("select_documents", "cpu2", (), times)])) == {"rankwell": {3: 5e-4}}


def test_convergence_is_read_from_the_steps_of_every_machine():
    case = "`mslr10k` shape on {}: to a relative gradient of 1e-5"
    old = "eta after each outer iteration: 2e-03 (0.050 s), 3e-05 (0.083 s)"
    new = "direct; eta after each outer iteration: 2.1e-03 (0.40000 s), 3.2e-05 (0.70000 s)"
    with_device = document("ranksvm_convergence", "cpu16", [Row(case.format("cuda"), 0.083, "s", note=old)])
    ways = [Row(case.format(way), 0.7, "s", note=new) for way in ("cpu, DCM", "cpu")]
    without_steps = Row(case.format("cpu, OST"), 0.7, "s", note="5 outer iterations, eta 2.0e-13")
    two_cores = document("ranksvm_convergence", "cpu2", [*ways, without_steps])
    found = descents(StoredResults([with_device, two_cores]))
    steps = ([0.4, 0.7], [2.1e-3, 3.2e-5])
    device = ([0.05, 0.083], [2e-3, 3e-5])
    assert found == {"mslr10k": {"H200": device, "2 cores, DCM": steps, "2 cores, chosen way": steps}}


def test_convergence_is_beside_the_seconds_that_the_paper_prints():
    note = "eta after each outer iteration: 2e-03 (0.050 s), 0e+00 (0.083 s)"
    row = Row("`mslr10k` shape on cuda: to a relative gradient of 1e-5", 0.083, "s", note=note)
    own, *printed = lines_of(RANKSVM_CONVERGENCE, stored("ranksvm_convergence", "cpu16", row))
    assert own == [(0.05, 2e-3), (0.083, pytest.approx(1e-16))]
    assert [line[0][0] for line in printed] == [2791.0, 2481.0, 276.0]


def test_quality_shows_differences_and_their_intervals():
    row = Row("cisi, listnet, ndcg@10", 0.5, "", better="higher", rival="BM25", rival_value=0.4, interval=(0.05, 0.15))
    lines = lines_of(QUALITY, stored("untuned_rankers", "cpu2", row))
    assert [(0.05, 0), (0.15, 0)] in lines
    assert [(pytest.approx(0.1), 0)] in lines


def test_routines_and_threads_are_beside_those_of_the_paper():
    rows = [Row("routine: π", 0.5, "ms"), Row("threads: 1", 8.0, "ms"), Row("threads: 2", 4.5, "ms")]
    results = stored("rankboost_routines", "cpu2", *rows)
    ours, printed = lines_of(RANKBOOST_ROUTINES, results)
    assert ours == [(1, 0.008), (2, 0.0045)]
    assert printed == [(1, 53.136), (4, pytest.approx(0.78 * 3600 / 300)), (52, 3.075)]
    bars = RANKBOOST_ROUTINES.draw(results).axes[0].patches
    assert [bar.get_width() for bar in bars] == [0.0005, 0.110, 0.110, 0.176, 0.137]


def test_the_surface_shows_predicted_against_measured():
    rows = [Row("round, 6,000 documents, 160 features", 0.5, "ms", note="predicted 0.6 ms")]
    results = stored("rankboost_surface", "cpu2", *rows, Row("median error of the prediction", 20.0, "%"))
    assert lines_of(RANKBOOST_SURFACE, results)[0] == [(0.5, 0.6)]


def test_the_surface_shows_gains_beside_those_of_the_papers():
    case = "round, 6,000 documents, 160 features"
    cores = document("rankboost_surface", "cpu2", [Row(case, 0.5, "ms", note="predicted 0.6 ms")])
    device = document("rankboost_surface_cuda", "h200", [Row(case, 0.1, "ms", note="predicted 0.1 ms")])
    gains = RANKBOOST_SURFACE.draw(StoredResults([cores, device])).axes[1].get_lines()
    found = {line.get_label(): tuple(line.get_xydata()[0]) for line in gains}
    assert found["H200 over 2 cores"] == (960_000, 5.0)
    assert found["FAR1 over software (paper)"] == (1_196_711 * 646, 17.28)
    assert found["ATI over CPU (paper)"] == (173_354 * 2_576, 9.2)


def test_gamma_against_time():
    rows = [Row("γ = 0.30", 10.0, "ms"), Row("γ = 1.00", 0.3, "ms")]
    assert lines_of(RANKBOOST_GAMMA, stored("rankboost_gamma_cuda", "h200", *rows)) == [[(0.3, 10.0), (1.0, 0.3)]]


def test_gamma_has_opencl_beside_cuda():
    cuda = document("rankboost_gamma_cuda", "h200", [Row("γ = 0.30", 10.0, "ms"), Row("γ = 1.00", 0.3, "ms")])
    shares = [Row("γ = 0.30, a round with OpenCL", 11.0, "ms"), Row("γ = 1.00, a round with OpenCL", 1.4, "ms")]
    opencl = document("rankboost_opencl_cuda", "h200", [Row("far, a whole round with OpenCL", 1.4, "ms"), *shares])
    lines = RANKBOOST_GAMMA.draw(StoredResults([cuda, opencl])).axes[0].get_lines()
    drawn = {line.get_label(): [tuple(point) for point in line.get_xydata()] for line in lines}
    assert drawn == {"CUDA": [(0.3, 10.0), (1.0, 0.3)], "OpenCL": [(0.3, 11.0), (1.0, 1.4)]}


def test_lengths_and_gradients_by_k():
    lengths = [Row(f"Top-{k}, lists of {n:,} documents", k * n, "ms") for k in (1, 2, 3) for n in (10, 3000)]
    drawn = lines_of(LISTNET_LENGTHS, stored("listnet_lengths", "cpu2", *lengths))
    assert drawn == [[(10, 10.0 * k), (3000, 3000.0 * k)] for k in (1, 2, 3)]
    gradients = [Row(f"Top-{k}, epoch {epoch}", 1.0 / epoch, "") for k in (1, 2, 3) for epoch in (1, 2)]
    drawn = lines_of(LISTNET_GRADIENTS, stored("listnet_gradients", "cpu2", *gradients))
    assert drawn == [[(1, 1.0), (2, 0.5)]] * 3


def test_losses_have_a_line_each_from_1_to_10():
    losses = ("ListNet Top-1", "ListNet Top-2", "ListNet Top-3", "RankNet", "LambdaRank", "ListMLE")
    rows = [
        Row(f"{loss}, {collection}, test ndcg@{cut} (letor4)", cut / 10, "")
        for loss in losses
        for collection in ("MQ2007", "MQ2008")
        for cut in range(1, 11)
    ]
    drawn = lines_of(LISTNET_LOSSES, stored("listnet_quality", "cpu2", *rows))
    assert drawn == [[(cut, cut / 10) for cut in range(1, 11)]] * 12


def test_training_has_a_line_for_each_ranker_and_for_the_rival():
    note = "{:,} documents, 136 features"
    rows = [
        Row(
            f"mslr10k x {share:g}, lambdamart", share, "s", rival="LightGBM", rival_value=2 * share, note=note.format(n)
        )
        for share, n in ((0.1, 72_000), (1.0, 723_000))
    ]
    drawn = lines_of(TRAINING, stored("training_seconds", "cpu2", *rows, Row("MQ2007 Fold1, lambdamart", 3.0, "s")))
    assert drawn == [[(72_000, 0.1), (723_000, 1.0)], [(72_000, 0.2), (723_000, 2.0)]]


def test_documents_mark_where_the_device_wins_here_and_in_the_paper():
    times = {"device": (1.0, 1.0), "one thread": (0.1, 9.0), "all cores": (0.2, 3.0)}
    rows = [
        Row(f"{ranker}, {n:,} documents, {where}", of_size[place], "ms")
        for ranker in ("R-S-BLG", "R-L-D")
        for place, n in enumerate((1, 10_000))
        for where, of_size in times.items()
    ]
    drawn = lines_of(SEARCH_DOCUMENTS, stored("evaluate_rankers_cuda", "h200", *rows))
    assert drawn[0] == [(1, 1.0), (10_000, 1.0)]
    assert [line[0][0] for line in drawn[3:5]] == [10_000, 1_000]
    assert drawn[9][0][0] == 50
    assert drawn[10] == [(500, 70.61)]


def test_shares_add_up_to_one_copies_first():
    stages = {"copy to the device": 1.0, "transforms": 2.0, "evaluation": 0.5, "copy back": 0.5}
    rows = [Row(f"R-S-BLG, 1,000 documents, {stage}", value, "ms") for stage, value in stages.items()]
    (panel,) = SEARCH_SHARES.draw(stored("scoring_shares_cuda", "h200", *rows)).axes
    assert [bar.get_width() for bar in panel.patches] == [0.25, 0.125, 0.5, 0.125]
    assert panel.get_yticklabels()[0].get_text() == "R-S-BLG, 1,000 documents"
    (copies,) = panel.collections
    assert copies.get_segments()[0].tolist() == [[0.68, -0.5], [0.68, 0.5]]


def test_energy_has_the_powers_of_the_paper():
    case = "ranking alone, batches of 1, 1,000 candidates a query: energy of a query, idle included"
    row = Row(case, 35.0, "mJ", note="idle subtracted 2.8 mJ; 131.5 W at 3,723 queries/s, idle 121.0 W")
    energy, power = SEARCH_ENERGY.draw(stored("serve_batches_cuda", "h200", row)).axes
    assert [line.get_ydata().tolist() for line in energy.get_lines()] == [[35.0], [2.8]]
    assert [bar.get_width() for bar in power.patches] == [19.35, 1.44, 67.0, 60.0, 130.0, 150.0, 121.0, 131.5]


def test_bits_have_those_that_the_thesis_needs():
    rows = [Row("batch, 8 bits: training loss above float32's", 0.5, "%", note="10.0% of float32's fall in loss")]
    rows.append(Row("batch, 8 bits: NDCG@10 lost", 2.0, "%"))
    lines = lines_of(LISTNET_BITS, stored("listnet_fixed_point", "cpu2", *rows))
    assert [(8, 10.0)] in lines
    assert [(8, 2.0)] in lines
    assert [(8, 4.0)] in lines
    assert [(8, pytest.approx(6.01))] in lines


def test_a_plot_is_the_same_each_time(tmp_path: Path):
    results = stored("rankboost_gamma_cuda", "h200", Row("γ = 0.30", 10.0, "ms"))
    first = RANKBOOST_GAMMA.write(results, tmp_path).read_bytes()
    assert RANKBOOST_GAMMA.write(results, tmp_path).read_bytes() == first
