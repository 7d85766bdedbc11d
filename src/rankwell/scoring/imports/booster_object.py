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

    Trees are those that the object's own `predict` uses: after early stopping up to the best iteration, except for
    XGBoost's `Booster`, which uses all.
    """
    libraries = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    if "lightgbm" in libraries:
        return str(_booster(model, "booster_").model_to_string()).encode()
    if "xgboost" in libraries:
        return _xgboost_bytes(model)
    if "catboost" in libraries:
        return _catboost_bytes(model)
    if "onnx" in libraries:
        return bytes(model.SerializeToString())
    raise ParameterError(
        "a model of LightGBM, XGBoost, CatBoost or ONNX is needed (a Booster, an LGBMRanker, ..., or the path of a "
        f"model file), got {type(model).__name__}."
    )


def _xgboost_bytes(model: Any) -> bytes:
    if not hasattr(model, "get_booster"):
        return bytes(model.save_raw("ubj"))
    booster = _booster(model, "get_booster")()
    stopped_at = getattr(model, "best_iteration", None) if model.early_stopping_rounds is not None else None
    return bytes((booster if stopped_at is None else booster[: stopped_at + 1]).save_raw("ubj"))


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
