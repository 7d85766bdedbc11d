"""Categories of pandas columns: LightGBM and XGBoost train on their places in a list, which the model's file has.

A frame holds the values of the list, and so does the data that a ranker scores here: sets of places become sets of
values where these are whole numbers of 0 or more, as categories are here. Texts cannot be in data here, so data of such
a column holds the places, as the model does.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from rankwell.errors import FileFormatError

logger = logging.getLogger(__name__)

# Features are float32, which holds every whole number up to this.
_LARGEST_VALUE = 2**24
_SHOWN = 5


def category_values(categories: Mapping[str, Sequence[Any]]) -> dict[str, list[int]]:
    """By column, the values that its places stand for; columns whose places are read as they are do not occur.

    categories : the list of each column of a pandas frame that holds categories, by the column's name
    """
    translated = {}
    for name, listed in categories.items():
        numbers = _as_numbers(listed)
        if numbers is None:
            warn_of_texts([listed])
            continue
        if numbers == list(range(len(numbers))):
            continue
        if not all(number.is_integer() and 0 <= number <= _LARGEST_VALUE for number in numbers):
            raise FileFormatError(
                f"the model was trained on the categories {_shown(listed)} of column {name!r} of a pandas frame; "
                f"categories here are whole numbers from 0 to {_LARGEST_VALUE}. Train it on such numbers for them: "
                f"frame[{name!r}] = frame[{name!r}].cat.codes, and the same codes in the data that is scored."
            )
        translated[name] = [int(number) for number in numbers]
        logger.warning(
            "the model was trained on the categories %s of column %r of a pandas frame: the data's column %r must hold "
            "these values, not their places in the list (pandas' codes)",
            _shown(listed),
            name,
            name,
        )
    return translated


def warn_of_texts(lists: Sequence[Sequence[Any]]) -> None:
    """Say of categories that are texts what the data must hold for them."""
    for listed in lists:
        if _as_numbers(listed) is None:
            logger.warning(
                "the model was trained on the categories %s of a pandas frame, which are texts. It reads their places "
                "in this list: the data must hold 0, 1, 2, ... for them",
                _shown(listed),
            )


def have_values(listed: Sequence[Any]) -> bool:
    """Whether data would hold the categories themselves, as other numbers than their places."""
    return _as_numbers(listed) is not None and not are_places(listed)


def are_places(listed: Sequence[Any]) -> bool:
    """Whether the categories are 0, 1, 2, ...: their own places."""
    return _as_numbers(listed) == list(range(len(listed)))


def _as_numbers(listed: Sequence[Any]) -> list[float] | None:
    """The values as a frame's column would be read here: texts of numbers are numbers; None if any is another text."""
    try:
        return [float(value) for value in listed]
    except (TypeError, ValueError):
        return None


def _shown(listed: Sequence[Any]) -> str:
    more = ", ..." if len(listed) > _SHOWN else ""
    return ", ".join(map(repr, listed[:_SHOWN])) + more
