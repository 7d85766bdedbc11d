"""A model that another library trained, as a ranker: it predicts, and is evaluated, saved and served like any other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

from rankwell.errors import ParameterError
from rankwell.rankers.base import Ranker, TrainedModel, TrainingTask
from rankwell.scoring.description import RankerDescription, check_description, default_feature_names
from rankwell.scoring.imports.booster_object import model_bytes, predicts_with_all_rounds, was_trained_on_arrays
from rankwell.scoring.imports.import_choices import ImportChoices
from rankwell.scoring.imports.reader import import_model, parse_model


class ImportedRanker(Ranker):
    """A model of another library: see `ImportedRanker.from_model`.

    Parameters
    ----------
    source : str
        Where the model came from, for information.

    Examples
    --------
    >>> import lightgbm, rankwell
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> model = lightgbm.LGBMRanker(n_estimators=5, verbose=-1)
    >>> model = model.fit(data.features, data.labels, group=data.query_sizes)
    >>> ranker = rankwell.ImportedRanker.from_model(model)
    >>> bool(abs(ranker.predict(data) - model.predict(data.features)).max() < 1e-12)
    True
    """

    name = "imported"
    normalize = "none"

    def __init__(self, source: str = "") -> None:
        self.source = source

    @classmethod
    def from_model(
        cls,
        model: Any,
        *,
        feature_names: Sequence[str] | None = None,
        n_features: int | None = None,
        all_rounds: bool = False,
        first_index: int | None = None,
    ) -> Self:
        """The ranker that scores as `model` does in its own library.

        Parameters
        ----------
        model : path, or object
            A model file of LightGBM (text, JSON dump), XGBoost (JSON, UBJSON), CatBoost (JSON), ONNX (trees), RankLib,
            svm_rank or LIBLINEAR; or a trained `Booster`, `LGBMRanker`, `XGBRanker`, `CatBoostRanker` or other
            estimator of these libraries, or an ONNX `ModelProto`.
        feature_names : sequence of str, optional
            The names of its features, in their order, if the model does not have them: a ranker whose features have
            names can be searched with and served.
        n_features : int, optional
            How many features rows have, for models of RankLib and svm_rank, which say only what they read.
        all_rounds : bool
            Of a model of XGBoost that early stopping ended, import all rounds, as `Booster.predict` scores. Without it,
            a file or an `XGBRanker` is imported up to its best round, as `XGBRanker.predict` scores; a `Booster` has
            all rounds either way.
        first_index : 0 or 1, optional
            The column of a model of LightGBM or XGBoost that is the first feature. They count columns from 0 and put
            feature 1 of LETOR / SVMlight text into column 1: a model that was trained from such a file needs 1, which
            leaves out the empty column 0; one that was trained on an array needs 0. Without it, a file of LightGBM
            whose column 0 was empty in training is taken for one that was trained from text, unless `n_features` or
            `feature_names` say otherwise, with a warning; so is every model with one column more than they say, if
            no tree tests column 0. Objects keep all columns.
        """
        if n_features is None and feature_names is not None:
            n_features = len(feature_names)
        if isinstance(model, str | os.PathLike):
            source = os.path.basename(os.fspath(model))
            description = import_model(model, ImportChoices(n_features, all_rounds, first_index))
        else:
            source = type(model).__name__
            if first_index is None and was_trained_on_arrays(model):
                first_index = 0
            all_rounds = all_rounds or predicts_with_all_rounds(model)
            choices = ImportChoices(n_features, all_rounds, first_index, is_object=True)
            description = parse_model(model_bytes(model), choices)
            # An object may have been read from a file that anyone wrote.
            check_description(description)
        if feature_names is not None:
            description = _with_names(description, tuple(feature_names))
        ranker = cls(source=source)
        ranker._keep(TrainedModel(description, state={}, history={}))
        ranker.metrics_ = {}
        return ranker

    def _train(self, task: TrainingTask) -> TrainedModel:
        raise ParameterError(
            "an imported model cannot be trained by Rankwell: train it in its own library, and import it again."
        )


def _with_names(description: RankerDescription, names: tuple[str, ...]) -> RankerDescription:
    """The description with names in place of f0, f1, ...; those that a model has are kept."""
    if len(names) != description.n_features:
        raise ParameterError(
            f"must be {description.n_features} names, as many as the model has features, got {len(names)}.",
            parameter="feature_names",
        )
    own = description.feature_names
    return replace(description, feature_names=names) if own == default_feature_names(len(own)) else description
