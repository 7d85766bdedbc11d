"""Which byte holds the bins of which features.

A *column* is a byte of every document. Features with few bins share one: with the bins a of n and b of m, the byte is
a + n·b, and the histogram of each feature is a sum over the column's. So nothing is lost, and the histograms of several
features are built for the price of one. The *code* of a feature is its bin without the bins below `lowest`: 0 for
missing values if the feature has any in the training data, and the lowest value otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

COLUMN_VALUES = 256


# What a row of `Columns.by_feature` says: the feature's column, −1 if it is constant; code = byte // DIVISOR % N_CODES;
# the bin whose code is 0; and 1 if code 0 is missing values.
COLUMN, DIVISOR, N_CODES, LOWEST, HAS_MISSING = range(5)


class Columns(NamedTuple):
    """The features of each column.

    column_ptr : int64 (n_columns + 1,), into `features`
    features : int64 (n_varying,), the features of column after column; constant ones are in none
    sizes : int64 (n_columns,), values that a column's byte can have
    by_feature : int64 (n_features, 5), see above
    """

    column_ptr: np.ndarray
    features: np.ndarray
    sizes: np.ndarray
    by_feature: np.ndarray


def bins_of_codes(codes: np.ndarray, lowest: np.ndarray) -> np.ndarray:
    """Sets of bins, uint64 (n_sets, 4), a bit each, from sets of codes; lowest : of each set's feature."""
    # A code is its bin without the bins below `lowest`, of which there is one at most.
    carried = np.concatenate([np.zeros((len(codes), 1), np.uint64), codes[:, :-1] >> np.uint64(63)], axis=1)
    bins: np.ndarray = np.where(lowest[:, None] > 0, (codes << np.uint64(1)) | carried, codes)
    return bins


def arrange_columns(n_value_bins: np.ndarray, has_missing: np.ndarray) -> Columns:
    """The columns of features with this many bins for values (bins 1, 2, ...), and with missing values or without.

    Features go into the first column with room, those with the most codes first.
    """
    n_features = len(n_value_bins)
    lowest = np.where(has_missing, 0, 1).astype(np.int64)
    n_codes = np.asarray(n_value_bins, np.int64) + 1 - lowest
    groups: list[list[int]] = []
    sizes: list[int] = []
    for feature in np.argsort(-n_codes, kind="stable").tolist():
        codes = int(n_codes[feature])
        if codes < 2:
            continue
        place = next((place for place, size in enumerate(sizes) if size * codes <= COLUMN_VALUES), len(sizes))
        if place == len(sizes):
            groups.append([])
            sizes.append(1)
        groups[place].append(feature)
        sizes[place] *= codes
    by_feature = np.stack(
        [np.full(n_features, -1), np.ones(n_features), n_codes, lowest, np.asarray(has_missing)], axis=1
    ).astype(np.int64)
    for column, group in enumerate(groups):
        size = 1
        for feature in group:
            by_feature[feature, COLUMN], by_feature[feature, DIVISOR] = column, size
            size *= int(n_codes[feature])
    return Columns(
        column_ptr=np.cumsum([0, *map(len, groups)]).astype(np.int64),
        features=np.array([feature for group in groups for feature in group], np.int64),
        sizes=np.array(sizes, np.int64),
        by_feature=by_feature,
    )
