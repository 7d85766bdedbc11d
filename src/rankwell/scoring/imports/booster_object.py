"""Models of other libraries that are in memory: LightGBM's, XGBoost's, CatBoost's and ONNX's.

An object is recognised by the modules of its classes, so that no other library is imported here. It writes itself in
its own format, and the reader of files reads that.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rankwell.errors import NotFittedError, ParameterError


def model_bytes(model: Any) -> bytes:
    """What `model` would write to a file: LightGBM's text, XGBoost's UBJSON, CatBoost's JSON, ONNX's bytes.

    After early stopping, LightGBM writes the trees up to the best round, and XGBoost all trees with the number of the
    best round; whether the object's own `predict` uses all of them, `predicts_with_all_rounds` says.
    """
    libraries = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    if "lightgbm" in libraries:
        return str(_booster(model, "booster_").model_to_string()).encode()
    if "xgboost" in libraries:
        booster = _booster(model, "get_booster")
        return bytes((booster if booster is model else booster()).save_raw("ubj"))
    if "catboost" in libraries:
        return _catboost_bytes(model)
    if "onnx" in libraries:
        return bytes(model.SerializeToString())
    raise ParameterError(
        "a model of LightGBM, XGBoost, CatBoost or ONNX is needed (a Booster, an LGBMRanker, ..., or the path of a "
        f"model file), got {type(model).__name__}."
    )


def predicts_with_all_rounds(model: Any) -> bool:
    """Whether `model` predicts with all trees that it writes: all objects but XGBoost's estimators do."""
    return not hasattr(type(model), "get_booster")


def was_trained_on_arrays(model: Any) -> bool:
    """Whether `model` is an estimator of LightGBM or XGBoost, which has no way to read text; a booster may have."""
    return hasattr(type(model), "booster_") or hasattr(type(model), "get_booster")


def _catboost_bytes(model: Any) -> bytes:
    if not model.is_fitted():
        raise NotFittedError(f"this {type(model).__name__} is not trained yet: call fit first.")
    # It writes to files only.
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        return path.read_bytes()


def _booster(model: Any, attribute: str) -> Any:
    """The booster of a scikit-learn estimator, or `model` itself if it is a booster."""
    if not hasattr(type(model), attribute):
        return model
    if not model.__sklearn_is_fitted__():
        raise NotFittedError(f"this {type(model).__name__} is not trained yet: call fit first.")
    return getattr(model, attribute)
