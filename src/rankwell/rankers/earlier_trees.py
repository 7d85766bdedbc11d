"""The trees of a model that training continues from, under rules that they were not grown by."""

from __future__ import annotations

import logging
from typing import Protocol

from rankwell.errors import Parameter
from rankwell.kernels.trees.feature_rules import group_bits
from rankwell.rankers.feature_choices import FeatureChoices, Features, feature_numbers
from rankwell.scoring.trees import TreeInputs

logger = logging.getLogger("rankwell")


class BoundRanker(Protocol):
    """A ranker whose score rises or falls with some features."""

    increasing: Features | None
    decreasing: Features | None


def warn_of_broken_rules(
    ours: BoundRanker, earlier: BoundRanker, trees: TreeInputs, choices: FeatureChoices, names: tuple[str, ...]
) -> None:
    """Say which rules of `ours` the earlier model's trees may break, or do.

    choices : what `ours` says of the features called `names`
    """
    for parameter in ("increasing", "decreasing"):
        theirs = feature_numbers(parameter, getattr(earlier, parameter), names)
        free = [names[number] for number in getattr(choices, parameter) if number not in theirs]
        if free:
            logger.warning(
                "%s holds for the new trees only: those of %s were grown without it for %s, so that the score may "
                "break it.",
                parameter,
                Parameter("init_model"),
                ", ".join(free),
            )
    together = features_outside_groups(trees, choices)
    if together:
        logger.warning(
            "interaction_groups holds for the new trees only: a tree of %s has %s on one path, which no group has.",
            Parameter("init_model"),
            " and ".join(names[number] for number in together),
        )


def features_outside_groups(trees: TreeInputs, choices: FeatureChoices) -> tuple[int, ...]:
    """The features on the first path from a root that are in no group together; () if there is no such path."""
    if not choices.groups:
        return ()
    groups = group_bits(choices.groups, choices.n_features)
    feature = trees.column_feature[trees.column]
    for start, end in zip(trees.node_ptr[:-1].tolist(), trees.node_ptr[1:].tolist(), strict=True):
        shared = groups[feature[start:end]]
        paths = [frozenset([int(number)]) for number in feature[start:end]]
        # Children come after their parents.
        for node in range(end - start):
            if not shared[node].any():
                return tuple(sorted(paths[node]))
            for child in (trees.left[start + node], trees.right[start + node]):
                if child >= 0:
                    shared[child] &= shared[node]
                    paths[child] |= paths[node]
    return ()
