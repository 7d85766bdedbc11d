"""Parameters by the names that other libraries give them: what LightGBM, XGBoost, CatBoost and scikit-learn users type.

A name that a ranker does not have is refused; if it is known from elsewhere, the message says what the ranker has for
it, or why there is nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection

_STEPS = ("n_rounds", "n_epochs", "max_iter")
_PENALTY = ("ridge", "weight_decay", "C", "l2")
_NO_TREES = "no trees are grown"
_CLASS_IS_OBJECTIVE = "the ranker's class is its objective"
_WATCHING = "pass a callback to fit, or set the level of the logger 'rankwell'"
_NO_SAMPLING = "every step uses all rows and features, or draws them anew"

# Names of the same thing elsewhere: the parameters it may be here, of which a ranker has at most one.
_SAME: dict[tuple[str, ...], tuple[str, ...]] = {
    ("n_estimators", "num_boost_round", "num_iterations", "num_iteration", "num_trees", "num_round", "nrounds"): _STEPS,
    ("iterations", "n_iter", "max_iter", "n_rounds", "n_epochs", "epochs", "n_iterations"): _STEPS,
    ("learning_rate", "eta", "shrinkage_rate", "learning_rate_init"): ("learning_rate",),
    ("max_bin", "max_bins", "border_count"): ("n_bins",),
    ("early_stopping_round", "early_stopping", "n_iter_no_change", "od_wait"): ("early_stopping_rounds",),
    ("metric", "metrics", "eval_at", "ndcg_eval_at", "eval_metrics", "scoring"): ("eval_metric",),
    ("lambda", "lambda_", "reg_lambda", "lambda_l2", "l2_leaf_reg", "l2_regularization"): _PENALTY,
    ("alpha",): ("l1", *_PENALTY),
    ("reg_alpha", "lambda_l1"): ("l1",),
    ("num_leaves", "max_leaves", "max_leaf_nodes"): ("n_leaves",),
    ("max_depth", "depth"): ("max_depth",),
    ("min_child_samples", "min_data_in_leaf", "min_samples_leaf"): ("min_docs_leaf",),
    ("min_child_weight", "min_sum_hessian_in_leaf", "min_sum_hessian"): ("min_hessian_leaf",),
    ("min_split_gain", "min_gain_to_split", "gamma", "min_split_loss"): ("min_gain",),
    ("objective", "loss", "loss_function"): ("loss",),
    ("lambdarank_truncation_level", "lambdarank_num_pair_per_sample"): ("truncation",),
    ("lambdarank_norm", "lambdarank_normalization"): ("normalize_lambdas",),
    ("label_gain", "ndcg_exp_gain"): ("gain",),
    ("sigmoid",): ("sigma",),
    ("bagging_by_query",): ("query_fraction",),
    ("subsample", "bagging_fraction"): ("document_fraction",),
    ("colsample_bytree", "feature_fraction", "rsm"): ("feature_fraction",),
    ("colsample_bynode", "colsample_bylevel", "feature_fraction_bynode"): ("node_feature_fraction",),
    ("monotone_constraints", "monotone_constraint", "monotonic_cst", "mc"): ("increasing",),
    ("interaction_constraints", "interaction_cst"): ("interaction_groups",),
    (
        "categorical_feature",
        "cat_feature",
        "cat_features",
        "categorical_column",
        "enable_categorical",
        "feature_types",
    ): ("categorical_features",),
    ("cat_smooth",): ("category_smoothing",),
    ("cat_l2",): ("category_l2",),
    ("max_cat_threshold",): ("max_category_set",),
    ("grow_policy",): ("growth",),
    ("importance_type",): ("importance",),
    (
        "seed",
        "random_seed",
        "data_random_seed",
        "bagging_seed",
        "feature_fraction_seed",
        "objective_seed",
    ): ("random_state",),
    ("nthread", "num_threads", "num_thread", "thread_count", "n_threads"): ("n_jobs",),
    ("device_type", "task_type", "gpu_id"): ("device",),
    ("hidden_layer_sizes", "layers"): ("hidden",),
    ("solver",): ("optimizer",),
    ("batch_size",): ("batch_queries",),
    ("normalise", "normalization", "scaler"): ("normalize",),
    ("init_score", "base_margin"): (),
}
# Why rankers without such a parameter have none.
_REASONS = {
    **dict.fromkeys(("n_leaves", "max_depth", "min_docs_leaf", "min_hessian_leaf", "min_gain"), _NO_TREES),
    **dict.fromkeys(("increasing", "interaction_groups", "categorical_features", "growth"), _NO_TREES),
    **dict.fromkeys(("category_smoothing", "category_l2", "max_category_set"), _NO_TREES),
    "loss": _CLASS_IS_OBJECTIVE,
    **dict.fromkeys(("query_fraction", "document_fraction", "feature_fraction", "node_feature_fraction"), _NO_SAMPLING),
    **dict.fromkeys(("truncation", "gain"), "eval_convention says how labels become gains"),
}
# What else is to be said of a parameter that has another name here.
_REMARKS = {
    "C": " (the larger, the weaker the penalty)",
    "increasing": ", and decreasing: each is a list of features",
}
# Names of what is not here, and why.
_ABSENT: dict[tuple[str, ...], str] = {
    ("tree_method", "boosting_type", "boosting", "booster"): "a ranker has one way to be boosted",
    ("subsample_for_bin", "bagging_freq", "subsample_freq"): _NO_SAMPLING,
    ("verbose", "verbosity", "silent", "verbose_eval"): _WATCHING,
    ("callbacks",): "pass callback to fit",
    (
        "missing",
        "zero_as_missing",
        "use_missing",
    ): "NaN is missing, and 0 is a value; replace one by the other in the data",
    ("base_score",): "scores compare within a query only, so that what they begin at does not matter",
    ("deterministic",): "the same data, parameters and device always give the same model",
    ("first_metric_only",): "eval_metric is one metric",
    ("lambdarank_unbiased", "lambdarank_bias_norm", "lambdarank_position_bias_regularization"): (
        "clicks are corrected for their position before training, by `rankwell clicks`"
    ),
    ("scale_pos_weight", "is_unbalance", "class_weight"): (
        "documents are compared within a query, not counted by class; pass sample_weight to fit"
    ),
}
# Names of what trees do not have here, and why; other rankers have no trees.
_ABSENT_OF_TREES: dict[tuple[str, ...], str] = {
    ("linear_tree", "linear_trees", "linear_lambda"): "a leaf has one value",
    ("extra_trees", "extra_tree", "extra_seed"): (
        "every cut of a leaf is compared; node_feature_fraction draws the features that it may be cut by"
    ),
    ("path_smooth",): (
        "a leaf's value does not depend on the nodes above it; l2 makes it smaller, min_docs_leaf forbids small leaves"
    ),
    ("max_delta_step", "max_tree_output", "max_leaf_output"): (
        "a leaf's value has no limit; learning_rate, l2 and min_hessian_leaf make it smaller"
    ),
    ("data_sample_strategy", "top_rate", "other_rate"): (
        "documents are not drawn by their gradients (GOSS); query_fraction and document_fraction draw from all"
    ),
    ("pos_bagging_fraction", "neg_bagging_fraction"): (
        "documents are not drawn by their labels; query_fraction and document_fraction draw from all"
    ),
    ("rate_drop", "drop_rate", "skip_drop", "max_drop", "one_drop", "uniform_drop", "drop_seed"): (
        "no tree is dropped again (DART)"
    ),
    ("num_parallel_tree",): "a round has one tree; n_seeds trains several models at the same time and takes their mean",
    ("force_col_wise", "force_row_wise"): "bins have one layout",
    ("use_quantized_grad", "num_grad_quant_bins", "quant_train_renew_leaf", "stochastic_rounding"): (
        "gradients are always summed as whole numbers, of about 30 bits"
    ),
    ("lambdarank_pair_method",): "pairs count if the higher ranked document is among the first `truncation`",
    ("min_data_per_group",): "categories of fewer documents than category_smoothing are never in the set of a cut",
    ("max_cat_to_onehot",): "up to 4 categories are always cut one against the others",
}

# What to say of the arguments of methods elsewhere.
_ARGUMENTS: dict[str, dict[tuple[str, ...], str]] = {
    "fit": {
        ("callbacks",): "It is called callback here: one function, called after each step.",
        ("feature_name", "feature_names"): (
            "Names are the data's: pass a frame, or a RankingDataset with feature_names."
        ),
        ("init_score", "base_margin"): "Scores begin at 0. To continue from a ranker, pass init_model.",
        ("xgb_model",): "It is called init_model here.",
        ("eval_sample_weight", "sample_weight_eval_set"): "Pass eval_set as a RankingDataset, which has weights.",
        ("eval_names",): "Validation sets have numbers.",
    },
    "predict": {
        ("num_iteration", "iteration_range", "ntree_limit"): (
            "It is called n_rounds here: so many rounds, from the first on."
        ),
        ("pred_contrib", "pred_contribs"): "Call contributions instead of predict.",
        ("raw_score", "output_margin"): "Scores are always raw.",
        ("pred_leaf",): "There is no such thing here: the leaves of rows are not given.",
    },
}


def hint(name: str, known: Collection[str]) -> str:
    """What to say about the unknown parameter `name` of a ranker with the parameters `known`: "" or a sentence."""
    lower = name.lower()
    here = [own for names, owns in _SAME.items() if lower in names for own in owns if own in known]
    if here:
        return f"It is called {here[0]} here{_REMARKS.get(here[0], '')}."
    elsewhere = [own for names, owns in _SAME.items() if lower in names for own in owns]
    reason = next((reason for names, reason in _ABSENT.items() if lower in names), None)
    of_trees = next((reason for names, reason in _ABSENT_OF_TREES.items() if lower in names), None)
    reason = reason or (of_trees and (of_trees if "n_leaves" in known else _NO_TREES))
    reason = reason or next((_REASONS[own] for own in elsewhere if own in _REASONS), None)
    if reason is not None:
        return f"There is no such thing here: {reason}."
    if any(lower in names for names in _SAME):
        return "This ranker has nothing that corresponds to it."
    close = difflib.get_close_matches(lower, known, n=1)
    return f"Did you mean {close[0]}?" if close else ""


def unknown_parameter(owner: str, name: str, known: Collection[str]) -> str:
    """The message about a parameter that `owner` does not have."""
    said = hint(name, known) or f"It has {', '.join(known)}."
    return f"{owner} has no parameter {name!r}. {said}"


def unknown_argument(owner: str, method: str, name: str, known: Collection[str], parameters: Collection[str]) -> str:
    """The message about an argument that a method of `owner`, which has the parameters, does not have."""
    lower = name.lower()
    said = next((said for names, said in _ARGUMENTS.get(method, {}).items() if lower in names), "")
    owns = [own for names, owns in _SAME.items() if lower in names for own in owns if own in parameters]
    if not said and (lower in parameters or owns):
        said = f"It is a parameter of the ranker: {owner}({lower if lower in parameters else owns[0]}=...)."
    said = said or hint(name, known) or f"It has {', '.join(known)}."
    return f"{owner}.{method} has no argument {name!r}. {said}"
