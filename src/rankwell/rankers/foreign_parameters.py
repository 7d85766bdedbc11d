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
_READING = "columns are named where data are read: rankwell.read(path, label=..., qid=...)"
_NO_SAMPLING = "every step uses all rows and features, or draws them anew"

# Names of the same thing elsewhere: the parameters it may be here, of which a ranker has at most one.
_SAME: dict[tuple[str, ...], tuple[str, ...]] = {
    (
        "n_estimators",
        "num_boost_round",
        "num_iterations",
        "num_iteration",
        "num_tree",
        "num_trees",
        "num_round",
        "num_rounds",
        "nrounds",
    ): _STEPS,
    ("iterations", "n_iter", "max_iter", "n_rounds", "n_epochs", "epochs", "n_iterations"): _STEPS,
    ("learning_rate", "eta", "shrinkage_rate", "learning_rate_init"): ("learning_rate",),
    ("max_bin", "max_bins", "border_count"): ("n_bins",),
    ("early_stopping_round", "early_stopping", "n_iter_no_change", "od_wait"): ("early_stopping_rounds",),
    (
        "metric",
        "metrics",
        "metric_types",
        "eval_at",
        "ndcg_at",
        "ndcg_eval_at",
        "map_at",
        "map_eval_at",
        "eval_metrics",
        "scoring",
    ): ("eval_metric",),
    ("lambda", "lambda_", "reg_lambda", "lambda_l2", "l2_leaf_reg", "l2_regularization"): _PENALTY,
    ("alpha",): ("l1", *_PENALTY),
    ("reg_alpha", "lambda_l1", "l1_regularization"): ("l1",),
    ("num_leaves", "num_leaf", "max_leaves", "max_leaf", "max_leaf_nodes"): ("n_leaves",),
    ("max_depth", "depth"): ("max_depth",),
    ("min_child_samples", "min_data_in_leaf", "min_data_per_leaf", "min_data", "min_samples_leaf"): ("min_docs_leaf",),
    (
        "min_child_weight",
        "min_sum_hessian_in_leaf",
        "min_sum_hessian_per_leaf",
        "min_sum_hessian",
        "min_hessian",
    ): ("min_hessian_leaf",),
    ("min_split_gain", "min_gain_to_split", "gamma", "min_split_loss"): ("min_gain",),
    ("objective", "objective_type", "app", "application", "loss", "loss_function"): ("loss",),
    ("lambdarank_truncation_level", "lambdarank_num_pair_per_sample"): ("truncation",),
    ("lambdarank_norm", "lambdarank_normalization"): ("normalize_lambdas",),
    ("label_gain", "ndcg_exp_gain"): ("gain",),
    ("sigmoid",): ("sigma",),
    ("bagging_by_query",): ("query_fraction",),
    ("subsample", "bagging_fraction", "bagging", "sub_row"): ("document_fraction",),
    ("colsample_bytree", "feature_fraction", "sub_feature", "rsm"): ("feature_fraction",),
    ("colsample_bynode", "colsample_bylevel", "feature_fraction_bynode", "sub_feature_bynode"): (
        "node_feature_fraction",
    ),
    ("monotone_constraints", "monotone_constraint", "monotonic_cst", "mc"): ("increasing",),
    ("interaction_constraints", "interaction_cst"): ("interaction_groups",),
    (
        "categorical_feature",
        "cat_feature",
        "cat_features",
        "cat_column",
        "categorical_features",
        "categorical_column",
        "enable_categorical",
        "feature_types",
    ): ("categorical_features",),
    ("cat_smooth",): ("category_smoothing",),
    ("cat_l2",): ("category_l2",),
    ("max_cat_threshold",): ("max_category_set",),
    ("grow_policy",): ("growth",),
    ("importance_type", "saved_feature_importance_type"): ("importance",),
    (
        "seed",
        "random_seed",
        "data_random_seed",
        "data_seed",
        "bagging_seed",
        "bagging_fraction_seed",
        "feature_fraction_seed",
        "objective_seed",
    ): ("random_state",),
    ("nthread", "nthreads", "num_threads", "num_thread", "thread_count", "n_threads"): ("n_jobs",),
    ("device_type", "task_type", "gpu_id", "gpu_device_id", "gpu_platform_id"): ("device",),
    ("snapshot_freq", "save_period"): ("checkpoint_every",),
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
    ("tree_method", "boosting_type", "boosting", "boost", "booster", "updater"): "a ranker has one way to be boosted",
    ("subsample_for_bin", "bin_construct_sample_cnt", "bagging_freq", "subsample_freq"): _NO_SAMPLING,
    ("verbose", "verbosity", "silent", "verbose_eval"): _WATCHING,
    ("callbacks",): "pass callback to fit",
    (
        "missing",
        "zero_as_missing",
        "use_missing",
    ): "NaN is missing, and 0 is a value; replace one by the other in the data",
    (
        "base_score",
        "boost_from_average",
    ): "scores compare within a query only, so that what they begin at does not matter",
    ("deterministic",): "the same data, parameters and device always give the same model",
    ("first_metric_only",): "eval_metric is one metric",
    ("lambdarank_unbiased", "lambdarank_bias_norm", "lambdarank_position_bias_regularization"): (
        "clicks are corrected for their position before training, by `rankwell clicks`"
    ),
    ("scale_pos_weight", "is_unbalance", "unbalance", "unbalanced_sets", "class_weight"): (
        "documents are compared within a query, not counted by class; pass sample_weight to fit"
    ),
    ("multi_strategy", "num_class", "num_classes", "multi_error_top_k", "auc_mu_weights"): "a ranker gives one score",
    ("fair_c", "reg_sqrt", "tweedie_variance_power", "poisson_max_delta_step"): "losses are those of rankings",
    ("validate_parameters",): "unknown parameters are always refused",
    ("metric_freq", "output_freq"): "every step is measured on eval_set",
    ("is_provide_training_metric", "training_metric", "is_training_metric", "train_metric"): (
        "pass the training data to fit as one of several eval_sets"
    ),
    ("early_stopping_min_delta",): "whatever is better counts; early_stopping_rounds is the patience",
    ("refit_decay_rate",): "a model is not refitted; to continue from it, pass init_model to fit",
    ("process_type", "refresh_leaf"): "trees are not changed later; to continue from a model, pass init_model to fit",
    ("feature_contri", "feature_contrib", "feature_penalty", "fc", "fp", "feature_weights"): (
        "features have no weights; leave out the columns that a model should not use"
    ),
    ("cegb_tradeoff", "cegb_penalty_split", "cegb_penalty_feature_lazy", "cegb_penalty_feature_coupled"): (
        "features have no price in training; rankwell.Cascade ranks with cheap ones first"
    ),
    ("task", "config", "config_file"): "commands have their own names and options: rankwell --help",
    ("data", "data_filename", "train", "train_data", "train_data_file"): (
        "data are passed to fit; rankwell.read reads a file"
    ),
    ("valid", "valid_data", "valid_data_file", "valid_filenames", "test", "test_data", "test_data_file"): (
        "validation data are passed to fit as eval_set"
    ),
    ("input_model", "model_in", "model_input"): "a model to continue from is passed to fit as init_model",
    ("output_model", "model_out", "model_output"): "call save with the path of the model",
    ("convert_model", "convert_model_file", "convert_model_language"): "rankwell.export writes a ranker as C",
    ("save_binary", "is_save_binary", "is_save_binary_file"): (
        "rankwell.convert writes data as Feather, which is quick to read"
    ),
    ("header", "has_header", "label_column", "label", "weight_column", "weight", "parser_config_file"): _READING,
    ("ignore_column", "ignore_feature", "blacklist"): "RankingDataset.from_frame takes the features that it is to have",
    ("group_column", "group", "group_id", "query_column", "query", "query_id"): (
        "queries are passed to fit as qid or group, or named where data are read (rankwell.read)"
    ),
    ("precise_float_parser",): "numbers are always read exactly",
    ("two_round", "two_round_loading", "use_two_round_loading", "histogram_pool_size", "hist_pool_size"): (
        "rankwell.read(path, memory=...) limits the memory"
    ),
    ("is_enable_sparse", "is_sparse", "enable_sparse", "sparse"): "sparse matrices are taken as they are",
    (
        "num_machines",
        "num_machine",
        "machines",
        "workers",
        "nodes",
        "machine_list_filename",
        "machine_list_file",
        "machine_list",
        "mlist",
        "local_listen_port",
        "local_port",
        "port",
        "time_out",
        "pre_partition",
        "is_pre_partition",
        "tree_learner",
        "tree_learner_type",
        "tree_type",
        "tree",
        "top_k",
        "topk",
        "num_gpu",
        "gpu_device_id_list",
    ): "fit_cluster trains with several processes, machines and GPUs",
    ("gpu_use_dp",): "every device gives the same model",
    (
        "predict_raw_score",
        "is_predict_raw_score",
        "predict_rawscore",
        "raw_score",
    ): "scores are always raw",
    ("predict_contrib", "is_predict_contrib", "contrib"): "call contributions",
    ("predict_leaf_index", "is_predict_leaf_index", "leaf_index"): "the leaves of rows are not given",
    ("num_iteration_predict",): "pass n_rounds to predict",
    ("start_iteration_predict",): "predict begins with the first round",
    ("pred_early_stop", "pred_early_stop_freq", "pred_early_stop_margin"): "predict adds up all rounds, or n_rounds",
    ("predict_disable_shape_check",): "predict takes the columns that the ranker was trained on",
    (
        "output_result",
        "predict_result",
        "prediction_result",
        "predict_name",
        "prediction_name",
        "pred_name",
        "name_pred",
    ): "predict returns the scores; the command rankwell predict writes them",
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
    ("data_sample_strategy", "sampling_method", "top_rate", "other_rate"): (
        "documents are not drawn by their gradients (GOSS); query_fraction and document_fraction draw from all"
    ),
    (
        "pos_bagging_fraction",
        "pos_bagging",
        "pos_subsample",
        "pos_sub_row",
        "neg_bagging_fraction",
        "neg_bagging",
        "neg_subsample",
        "neg_sub_row",
    ): ("documents are not drawn by their labels; query_fraction and document_fraction draw from all"),
    ("rate_drop", "drop_rate", "skip_drop", "max_drop", "one_drop", "uniform_drop", "drop_seed", "xgboost_dart_mode"): (
        "no tree is dropped again (DART)"
    ),
    ("num_parallel_tree",): "a round has one tree; n_seeds trains several models at the same time and takes their mean",
    ("force_col_wise", "force_row_wise", "enable_bundle", "is_enable_bundle", "bundle"): "bins have one layout",
    ("max_bin_by_feature", "min_data_in_bin", "forcedbins_filename"): (
        "n_bins and binning make the bins of all features"
    ),
    ("feature_pre_filter",): "features that no cut may use are left alone",
    ("forcedsplits_filename", "forced_splits_filename", "forced_splits_file", "forced_splits", "fs"): (
        "no cut is given beforehand"
    ),
    ("monotone_constraints_method", "monotone_constraining_method", "mc_method"): (
        "increasing and decreasing have one method, LightGBM's basic one"
    ),
    ("monotone_penalty", "monotone_splits_penalty", "ms_penalty", "mc_penalty"): (
        "cuts by rising and falling features have no penalty"
    ),
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
        ("init_score", "base_margin", "eval_init_score", "base_margin_eval_set"): (
            "Scores begin at 0. To continue from a ranker, pass init_model."
        ),
        ("eval_x", "eval_y"): "They are one argument here: eval_set=(X, y), or a RankingDataset.",
        ("query_id",): "It is called qid here.",
        ("eval_query", "eval_query_id"): "It is called eval_qid here, or eval_group for sizes of queries.",
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
        ("start_iteration",): "Scores begin with the first round; n_rounds is how many there are.",
        ("base_margin",): "Scores begin at 0: add to them what they should begin with.",
        ("validate_features",): "Columns with names are always taken by name, and others are counted.",
        ("pred_interactions",): "Pairs of features have no contributions here; contributions has those of features.",
        ("approx_contribs",): "Call contributions instead of predict, which are exact.",
        ("strict_shape",): "Scores are always one number for each row.",
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
