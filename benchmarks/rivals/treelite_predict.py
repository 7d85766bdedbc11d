"""Treelite: the trees compiled to machine code by tl2cgen and gcc."""

from __future__ import annotations

import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

from benchmarks.rivals.lightgbm_predict import model_text
from benchmarks.rivals.tree_rival import Predict
from rankwell.scoring.trees import TreeInputs

NAME = "treelite"
IS_INSTALLED = all(find_spec(name) is not None for name in ("treelite", "tl2cgen")) and shutil.which("gcc") is not None


def prepare(trees: TreeInputs, n_features: int, n_threads: int) -> Predict:
    import tl2cgen
    import treelite

    folder = Path(tempfile.mkdtemp(prefix="treelite-"))
    path = folder / "model.txt"
    path.write_text(model_text(trees, n_features))
    model = treelite.frontend.load_lightgbm_model(path)
    library = folder / "model.so"
    tl2cgen.export_lib(model, toolchain="gcc", libpath=library, params={"parallel_comp": 8})
    predictor = tl2cgen.Predictor(library, nthread=n_threads)
    shutil.rmtree(folder)
    return lambda rows: predictor.predict(tl2cgen.DMatrix(rows)).ravel()
