"""Judged documents that are not candidates count as missed."""

from __future__ import annotations

import math

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.demo.judged_ranking import evaluate_candidates

# Query 7: the item second, a related document is missed. Query 9: nothing but grade 0 found, the item missed.
CANDIDATES = RankingDataset(np.zeros((5, 1)), [0, 2, 0, 0, 0], qid=[7, 7, 7, 9, 9])
SCORES = np.array([3.0, 2.0, 1.0, 2.0, 1.0])
MISSED = {7: [1], 9: [2], 11: [2, 1]}  # query 11 found nothing at all


def figures(metric: str, convention: str, missed: dict[int, list[int]]) -> np.ndarray:
    evaluation = evaluate_candidates(CANDIDATES, SCORES, missed, depth=4, metrics=[metric], convention=convention)
    return evaluation.per_query[metric]


def test_the_ideal_ranking_holds_what_was_missed() -> None:
    ideal = 3 / math.log2(2) + 1 / math.log2(3)
    expected = [3 / math.log2(3) / ideal, 0, 0]
    np.testing.assert_allclose(figures("ndcg@4", "burges", MISSED), expected, rtol=1e-12)


def test_without_missed_documents_nothing_changes() -> None:
    expected = [3 / math.log2(3) / 3, math.nan]
    np.testing.assert_allclose(figures("ndcg@4", "burges", {7: [], 9: []}), expected, rtol=1e-12)


def test_missed_documents_are_never_found_within_the_depth() -> None:
    assert figures("recall@4", "burges", MISSED).tolist() == [0.5, 0, 0]
    assert figures("mrr@4", "mslr", MISSED).tolist() == [0.5, 0, 0]
    # They are one place after the depth.
    assert figures("recall@5", "burges", MISSED).tolist() == [1, 1, 0.5]
