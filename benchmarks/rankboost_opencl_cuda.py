"""How fast is RankBoost's OpenCL on an NVIDIA GPU, beside CUDA on the same device?

A whole round at the sizes of the FPGA paper and of the CUDA paper, on the OpenCL platform that the driver brings. The
kernels are those for any OpenCL device: a plain histogram in local memory, no graph of launches. Then a round at the
FPGA paper's size if only the share γ of the bins stays on the device, and the rest passes through it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.rankboost_cases import queries_of, scaled_shape
from benchmarks.rankboost_cuda import make_booster, random_bins
from benchmarks.rankboost_gamma_cuda import MEMORY
from benchmarks.rankboost_gamma_cuda import ROUNDS as STREAMED_ROUNDS
from rankwell.kernels.boosting.contract import BoostedRounds, LevelledQueries
from rankwell.kernels.boosting.cpu.documents import initial_weights

ROUNDS = 32


def run(bench: Benchmark) -> None:
    from rankwell.kernels.device_report import report_device

    report = report_device("opencl")
    bench.check("an OpenCL device of NVIDIA", report.usable and "nvidia" in report.description.lower(), str(report))
    for name in ("far", "cuda2010"):
        shape = scaled_shape(name, docs=0.02 if bench.quick else 1.0)
        queries = queries_of(shape)
        bins = random_bins(shape, queries)
        host = bins.get()
        boosters = {"OpenCL": make_opencl_booster(host, queries), "CUDA": make_booster(bins, queries)}
        compare(bench, name, f"{name}, a whole round with OpenCL", boosters, ROUNDS)
        del boosters, bins
        if name == "far":
            record_shares(bench, host, queries)


def record_shares(bench: Benchmark, host: np.ndarray, queries: LevelledQueries) -> None:
    """A round for each share of the bins that stays on the device, with the same share on both sides."""
    for memory in MEMORY[:-1]:  # with the last two, all bins stay
        room = int(host.nbytes * memory)
        # A copy, because each CUDA booster pins its own.
        opencl, cuda = make_opencl_booster(host, queries, room), make_booster(host.copy(), queries, memory=room)
        share = f"γ = {opencl.placement.share:.2f}"
        bench.check(f"{share} with CUDA, too", len(cuda._bins) == opencl.placement.n_resident)
        boosters = {"OpenCL": opencl, "CUDA": cuda}
        compare(bench, share, f"{share}, a round with OpenCL", boosters, STREAMED_ROUNDS)


def make_opencl_booster(host: np.ndarray, queries: LevelledQueries, memory: int | None = None) -> Any:
    from rankwell.kernels.boosting.opencl.booster import OpenClBooster

    return OpenClBooster(host, len(host), 256, queries, initial_weights(queries), memory=memory)


def compare(bench: Benchmark, name: str, case: str, boosters: dict[str, Any], n_rounds: int) -> None:
    """Rounds of an OpenCL booster beside those of a CUDA one that has the same data."""
    first, second = (booster.boost(n_rounds) for booster in boosters.values())
    bench.check(f"{name}: the same weak rankers", same_rankers(first, second))
    times = {
        who: bench.time(f"{name}, {who}", lambda b=booster: b.boost(n_rounds), repeat=5).minimum / n_rounds
        for who, booster in boosters.items()
    }
    bench.record(
        case,
        value=times["OpenCL"] * 1e3,
        unit="ms",
        rival="the same with CUDA",
        rival_value=times["CUDA"] * 1e3,
        note=f"{times['OpenCL'] / times['CUDA']:.1f} times CUDA's",
    )


def same_rankers(first: BoostedRounds, second: BoostedRounds) -> bool:
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in ("feature", "bin", "r"))
