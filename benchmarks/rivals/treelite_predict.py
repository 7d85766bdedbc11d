"""Treelite: the trees compiled to machine code by tl2cgen and gcc, likely branches annotated, with and without
quantised thresholds.
"""

from __future__ import annotations

import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.rivals.lightgbm_predict import model_text
from benchmarks.rivals.tree_rival import THREADS, Predict
from benchmarks.tree_cases import rows_like_a_feature_set
from rankwell.scoring.trees import TreeInputs

NAME = "treelite"
IS_INSTALLED = all(find_spec(name) is not None for name in ("treelite", "tl2cgen")) and shutil.which("gcc") is not None
# Documents by which branches are annotated.
_N_ANNOTATED = 2000


def prepare(trees: TreeInputs, n_features: int) -> list[Predict]:
    import tl2cgen
    import treelite

    folder = Path(tempfile.mkdtemp(prefix="treelite-"))
    path, branches = folder / "model.txt", folder / "branches.json"
    path.write_text(model_text(trees, n_features))
    model = treelite.frontend.load_lightgbm_model(path)
    sample = rows_like_a_feature_set(_N_ANNOTATED, n_features, seed=1)
    tl2cgen.annotate_branch(model, dmat=tl2cgen.DMatrix(sample), path=branches)
    predictors: list[Any] = []
    for quantised in (0, 1):
        library = folder / f"model{quantised}.so"
        settings = {"parallel_comp": 8, "annotate_in": str(branches), "quantize": quantised}
        tl2cgen.export_lib(model, toolchain="gcc", libpath=library, params=settings, options=["-O3", "-march=native"])
        predictors += [tl2cgen.Predictor(library, nthread=n) for n in THREADS]
    shutil.rmtree(folder)
    return [lambda rows, one=one: one.predict(tl2cgen.DMatrix(rows)).ravel() for one in predictors]
