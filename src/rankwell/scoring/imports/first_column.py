"""Which column of a model is the first feature: column 0, or column 1 of a model that was trained from text.

LightGBM and XGBoost put `1:0.5` of LETOR / SVMlight text into their column 1, so that column 0 is empty if the text
numbers features from 1, as LETOR does. Rankwell's reader makes feature 1 the first column. A model that was trained
from such text therefore has one column in front that no data has here; with it, every feature would be read one column
off.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from rankwell.errors import FileFormatError, Parameter
from rankwell.scoring.description import RankerDescription, default_feature_names
from rankwell.scoring.feature_use import over_features
from rankwell.scoring.imports.import_choices import ImportChoices

logger = logging.getLogger(__name__)


def from_first_feature(
    description: RankerDescription, choices: ImportChoices, *, is_empty: bool | None
) -> RankerDescription:
    """The model without its column 0 if that is no feature.

    is_empty : whether training saw nothing but zeros in column 0 and something in others; None if the file does not say
    """
    if choices.first_index == 1:
        return _without_column_0(description)
    if choices.first_index == 0 or not may_be_one_off(description):
        return description
    n_features = description.n_features
    if choices.n_features == n_features:
        return description
    if choices.n_features == n_features - 1:
        logger.info(
            "the model has %d columns and the data %d features: column 0 is taken for the empty one that LightGBM and "
            "XGBoost put before feature 1 of text, and is left out",
            n_features,
            n_features - 1,
        )
        return _without_column_0(description)
    if is_empty and not choices.is_object:
        logger.warning(
            "column 0 of this model was empty in training, as LightGBM has it when it reads text that numbers features "
            "from 1: it is left out, and column 1 is the first feature. If the model was trained on an array "
            "whose first column was constant, import it with %s",
            Parameter("first_index", 0),
        )
        return _without_column_0(description)
    if is_empty is not False:
        logger.warning(
            "no tree of this model tests column 0, which is taken for the first feature. If the model was trained from "
            "text that numbers features from 1, as LETOR's does, column 0 is empty and every score would be wrong: "
            "import it with %s; if not, %s ends this warning",
            Parameter("first_index", 1),
            Parameter("first_index", 0),
        )
    return description


def may_be_one_off(description: RankerDescription) -> bool:
    """Whether the first of several unnamed features is read by nothing, as the empty column 0 is."""
    names = description.feature_names
    return len(names) > 1 and _unnamed(names) and 0 not in description.read_columns


def _without_column_0(description: RankerDescription) -> RankerDescription:
    if description.n_features < 2:
        raise FileFormatError(
            "the model has one column, which cannot be left out. Import it with ", Parameter("first_index", 0), "."
        )
    if 0 in description.read_columns:
        raise FileFormatError(
            "column 0 of the model is tested by its trees, so it is a feature and cannot be left out. Import the model "
            "with ",
            Parameter("first_index", 0),
            ".",
        )
    names = description.feature_names
    kept = over_features(description, names[1:])
    return replace(kept, feature_names=default_feature_names(len(kept.feature_names))) if _unnamed(names) else kept


def _unnamed(names: tuple[str, ...]) -> bool:
    return names == default_feature_names(len(names))
