"""How long does `import rankwell` take, and what does it import?

The target is the whole command ``python -X importtime -c "import rankwell"``, interpreter start included.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

from benchmarks.harness import Benchmark

TARGET_S = 0.5
# What is optional, and what is required but slow to import: `import rankwell` must not import any of it.
HEAVY = (
    "cupy",
    "lightgbm",
    "matplotlib",
    "numba",
    "pandas",
    "polars",
    "pyarrow",
    "pyopencl",
    "safetensors",
    "scipy",
    "sklearn",
    "torch",
    "xgboost",
)


def run(bench: Benchmark) -> None:
    imported = modules_after("import rankwell")
    bench.check("the probe sees an import", "numpy" in modules_after("import numpy"))
    present = sorted(imported & set(HEAVY))
    bench.check("no optional or heavy package is imported", not present, ", ".join(present))

    repeat = 3 if bench.quick else 15
    whole = bench.time("python -X importtime -c 'import rankwell'", lambda: import_seconds("rankwell"), repeat=repeat)
    bare = bench.time("python -c 'pass'", lambda: run_python("pass"), repeat=repeat)
    rival_value = None
    if find_spec("lightgbm") is not None:
        rival = bench.time("python -X importtime -c 'import lightgbm'", lambda: import_seconds("lightgbm"), repeat=3)
        rival_value = rival.minimum
    bench.record(
        "whole command",
        value=whole.minimum,
        unit="s",
        target=TARGET_S,
        rival="lightgbm",
        rival_value=rival_value,
        note=f"of which the bare interpreter {bare.minimum:.3f} s",
    )
    alone = min(import_seconds("rankwell") for _ in range(repeat))
    bench.record("the import alone", value=alone, unit="s", note="cumulative, as -X importtime counts it")


def run_python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a fresh interpreter, the same one as this."""
    return subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=True)


def modules_after(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after `code`."""
    listing = run_python(f"{code}\nimport sys\nprint(*sys.modules, sep='\\n')").stdout
    return {name.partition(".")[0] for name in listing.splitlines()}


def import_seconds(module: str) -> float:
    """The cumulative time that ``-X importtime`` gives for one module, in seconds."""
    for line in run_python(f"import {module}", "-X", "importtime").stderr.splitlines():
        if line.startswith("import time:") and line.rpartition("|")[2].strip() == module:
            return int(line.split("|")[1]) / 1e6
    raise RuntimeError(f"-X importtime did not report {module}.")
