"""Values of parameters by the names that other libraries give them, as `foreign_parameters` has names of parameters."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from rankwell.parameters import check_choice

# By parameter: names elsewhere, in lower case, and the value that it is here.
VALUES_ELSEWHERE: dict[str, dict[tuple[str, ...], str]] = {
    "loss": {
        ("rank_xendcg", "xendcg_mart", "xe_ndcg", "xe_ndcg_mart"): "xendcg",
        ("rank:ndcg", "ndcg", "lambdamart"): "lambdarank",
        ("rank:pairwise", "ranknet", "pairlogit", "pairlogitpairwise"): "pairwise",
        ("rank:map",): "map",
    },
    "growth": {
        ("lossguide", "leafwise", "leaf_wise", "leaf-wise"): "leaf",
        ("symmetrictree", "oblivious"): "symmetric",
    },
    "importance": {("weight", "frequency"): "split", ("total_gain",): "gain"},
    "gain": {("true",): "exponential", ("false",): "linear"},
}
_NO_RANKING = "It does not compare the documents of a query, as a loss of rankings does."
# What else is said of values that are not here.
_ABSENT: dict[str, dict[tuple[str, ...], str]] = {
    "loss": {
        ("regression", "regression_l2", "l2", "mse", "rmse", "reg:squarederror", "queryrmse"): _NO_RANKING,
        (
            "binary",
            "binary:logistic",
            "logloss",
            "cross_entropy",
            "multiclass",
            "poisson",
            "count:poisson",
        ): _NO_RANKING,
    },
    "growth": {
        ("depthwise", "levelwise", "level_wise", "level-wise"): (
            "Trees grow leaf by leaf, or by one cut for all leaves of a level; max_depth limits both."
        ),
    },
}
_GAIN_LIST = "A list of gains is not taken: pass the gain of each row as its label, with gain='linear'."


def value_hint(parameter: str, value: Any, allowed: Collection[str]) -> str:
    """What to say about a value of `parameter` that is none of `allowed`: "" or a sentence."""
    if parameter == "gain" and not isinstance(value, str) and hasattr(value, "__len__"):
        return _GAIN_LIST
    lower = str(value).lower()
    own = next((own for names, own in VALUES_ELSEWHERE.get(parameter, {}).items() if lower in names), None)
    if own in allowed:
        return f"It is called {own!r} here."
    return next((said for names, said in _ABSENT.get(parameter, {}).items() if lower in names), "")


def check_named(parameter: str, value: Any, allowed: Collection[str]) -> None:
    """Refuse a value that is not one of the names `allowed`, with what it is called here if that is known."""
    check_choice(parameter, value, allowed, value_hint(parameter, value, allowed))
