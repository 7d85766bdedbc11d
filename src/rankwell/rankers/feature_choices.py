"""What a user says of features: which rise or fall, which are categories, which may interact."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankwell.errors import ParameterError
from rankwell.kernels.trees.feature_rules import FeatureRules, group_bits
from rankwell.parameters import is_whole_number
from rankwell.rankers.tree_bins import TreeBins

logger = logging.getLogger("rankwell")

# A feature's name, or its number, counted from 0.
Feature = int | str
Features = Sequence[Feature] | Set[Feature] | np.ndarray

_NAMED = 5


@dataclass(frozen=True)
class FeatureChoices:
    """Features by number: those that the score rises or falls with, categorical ones, and groups that may interact."""

    n_features: int
    increasing: tuple[int, ...]
    decreasing: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    categorical: tuple[int, ...]

    @classmethod
    def from_parameters(
        cls,
        names: tuple[str, ...],
        increasing: Features | None,
        decreasing: Features | None,
        interaction_groups: Sequence[Features] | None,
        categorical_features: Features | None,
    ) -> Self:
        """The choices among features called `names`; an error if they contradict each other."""
        groups = tuple(
            feature_numbers("interaction_groups", group, names) for group in _listed_groups(interaction_groups)
        )
        chosen = cls(
            len(names),
            feature_numbers("increasing", increasing, names),
            feature_numbers("decreasing", decreasing, names),
            groups,
            feature_numbers("categorical_features", categorical_features, names),
        )
        for one, other in (("increasing", "decreasing"), ("increasing", "categorical"), ("decreasing", "categorical")):
            both = set(getattr(chosen, one)) & set(getattr(chosen, other))
            if both:
                other_parameter = "categorical_features" if other == "categorical" else other
                raise ParameterError(
                    f"has the feature {names[min(both)]!r}, which is in {other_parameter} as well. Leave it in one.",
                    parameter=one,
                )
        chosen._note_unused(names)
        return chosen

    def _note_unused(self, names: tuple[str, ...]) -> None:
        unused = [names[number] for number in sorted(set(range(self.n_features)) - set().union(*self.groups))]
        if self.groups and unused:
            more = f" and {len(unused) - _NAMED} more" if len(unused) > _NAMED else ""
            logger.warning(
                "no tree uses %s%s, since interaction_groups does not have them. Add a group for each of them to let "
                "it be cut alone.",
                ", ".join(unused[:_NAMED]),
                more,
            )

    def for_bins(self, bins: TreeBins) -> FeatureRules | None:
        """The rules for trees over these bins; None if there are none."""
        if not (self.increasing or self.decreasing or self.groups or self.categorical):
            return None
        direction = np.zeros(self.n_features, np.int8)
        direction[list(self.increasing)] = 1
        direction[list(self.decreasing)] = -1
        return FeatureRules(direction, bins.n_categories, group_bits(self.groups, self.n_features))


def _listed_groups(groups: Sequence[Features] | None) -> Sequence[Features]:
    if groups is None:
        return ()
    if isinstance(groups, str) or not isinstance(groups, Sequence):
        raise ParameterError(f"must be a list of groups of features, got {groups!r}.", parameter="interaction_groups")
    return groups


def feature_numbers(parameter: str, chosen: Features | None, names: tuple[str, ...]) -> tuple[int, ...]:
    """The numbers of the features that `parameter` names, out of those called `names`; () for None."""
    if chosen is None:
        return ()
    check_features(parameter, chosen)
    numbers = tuple(_number(parameter, one, names) for one in chosen)
    if isinstance(chosen, Set):
        return tuple(sorted(set(numbers)))
    if len(set(numbers)) < len(numbers):
        twice = next(names[number] for place, number in enumerate(numbers) if number in numbers[:place])
        raise ParameterError(f"has the feature {twice!r} twice.", parameter=parameter)
    return numbers


def check_features(parameter: str, chosen: Any) -> None:
    """Refuse what is not a list of features, whatever they are called; None is one."""
    is_list = isinstance(chosen, Sequence | Set) or (isinstance(chosen, np.ndarray) and chosen.ndim == 1)
    if chosen is not None and (isinstance(chosen, str) or not is_list):
        raise ParameterError(
            f"must be a list of features, by name or by number from 0, got {chosen!r}.", parameter=parameter
        )


def _number(parameter: str, feature: Feature, names: tuple[str, ...]) -> int:
    if isinstance(feature, str):
        if feature in names:
            return names.index(feature)
        close = difflib.get_close_matches(feature, names, n=1)
        remedy = f"Did you mean {close[0]!r}?" if close else f"The first of its {len(names)} features is {names[0]!r}."
        raise ParameterError(f"has {feature!r}, which is no feature of the data. {remedy}", parameter=parameter)
    if not is_whole_number(feature) or not 0 <= feature < len(names):
        raise ParameterError(
            f"must have names of features, or numbers from 0 to {len(names) - 1}, got {feature!r}.", parameter=parameter
        )
    return int(feature)
