"""What features may do in a tree: rise or fall only, be categories, share a path with others only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

GROUPS_A_WORD = 64


class FeatureRules(NamedTuple):
    """Rules by feature (`rules` says what they mean).

    direction : int8 (n_features,), 1 if the score must not fall where the feature rises, −1 if it must not rise, else 0
    n_categories : int64 (n_features,), the bins 1, ..., n of a categorical feature that are one category each, a higher
        bin holds all others; 0 for a feature whose bins have an order
    groups : uint64 (n_features, n_words), the groups that a feature is in, a bit each; (n_features, 0) without groups
    """

    direction: np.ndarray
    n_categories: np.ndarray
    groups: np.ndarray

    @classmethod
    def none(cls, n_features: int) -> Self:
        """No rules."""
        return cls(np.zeros(n_features, np.int8), np.zeros(n_features, np.int64), np.zeros((n_features, 0), np.uint64))

    @property
    def is_bounded(self) -> bool:
        """Whether a feature has a direction."""
        return bool(self.direction.any())

    @property
    def has_categories(self) -> bool:
        return bool(self.n_categories.any())

    @property
    def has_groups(self) -> bool:
        return self.groups.shape[1] > 0


def group_bits(groups: Sequence[Sequence[int]], n_features: int) -> np.ndarray:
    """`FeatureRules.groups` of groups of feature numbers."""
    bits = np.zeros((n_features, -(-len(groups) // GROUPS_A_WORD)), np.uint64)
    for number, group in enumerate(groups):
        bits[list(group), number // GROUPS_A_WORD] |= np.uint64(1 << number % GROUPS_A_WORD)
    return bits
