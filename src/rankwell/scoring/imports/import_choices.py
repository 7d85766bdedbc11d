"""What a user says of a model, where its file leaves it open."""

from __future__ import annotations

from dataclasses import dataclass

from rankwell.errors import ParameterError


@dataclass(frozen=True)
class ImportChoices:
    """What a user says of a model, where its file leaves it open.

    n_features : how many features there are: more than a file reads that does not say it
    all_rounds : of a model of XGBoost that early stopping ended, the rounds after the best one as well
    first_index : which of the model's columns, counted from 0, is the first feature: see `first_column`
    is_object : the model is in memory, where its own `predict` takes arrays with all of its columns
    """

    n_features: int | None = None
    all_rounds: bool = False
    first_index: int | None = None
    is_object: bool = False

    def __post_init__(self) -> None:
        check_first_index(self.first_index)


def check_first_index(first_index: int | None) -> None:
    if first_index is not None and (isinstance(first_index, bool) or first_index not in (0, 1)):
        raise ParameterError(
            "must be 0 or 1, the model's column that is the first feature (1 for text that numbers features from 1), "
            f"got {first_index!r}.",
            parameter="first_index",
        )
