"""The benchmark of batches on a GPU runs as a whole with the CPU in place of the GPU, and a meter that is constant."""

import json

import pytest
from benchmarks.catalogue import Question
from benchmarks.closed_load import closed_load
from benchmarks.harness import Benchmark
from benchmarks.power import sampled

from benchmarks import serve_batches_cuda
from rankwell.serving.batching import Batcher


def test_every_row_is_measured(tmp_path, capsys):
    bench = Benchmark(Question("serve_batches_cuda", "?"), quick=True, folder=tmp_path)
    serve_batches_cuda.measure(bench, "cpu", serve_batches_cuda.QUICK, lambda: 100.0)
    assert "failed" not in capsys.readouterr().err
    cases = [row.case for row in bench.rows]
    assert sum("batching on against off" in case for case in cases) == 3
    assert sum("p99 with batching" in case for case in cases) == 3
    energy = [row for row in bench.rows if "energy of a query" in row.case]
    assert len(energy) == len(serve_batches_cuda.QUICK.batches) + 1
    # All of the power is that of the idle meter.
    assert all(row.value > 0 and "idle subtracted 0.000 mJ; 100.0 W at" in row.note for row in energy)
    assert (tmp_path / "joules.png").stat().st_size > 0


def test_the_figure_is_drawn_from_results_too(tmp_path, monkeypatch):
    note = "idle subtracted 1.000 mJ; 200.5 W at 1,500 queries/s, idle 70.0 W"
    rows = [
        {"case": f"ranking alone, batches of {size}, 10 candidates a query: energy", "note": note} for size in (1, 8)
    ]
    (tmp_path / "results.json").write_text(json.dumps({"rows": rows}))
    monkeypatch.setattr("sys.argv", ["draw", str(tmp_path / "results.json")])
    serve_batches_cuda.main()
    assert (tmp_path / "results.joules.png").stat().st_size > 0


def test_power_is_the_mean_after_the_first_second():
    with sampled(lambda: 5.0) as taken:
        pass
    assert taken.mean_watts() == 5.0
    taken.samples = [(0.0, 50.0), (0.5, 60.0), (1.0, 100.0), (1.5, 200.0)]
    assert taken.mean_watts() == (100.0 + 200.0) / 2


def test_what_fails_in_a_closed_load_is_raised():
    def broken(requests):
        raise ValueError("broken")

    batcher = Batcher(broken)
    with pytest.raises(ValueError, match="broken"):
        closed_load(batcher, lambda: serve_batches_cuda.HitsRequest(None), n_clients=3, seconds=5.0)
    batcher.close()
