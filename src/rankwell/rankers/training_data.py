"""What `fit` is given, as datasets: rows with or without queries, weights, validation sets."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.data.validation import as_weights
from rankwell.errors import DataError
from rankwell.rankers.feature_choices import feature_numbers
from rankwell.rankers.feature_columns import columns_in_order
from rankwell.scoring.description import default_feature_names

logger = logging.getLogger("rankwell")


def as_dataset(X: Any, y: Any = None, *, qid: Any = None, group: Any = None) -> RankingDataset:
    """X as a RankingDataset: X itself if it is one."""
    if not isinstance(X, RankingDataset):
        return RankingDataset(X, y, qid=qid, group=group)
    if y is not None or qid is not None or group is not None:
        raise DataError("a RankingDataset has its own labels and queries: do not pass y, qid or group with it.")
    return X


def warn_of_categories(train: RankingDataset, ranker: str, parameters: Mapping[str, Any]) -> None:
    """Say which columns of categories the ranker, which has the parameters, takes for numbers."""
    names = train.feature_names
    if names is None or not train.category_columns:
        return
    chosen = feature_numbers("categorical_features", parameters.get("categorical_features"), names)
    columns = [name for name in train.category_columns if names.index(name) not in chosen]
    if columns:
        logger.warning(
            "%s takes the pandas categories of %s for numbers%s.",
            ranker,
            ", ".join(columns),
            f"; to cut by sets of them, name them: categorical_features={[names[i] for i in chosen] + columns!r}"
            if "categorical_features" in parameters
            else "",
        )


def lacks_queries(X: Any, qid: Any, group: Any) -> bool:
    """Whether nothing says which of several rows belong to a query."""
    return not isinstance(X, RankingDataset) and qid is None and group is None


def weighted(dataset: RankingDataset, sample_weight: Any) -> RankingDataset:
    """The dataset with weights by query or by row, told apart by their number."""
    if sample_weight is None:
        return dataset
    weights = np.asarray(sample_weight)
    length = len(weights) if weights.ndim else 1
    if length not in (dataset.n_queries, dataset.n_docs):
        raise DataError(
            f"sample_weight must have one weight per query ({dataset.n_queries}) or per row ({dataset.n_docs}), "
            f"got {length}."
        )
    as_weights("sample_weight", weights, length)
    by_query = length == dataset.n_queries
    changed = dataset.replace(**{"query_weights" if by_query else "document_weights": weights})
    if length and not weights.any():
        raise DataError("every sample_weight is zero: there is nothing to learn from. Give some a weight above 0.")
    return changed


def evaluation_sets(eval_set: Any, eval_qid: Any, eval_group: Any, train: RankingDataset) -> tuple[RankingDataset, ...]:
    """The validation sets of `fit`, each with the features of the training data and with labels; () for None.

    Several are a list, and `eval_qid` and `eval_group` are then lists of as many.
    """
    if eval_set is None:
        return ()
    if not isinstance(eval_set, list):
        return (_evaluation_set(eval_set, eval_qid, eval_group, train, "eval_set"),)
    if not eval_set:
        raise DataError("must hold at least one validation set, got an empty list.", parameter="eval_set")
    qids, groups = (
        _one_each(name, values, len(eval_set)) for name, values in (("eval_qid", eval_qid), ("eval_group", eval_group))
    )
    return tuple(
        _evaluation_set(part, qid, group, train, "eval_set" if len(eval_set) == 1 else f"eval_set[{number}]")
        for number, (part, qid, group) in enumerate(zip(eval_set, qids, groups, strict=True))
    )


def _one_each(name: str, values: Any, n_sets: int) -> Sequence[Any]:
    """Queries of each validation set. Those of a single set need not be in a list of their own."""
    if values is None:
        return [None] * n_sets
    if isinstance(values, list | tuple) and len(values) == n_sets and (n_sets > 1 or np.ndim(values[0]) > 0):
        return values
    if n_sets == 1:
        return [values]
    raise DataError(
        f"must be a list of {n_sets}, one for each validation set of eval_set (None for one that is a RankingDataset).",
        parameter=name,
    )


def _evaluation_set(part: Any, qid: Any, group: Any, train: RankingDataset, name: str) -> RankingDataset:
    if isinstance(part, RankingDataset):
        dataset = as_dataset(part, qid=qid, group=group)
    elif isinstance(part, tuple) and len(part) == 2:
        dataset = as_dataset(*part, qid=qid, group=group)
    else:
        raise DataError(
            "must be a RankingDataset or (X, y), or a list of them; queries go into eval_qid or eval_group.",
            parameter=name,
        )
    if dataset.n_features != train.n_features:
        raise DataError(
            f"must have the {train.n_features} features of the training data, it has {dataset.n_features}.",
            parameter=name,
        )
    if not dataset.has_labels:
        raise DataError("must have labels.", parameter=name)
    return columns_in_order(train.feature_names or default_feature_names(train.n_features), dataset, name)


def stacked(datasets: Sequence[RankingDataset]) -> RankingDataset:
    """One dataset with the queries of all of them, in order; the dataset itself if there is only one.

    What depends on neither labels' metrics nor weights (features, scores) is then computed once for all.
    """
    if len(datasets) == 1:
        return datasets[0]
    if any(dataset.is_sparse for dataset in datasets):
        from scipy import sparse

        features = sparse.vstack([sparse.csr_matrix(dataset.features) for dataset in datasets], format="csr")
    else:
        features = np.vstack([dataset.features for dataset in datasets])
    return RankingDataset(
        features,
        np.concatenate([dataset.labels for dataset in datasets]),
        group=np.concatenate([dataset.query_sizes for dataset in datasets]),
        feature_names=datasets[0].feature_names,
    )
