"""How fast is RankBoost's OpenCL on an NVIDIA GPU, beside CUDA on the same device?

A whole round at the sizes of the FPGA paper and of the CUDA paper, on the OpenCL platform that the driver brings. The
kernels are those for any OpenCL device: a plain histogram in local memory, no graph of launches.
"""

from __future__ import annotations

from benchmarks.harness import Benchmark
from benchmarks.rankboost_cases import queries_of, scaled_shape
from benchmarks.rankboost_cuda import make_booster, random_bins
from rankwell.kernels.boosting.cpu.documents import initial_weights

ROUNDS = 32


def run(bench: Benchmark) -> None:
    from rankwell.kernels.boosting.opencl.booster import OpenClBooster
    from rankwell.kernels.device_report import report_device

    report = report_device("opencl")
    bench.check("an OpenCL device of NVIDIA", report.usable and "nvidia" in report.description.lower(), str(report))
    for name in ("far", "cuda2010"):
        shape = scaled_shape(name, docs=0.02 if bench.quick else 1.0)
        queries = queries_of(shape)
        bins = random_bins(shape, queries)
        cuda = make_booster(bins, queries)
        opencl = OpenClBooster(bins.get(), shape.n_features, 256, queries, initial_weights(queries))
        first, second = cuda.boost(ROUNDS), opencl.boost(ROUNDS)
        bench.check(f"{name}: the same weak rankers", first.feature.tolist() == second.feature.tolist())
        ours = bench.time(f"{name}, OpenCL", lambda b=opencl: b.boost(ROUNDS), repeat=5).minimum / ROUNDS
        other = bench.time(f"{name}, CUDA", lambda b=cuda: b.boost(ROUNDS), repeat=5).minimum / ROUNDS
        bench.record(
            f"{name}, a whole round with OpenCL",
            value=ours * 1e3,
            unit="ms",
            rival="the same with CUDA",
            rival_value=other * 1e3,
            note=f"{ours / other:.1f} times CUDA's",
        )
