"""A model that another library trained, as a ranker: it predicts, and is evaluated, saved and served like any other."""

from __future__ import annotations

import os
from typing import Any, Self

from rankwell.errors import ParameterError
from rankwell.rankers.base import Ranker, TrainedModel, TrainingTask
from rankwell.scoring.imports.booster_object import model_bytes
from rankwell.scoring.imports.reader import import_model, parse_model


class ImportedRanker(Ranker):
    """A LightGBM or XGBoost model: see `ImportedRanker.from_model`.

    Parameters
    ----------
    source : str
        Where the model came from, for information.
    """

    name = "imported"
    normalize = "none"

    def __init__(self, source: str = "") -> None:
        self.source = source

    @classmethod
    def from_model(cls, model: Any) -> Self:
        """The ranker that scores as `model` does in its own library.

        Parameters
        ----------
        model : path, or object
            A model file of LightGBM (text, JSON dump) or XGBoost (JSON, UBJSON); or a trained `Booster`, `LGBMRanker`,
            `XGBRanker` or other estimator of these libraries.
        """
        if isinstance(model, str | os.PathLike):
            source, description = os.path.basename(os.fspath(model)), import_model(model)
        else:
            source, description = type(model).__name__, parse_model(model_bytes(model))
        ranker = cls(source=source)
        ranker._keep(TrainedModel(description, state={}, history={}))
        ranker.metrics_ = {}
        return ranker

    def _train(self, task: TrainingTask) -> TrainedModel:
        raise ParameterError(
            "an imported model cannot be trained by Rankwell: train it in its own library, and import it again."
        )
