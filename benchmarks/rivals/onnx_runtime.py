"""ONNX Runtime's tree ensemble, on our trees by way of LightGBM's format and onnxmltools."""

from __future__ import annotations

from importlib.util import find_spec

from benchmarks.rivals.lightgbm_predict import model_text
from benchmarks.rivals.tree_rival import THREADS, Predict
from rankwell.scoring.trees import TreeInputs

NAME = "ONNX Runtime"
IS_INSTALLED = all(find_spec(name) is not None for name in ("onnxruntime", "onnxmltools", "lightgbm"))


def prepare(trees: TreeInputs, n_features: int) -> list[Predict]:
    import warnings

    import lightgbm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import onnxmltools
        import onnxruntime
        from onnxmltools.convert.common.data_types import FloatTensorType

        booster = lightgbm.Booster(model_str=model_text(trees, n_features))
        types = [("rows", FloatTensorType([None, n_features]))]
        model = onnxmltools.convert_lightgbm(booster, initial_types=types, zipmap=False)
    sessions = []
    for n_threads in THREADS:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        sessions.append(session)
    return [lambda rows, one=one: one.run(None, {"rows": rows})[0].ravel() for one in sessions]
