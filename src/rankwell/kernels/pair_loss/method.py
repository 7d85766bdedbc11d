"""Chooses the cheaper method of summing over support pairs, by a model of the cost per document on a kind of device."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

logger = logging.getLogger("rankwell")

METHODS = ("direct", "order-statistic")


@dataclass(frozen=True)
class SumCosts:
    """The cost per document of the sums of one Hessian-vector product, in any unit.

    direct : `few` in a query of up to `few_levels` levels, else fixed + per_level·levels
    order-statistic : tree_fixed + tree_per_bit·log2(levels)
    """

    few_levels: int
    few: float
    fixed: float
    per_level: float
    tree_fixed: float
    tree_per_bit: float


def choose_method(wanted: str, query_sizes: np.ndarray, n_levels: np.ndarray, costs: SumCosts) -> str:
    """`wanted`, or for ``"auto"`` the cheaper of `METHODS` for queries of these sizes and numbers of levels.

    The choice depends on the data, not on measured times: the same data gives the same model.
    """
    if wanted != "auto":
        return wanted
    method, most = cheaper_method(query_sizes, n_levels, costs), int(n_levels.max(initial=0))
    logger.info("method='auto' picked %s (at most %d label levels in a query)", method, most)
    return method


def cheaper_method(query_sizes: np.ndarray, n_levels: np.ndarray, costs: SumCosts) -> str:
    """The cheaper one of `METHODS`."""
    has_pairs = n_levels > 1
    sizes, levels = query_sizes[has_pairs].astype(np.float64), n_levels[has_pairs].astype(np.float64)
    by_level = np.where(levels <= costs.few_levels, costs.few, costs.fixed + costs.per_level * levels)
    # Not a dot product: BLAS would use all cores for it, and its threads spin for a tenth of a second afterwards.
    direct = float((sizes * by_level).sum())
    tree = float((sizes * (costs.tree_fixed + costs.tree_per_bit * np.log2(levels))).sum())
    return "direct" if direct <= tree else "order-statistic"
