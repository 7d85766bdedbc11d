"""lleaves: a LightGBM model compiled to machine code by LLVM.

Its last release (1.3) needs llvmlite below 0.45, that is Numba 0.61: beside a newer one it cannot compile.
"""

from __future__ import annotations

import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

from llvmlite import binding  # type: ignore[import-untyped]

from benchmarks.rivals.lightgbm_predict import model_text
from benchmarks.rivals.tree_rival import THREADS, Predict
from rankwell.scoring.trees import TreeInputs

NAME = "lleaves"
IS_INSTALLED = all(find_spec(name) is not None for name in ("lleaves", "lightgbm")) and hasattr(
    binding, "PassManagerBuilder"
)


def prepare(trees: TreeInputs, n_features: int) -> list[Predict]:
    import lightgbm
    import lleaves

    folder = Path(tempfile.mkdtemp(prefix="lleaves-"))
    path = folder / "model.txt"
    # LightGBM writes what lleaves reads besides the trees.
    lightgbm.Booster(model_str=model_text(trees, n_features)).save_model(path)
    model = lleaves.Model(model_file=str(path))
    # Thresholds and features as float32, which it says is faster.
    model.compile(use_fp64=False)
    shutil.rmtree(folder)
    return [lambda rows, n=n: model.predict(rows, n_jobs=n) for n in THREADS]
