"""A model that another library trained, as a ranker: it predicts, and is evaluated, saved and served like any other."""

from __future__ import annotations

import os
from typing import Self

from rankwell.errors import ParameterError
from rankwell.rankers.base import Ranker, TrainedModel, TrainingTask
from rankwell.scoring.imports.reader import import_model


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
    def from_model(cls, path: str | os.PathLike[str]) -> Self:
        """The model of LightGBM (text, JSON dump) or XGBoost (JSON, UBJSON) at `path`.

        Its scores are those of the library's own `predict`.
        """
        ranker = cls(source=os.path.basename(os.fspath(path)))
        ranker._keep(TrainedModel(import_model(path), state={}, history={}))
        ranker.metrics_ = {}
        return ranker

    def _train(self, task: TrainingTask) -> TrainedModel:
        raise ParameterError(
            "an imported model cannot be trained by Rankwell: train it in its own library, and import it again."
        )
