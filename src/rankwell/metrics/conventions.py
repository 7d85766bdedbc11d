"""Conventions: how published numbers and other libraries count, by name.

The same ranking has a different NDCG in every one of them, so a number without its convention means little. The rules
of each were taken from the tool itself: `tests/compare` runs the libraries and expects the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from rankwell.errors import ParameterError
from rankwell.kernels.ranking_metrics.rules import (
    TIES_AVERAGE,
    TIES_FILE_ORDER,
    TIES_LOWEST_LABEL_FIRST,
    TIES_REVERSE_FILE_ORDER,
    MetricRules,
)

_ALLOWED: dict[str, tuple[str, ...]] = {
    "gain": ("2^label - 1", "label"),
    "discount": ("log2(rank + 1)", "log2(rank)"),
    "short_list": ("as it is", "zero"),
    "short_precision": ("pad", "own length"),
    "no_relevant": ("zero", "one", "left out"),
    "no_relevant_average_precision": ("as no_relevant", "zero"),
    "ties": ("file order", "reverse file order", "average", "lowest label first"),
    "cut_average_precision": ("relevant", "reachable"),
    "negative_labels": ("refuse", "no gain"),
    "score_type": ("float64", "float32"),
}
_TIE_CODES = {
    "file order": TIES_FILE_ORDER,
    "reverse file order": TIES_REVERSE_FILE_ORDER,
    "average": TIES_AVERAGE,
    "lowest label first": TIES_LOWEST_LABEL_FIRST,
}
_WITHOUT_RELEVANT = {"zero": 0.0, "one": 1.0, "left out": np.nan}


@dataclass(frozen=True)
class Convention:
    """How rankings are counted. Make your own with ``dataclasses.replace(letor4, name="mine", relevance_level=3)``.

    Attributes
    ----------
    name : str
        Printed with every number.
    source : str
        Whose numbers it reproduces.
    gain : ``"2^label - 1"`` or ``"label"``
        What a document is worth in NDCG.
    discount : ``"log2(rank + 1)"`` or ``"log2(rank)"``
        What it is divided by at a rank counted from 1; with the second, ranks 1 and 2 are undiscounted.
    short_list : ``"as it is"`` or ``"zero"``
        NDCG@k of a query with fewer than k documents: of the documents it has, or 0.
    short_precision : ``"pad"`` or ``"own length"``
        P@k of such a query divides by k, or by the documents it has.
    no_relevant : ``"zero"``, ``"one"`` or ``"left out"``
        What NDCG, AP and recall give a query without relevant documents, where they are 0/0. P@k, reciprocal rank and
        ERR are 0 there, but leave it out with the others. For NDCG and ERR it is a query without a label above 0, for
        the others one without a label from `relevance_level` on. An empty query is such a query.
    relevance_level : float
        The smallest label that counts as in AP, reciprocal rank, P@k and recall.
    no_relevant_average_precision : ``"as no_relevant"`` or ``"zero"``
        What AP gives such a query, if it differs from the others.
    ties : ``"file order"``, ``"reverse file order"``, ``"average"`` or ``"lowest label first"``
        Documents with equal scores keep the order of their rows, or the opposite order. ``"average"`` is
        scikit-learn's: NDCG is the mean over all orders, AP takes them as retrieved together; other metrics, which
        scikit-learn does not have, keep file order. ``"lowest label first"`` is CatBoost's: the worst of all orders.
    cut_average_precision : ``"relevant"`` or ``"reachable"``
        AP@k divides by all relevant documents of the query, or by those that k places could hold.
    negative_labels : ``"refuse"`` or ``"no gain"``
        NDCG and ERR of negative labels is an error, or they count like label 0.
    score_type : ``"float64"`` or ``"float32"``
        The precision in which scores are compared: two scores that round to one float32 can be a tie.
    """

    name: str
    source: str
    gain: Literal["2^label - 1", "label"] = "2^label - 1"
    discount: Literal["log2(rank + 1)", "log2(rank)"] = "log2(rank + 1)"
    short_list: Literal["as it is", "zero"] = "as it is"
    short_precision: Literal["pad", "own length"] = "pad"
    no_relevant: Literal["zero", "one", "left out"] = "zero"
    relevance_level: float = 1.0
    no_relevant_average_precision: Literal["as no_relevant", "zero"] = "as no_relevant"
    ties: Literal["file order", "reverse file order", "average", "lowest label first"] = "file order"
    cut_average_precision: Literal["relevant", "reachable"] = "relevant"
    negative_labels: Literal["refuse", "no gain"] = "refuse"
    score_type: Literal["float64", "float32"] = "float64"

    def __post_init__(self) -> None:
        for field, allowed in _ALLOWED.items():
            if getattr(self, field) not in allowed:
                names = ", ".join(repr(value) for value in allowed)
                raise ParameterError(f"{field} of a convention must be one of {names}, got {getattr(self, field)!r}.")
        if not np.isfinite(self.relevance_level):
            raise ParameterError(f"must be a finite label, got {self.relevance_level}.", parameter="relevance_level")

    def __str__(self) -> str:
        return self.name

    def discounts(self, n_places: int) -> np.ndarray:
        """The factor of each place, the first place first, float64 (n_places,)."""
        rank = np.arange(1, n_places + 1, dtype=np.float64)
        if self.discount == "log2(rank + 1)":
            return 1.0 / np.log2(rank + 1.0)
        return 1.0 / np.maximum(1.0, np.log2(rank))

    def rules(self) -> MetricRules:
        """The same as plain numbers, for the kernels."""
        without = _WITHOUT_RELEVANT[self.no_relevant]
        return MetricRules(
            exponential_gain=self.gain == "2^label - 1",
            short_list_is_zero=self.short_list == "zero",
            precision_pads=self.short_precision == "pad",
            cut_by_reachable=self.cut_average_precision == "reachable",
            relevance_level=float(self.relevance_level),
            ties=_TIE_CODES[self.ties],
            ratio_without_relevant=without,
            average_precision_without_relevant=0.0 if self.no_relevant_average_precision == "zero" else without,
            count_without_relevant=0.0 if without == 1.0 else without,
        )

    def to_dict(self) -> dict[str, Any]:
        """Every rule by its name, for JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


