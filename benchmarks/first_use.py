"""How long does a newcomer wait for the first, second and third run of a command, from a checkout and from a wheel?

Each command runs in its own process with an empty folder of compiled kernels; processor seconds are those of the
process and its children. A wheel is built and installed into its own environment; a checkout compiles.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import rankwell
from benchmarks.harness import Benchmark
from benchmarks.provenance import ROOT

COMMANDS = {
    "train least-squares": "train least-squares train.txt --vali vali.txt --out least-squares.rank",
    "train rankboost": "train rankboost train.txt --vali vali.txt --out rankboost.rank",
    "train ranksvm": "train ranksvm train.txt --vali vali.txt --out ranksvm.rank",
    "train listnet": "train listnet train.txt --vali vali.txt --set n_epochs=30 --out listnet.rank",
    "evaluate": "evaluate small.txt rankboost.rank",
    "search": "search index wing flow",
    "features": "features index queries.tsv qrels --out features.txt",
}
# Seconds of a first run: in all from a checkout, in excess of the second run from a wheel.
CHECKOUT_TARGETS = {
    name: 8.0 if name.split()[-1] in ("least-squares", "evaluate", "search") else 20.0 for name in COMMANDS
}
WHEEL_TARGET = 1.0
# Wall seconds of a second run.
WARM_TARGETS = {"search": 0.8, "evaluate": 1.0, "train rankboost": 1.8}
DEMO_TARGET = 75.0


@dataclass(frozen=True)
class Runs:
    """Processor seconds of the first, second and third run, the least wall seconds of later ones, kernels compiled."""

    cpu: tuple[float, float, float]
    wall: float
    compiled: tuple[int, int, int]


def run(bench: Benchmark) -> None:
    names = ["evaluate"] if bench.quick else list(COMMANDS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_files(folder, n_queries=20 if bench.quick else 900)
        checkout = {
            name: measure_first(sys.executable, COMMANDS[name], folder, first_runs=1 if bench.quick else 2)
            for name in names
        }
        for name, runs in checkout.items():
            bench.check(f"{name}: a checkout compiles at first", runs.compiled[0] > 0)
            bench.check(f"{name}: later runs compile nothing", runs.compiled[1:] == (0, 0), str(runs.compiled))
            record_checkout(bench, name, runs)
        if bench.quick:
            return
        python = install_wheel(folder)
        for name, command in COMMANDS.items():
            runs = measure_command(python, command, folder)
            bench.check(f"{name}: an installed wheel compiles nothing", runs.compiled == (0, 0, 0), str(runs.compiled))
            bench.record(
                f"installed wheel, {name}: first run over the second",
                value=runs.cpu[0] - runs.cpu[1],
                unit="s",
                target=WHEEL_TARGET,
                note=f"processor seconds {write_runs(runs)}",
            )
        bench.record(
            "make demo from a checkout, nothing compiled",
            value=demo_seconds(folder),
            unit="s",
            target=DEMO_TARGET,
            note="wall seconds after installation",
        )


def record_checkout(bench: Benchmark, name: str, runs: Runs) -> None:
    bench.record(
        f"checkout, {name}: first run",
        value=runs.cpu[0],
        unit="s",
        target=CHECKOUT_TARGETS[name],
        note=f"processor seconds {write_runs(runs)}; {runs.compiled[0]} kernels compiled",
    )
    if name in WARM_TARGETS:
        bench.record(f"checkout, {name}: second run", value=runs.wall, unit="s", target=WARM_TARGETS[name], note="wall")


def write_runs(runs: Runs) -> str:
    return " / ".join(f"{seconds:.2f}" for seconds in runs.cpu)


def make_files(folder: Path, n_queries: int) -> None:
    """Data of the demo's size (219 features of 50 candidates per query), a small index, queries and judgments."""
    for part, share in (("train", 1.0), ("vali", 0.25), ("small", 0.01)):
        number = max(2, int(share * n_queries))
        data = rankwell.make_ranking(n_queries=number, n_docs=50 * number, n_features=219, random_state=len(part))
        rankwell.write(data, folder / f"{part}.txt")
    rankwell.LeastSquares().fit(rankwell.read(folder / "small.txt")).save(folder / "rankboost.rank")
    words = [
        "wing",
        "flow",
        "heat",
        "of",
        "the",
        "boundary",
        "layer",
        "in",
        "supersonic",
        "jet",
        "theory",
        "and",
        "pressure",
        "on",
        "slender",
        "bodies",
    ]
    texts = [" ".join(words[(number * step) % len(words)] for step in range(2, 30)) for number in range(1000)]
    lines = [json.dumps({"id": str(number), "body": text}) for number, text in enumerate(texts)]
    (folder / "documents.jsonl").write_text("\n".join(lines))
    (folder / "queries.tsv").write_text("1\twing\n2\tboundary layer\n")
    (folder / "qrels").write_text("1 0 0 1\n2 0 2 2\n")
    subprocess.run(
        [sys.executable, "-m", "rankwell", "index", "build", "documents.jsonl", "--out", "index"],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def measure_first(python: str, command: str, folder: Path, *, first_runs: int) -> Runs:
    """`measure_command`: of several tries from an empty cache, the one with the fastest first run."""
    tries = [measure_command(python, command, folder) for _ in range(first_runs)]
    return min(tries, key=lambda runs: runs.cpu[0])


def measure_command(python: str, command: str, folder: Path, *, repeat: int = 3) -> Runs:
    """Run a command with an empty folder of kernels, again, and again; then `repeat` times for the wall seconds."""
    with tempfile.TemporaryDirectory() as cache:
        kernels = [0]
        cpu = []
        for _ in range(3):
            cpu.append(run_command(python, command, folder, cache)[0])
            kernels.append(len(os.listdir(cache)))
        wall = min(run_command(python, command, folder, cache)[1] for _ in range(repeat))
    first, second, third = (after - before for before, after in pairwise(kernels))
    return Runs((cpu[0], cpu[1], cpu[2]), wall, (first, second, third))


def run_command(python: str, command: str, folder: Path, cache: str) -> tuple[float, float]:
    """Processor seconds (of all processes it starts, too) and wall seconds of a command."""
    # Python keeps what it compiles of a module's source; a machine that forbids it would compile all of it each time.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment: Mapping[str, str] = kept | {"RANKWELL_CACHE_DIR": cache}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        [python, "-m", "rankwell", *command.split()], cwd=folder, env=environment, check=True, capture_output=True
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def install_wheel(folder: Path) -> str:
    """Build the wheel and install it into an empty environment; returns its interpreter."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder / "dist"), str(ROOT)],
        check=True,
    )
    (wheel,) = (folder / "dist").glob("rankwell-*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "environment")], check=True)
    python = str(folder / "environment" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True)
    return python


def demo_seconds(folder: Path) -> float:
    """The whole demo with an empty folder of kernels."""
    with tempfile.TemporaryDirectory() as cache:
        return run_command(sys.executable, f"demo --quiet --out {folder / 'demo'}", folder, cache)[1]
