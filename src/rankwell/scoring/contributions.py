"""What each feature adds to scores, for many documents: a matrix, as LightGBM's `pred_contrib` gives.

The numbers are those of `explanation`. Sums and means of trees are computed by a kernel, other rankers row by row.
"""

from __future__ import annotations

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.data.validation import is_sparse
from rankwell.errors import ParameterError
from rankwell.scoring.composition import rows_of, run_first_pass
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.explanation import explain_rows
from rankwell.scoring.inputs import ExpressionInputs
from rankwell.scoring.layers import Mean
from rankwell.scoring.reference_scores import run_layers
from rankwell.scoring.scorer import model_columns, score_description
from rankwell.scoring.shapley import TreeShapley
from rankwell.scoring.trees import TreeInputs

# Rows that are made dense at a time, if they are sparse.
_ROWS_AT_A_TIME = 4096


def feature_contributions(
    description: RankerDescription, dataset: RankingDataset, *, n_rounds: int | None = None
) -> np.ndarray:
    """The part of each feature in every row's score, then what belongs to none: float64 (n_docs, n_features + 1).

    Rows are in the dataset's order, and sum to the scores. Of a ranker with a first pass, the rows that it keeps are
    those of the second one's score; the others are those of the first one's, and what takes it down to the document's
    place below those that were kept belongs to no feature.
    """
    if description.first_pass is not None:
        return _of_two_passes(description, dataset, n_rounds)
    if description.parts or any(isinstance(group, ExpressionInputs) for group in description.inputs):
        raise ParameterError(
            "this ranker reads formulas or the scores of other rankers, whose part of a score belongs to no single "
            "feature: `rankwell explain` shows them by name."
        )
    if n_rounds is not None:
        description = description.first_rounds(n_rounds)
    contributions = np.zeros((dataset.n_docs, description.n_features + 1))
    for rows, part in dataset.parts() if dataset.is_on_disk else [(slice(None), dataset)]:
        if description.n_rounds is None or len(description.layers) > 1:
            contributions[rows] = _by_row(description, part)
        else:
            contributions[rows] = _of_trees(description, part)
    return contributions


def _of_two_passes(description: RankerDescription, dataset: RankingDataset, n_rounds: int | None) -> np.ndarray:
    contributions = np.zeros((dataset.n_docs, description.n_features + 1))
    for rows, part in dataset.parts():
        contributions[rows] = _of_queries_in_two_passes(description, part, n_rounds)
    return contributions


def _of_queries_in_two_passes(
    description: RankerDescription, dataset: RankingDataset, n_rounds: int | None
) -> np.ndarray:
    run = run_first_pass(description, dataset, score_description)
    contributions = np.zeros((dataset.n_docs, description.n_features + 1))
    contributions[run.kept] = feature_contributions(
        description.second_pass, rows_of(dataset, run.kept), n_rounds=n_rounds
    )
    below = np.setdiff1d(np.arange(dataset.n_docs), run.kept)
    if len(below):
        first = feature_contributions(run.part.description, run.dataset)
        for column, feature in enumerate(run.part.features):
            contributions[below, feature] += first[below, column]
        offset = score_description(description, dataset, n_rounds=n_rounds) - run.scores
        contributions[below, -1] = first[below, -1] + offset[below]
    return contributions


def _by_row(description: RankerDescription, dataset: RankingDataset) -> np.ndarray:
    explained = explain_rows(description, dataset, range(dataset.n_docs))
    shares = [[one.features.get(name, 0.0) for name in description.feature_names] for one in explained]
    return np.column_stack(
        (np.reshape(shares, (dataset.n_docs, description.n_features)), [one.feature_base for one in explained])
    )


def _of_trees(description: RankerDescription, dataset: RankingDataset) -> np.ndarray:
    """Of a description that is a sum or a mean of trees."""
    trees = description.inputs[0]
    assert isinstance(trees, TreeInputs)
    slope = 1.0 / max(1, len(trees)) if isinstance(description.layers[0], Mean) else 1.0
    shapley = TreeShapley(trees)
    features = model_columns(description, dataset)
    contributions = np.empty((dataset.n_docs, description.n_features + 1))
    contributions[:, -1] = run_layers(description.layers, [0.0] * len(trees))[0] + slope * shapley.expected.sum()
    for start in range(0, dataset.n_docs, _ROWS_AT_A_TIME):
        block = features[start : start + _ROWS_AT_A_TIME]
        rows = np.ascontiguousarray(block.toarray() if is_sparse(block) else block, np.float32)
        contributions[start : start + _ROWS_AT_A_TIME, :-1] = slope * shapley.sums(rows)
    return contributions