letor4 = Convention(
    name="letor4",
    source="LETOR 4.0's Eval-Score-4.0.pl and its published tables",
    discount="log2(rank)",
    short_list="zero",
)
mslr = Convention(
    name="mslr",
    source="the evaluation script of MSLR-WEB10K and MSLR-WEB30K",
    discount="log2(rank)",
    short_list="zero",
    relevance_level=2.0,
)
gbdt = Convention(
    name="gbdt",
    source="LightGBM (ndcg, map) and XGBoost (ndcg, map, pre)",
    short_precision="own length",
    no_relevant="one",
    cut_average_precision="reachable",
)
catboost = Convention(
    name="catboost",
    source="CatBoost (NDCG, MAP, MRR, PrecisionAt, RecallAt)",
    gain="label",
    short_precision="own length",
    no_relevant="one",
    no_relevant_average_precision="zero",
    ties="lowest label first",
    cut_average_precision="reachable",
)
trec = Convention(
    name="trec",
    source="trec_eval, pytrec_eval and ir-measures",
    gain="label",
    ties="reverse file order",
    negative_labels="no gain",
    score_type="float32",
)
sklearn = Convention(
    name="sklearn",
    source="scikit-learn's ndcg_score and average_precision_score",
    gain="label",
    ties="average",
)
burges = Convention(
    name="burges",
    source="Burges et al. 2005 (RankNet), the Yahoo! challenge and the TREC Web track's gdeval",
    no_relevant="left out",
)

CONVENTIONS: dict[str, Convention] = {
    convention.name: convention for convention in (letor4, mslr, gbdt, catboost, trec, sklearn, burges)
}

# The gain and discount that most papers of the last fifteen years mean by NDCG. A query without relevant documents says
# nothing about a ranking: leaving it out makes means comparable between collections with more or fewer of them, while
# counting 1 favours every ranking and counting 0 penalises every ranking.
DEFAULT = burges


def get_convention(convention: str | Convention) -> Convention:
    """A convention by its name; a `Convention` is returned as it is."""
    if isinstance(convention, Convention):
        return convention
    if convention not in CONVENTIONS:
        names = ", ".join(CONVENTIONS)
        raise ParameterError(f"must be one of {names} (or a Convention), got {convention!r}.", parameter="convention")
    return CONVENTIONS[convention]
