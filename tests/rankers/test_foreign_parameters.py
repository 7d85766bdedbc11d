"""Names that users of other libraries type."""

import inspect
import re

import pytest

from rankwell import Cascade, LambdaMART, LambdaRank, LeastSquares, ListNet, ParameterError, RankBoost, RankSVM
from rankwell.kernels.trees.losses import LOSSES
from rankwell.rankers.foreign_parameters import _ABSENT, _ABSENT_OF_TREES, _SAME, hint
from rankwell.rankers.foreign_values import VALUES_ELSEWHERE
from rankwell.rankers.grown_trees import IMPORTANCES
from rankwell.rankers.lambdamart import GROWTHS
from rankwell.rankers.registry import RANKERS, ranker_class
from rankwell.rankers.tree_data import GAINS
from rankwell.rankers.tuning import tune


@pytest.mark.parametrize(
    ("ranker", "name", "said"),
    [
        (RankBoost, "n_estimators", "It is called n_rounds here"),
        (ListNet, "num_boost_round", "It is called n_epochs here"),
        (RankSVM, "num_iterations", "It is called max_iter here"),
        (RankBoost, "max_bin", "It is called n_bins here"),
        (RankBoost, "num_leaves", "There is no such thing here: no trees are grown"),
        (LambdaRank, "eta", "It is called learning_rate here"),
        (RankBoost, "eta", "It is called learning_rate here"),
        (RankSVM, "eta", "This ranker has nothing that corresponds to it"),
        (RankSVM, "reg_lambda", "It is called C here (the larger, the weaker the penalty)"),
        (LeastSquares, "alpha", "It is called ridge here"),
        (ListNet, "lambda_l2", "It is called weight_decay here"),
        (RankBoost, "num_threads", "It is called n_jobs here"),
        (ListNet, "hidden_layer_sizes", "It is called hidden here"),
        (ListNet, "objective", "the ranker's class is its objective"),
        (LambdaMART, "n_estimators", "It is called n_rounds here"),
        (LambdaMART, "num_leaves", "It is called n_leaves here"),
        (LambdaMART, "depth", "It is called max_depth here"),
        (LambdaMART, "min_child_samples", "It is called min_docs_leaf here"),
        (LambdaMART, "min_child_weight", "It is called min_hessian_leaf here"),
        (LambdaMART, "reg_lambda", "It is called l2 here"),
        (LambdaMART, "reg_alpha", "It is called l1 here"),
        (LambdaMART, "gamma", "It is called min_gain here"),
        (LambdaMART, "objective", "It is called loss here"),
        (LambdaMART, "lambdarank_truncation_level", "It is called truncation here"),
        (LambdaMART, "label_gain", "It is called gain here"),
        (RankBoost, "label_gain", "eval_convention says how labels become gains"),
        (LambdaMART, "linear_tree", "There is no such thing here: a leaf has one value"),
        (LambdaMART, "extra_trees", "node_feature_fraction draws the features"),
        (LambdaMART, "path_smooth", "l2 makes it smaller, min_docs_leaf forbids small leaves"),
        (LambdaMART, "max_delta_step", "learning_rate, l2 and min_hessian_leaf make it smaller"),
        (RankBoost, "max_delta_step", "There is no such thing here: no trees are grown"),
        (RankBoost, "verbose", "pass a callback to fit"),
        (LambdaMART, "bagging_seed", "It is called random_state here"),
        (LambdaMART, "feature_fraction_seed", "It is called random_state here"),
        (LambdaMART, "enable_categorical", "It is called categorical_features here"),
        (LambdaMART, "min_data_per_group", "fewer documents than category_smoothing are never in the set"),
        (LambdaMART, "max_cat_to_onehot", "up to 4 categories are always cut one against the others"),
        (LambdaMART, "neg_bagging_fraction", "documents are not drawn by their labels"),
        (LambdaMART, "data_sample_strategy", "query_fraction and document_fraction draw from all"),
        (LambdaMART, "top_rate", "not drawn by their gradients (GOSS)"),
        (LambdaMART, "rate_drop", "no tree is dropped again (DART)"),
        (LambdaMART, "use_missing", "NaN is missing, and 0 is a value"),
        (LambdaMART, "zero_as_missing", "NaN is missing, and 0 is a value"),
        (RankSVM, "missing", "NaN is missing, and 0 is a value"),
        (LambdaMART, "lambdarank_unbiased", "corrected for their position before training"),
        (LambdaMART, "lambdarank_pair_method", "among the first `truncation`"),
        (LambdaMART, "base_score", "scores compare within a query only"),
        (LambdaMART, "num_parallel_tree", "n_seeds trains several models"),
        (LambdaMART, "deterministic", "always give the same model"),
        (LambdaMART, "force_col_wise", "bins have one layout"),
        (LambdaMART, "use_quantized_grad", "always summed as whole numbers"),
        (LambdaMART, "first_metric_only", "eval_metric is one metric"),
        (LambdaMART, "scale_pos_weight", "pass sample_weight to fit"),
        (RankBoost, "n_round", "Did you mean n_rounds?"),
        (RankBoost, "colour", "RankBoost has no parameter 'colour'. It has n_rounds"),
    ],
)
def test_constructors_and_set_params_say_what_it_is_called_here(ranker, name, said):
    with pytest.raises(ParameterError) as constructed:
        ranker(**{name: 1})
    with pytest.raises(ParameterError) as changed:
        ranker().set_params(**{name: 1})
    assert isinstance(constructed.value, TypeError)
    assert said in str(constructed.value)
    if name != "colour":
        assert said in str(changed.value)


def test_a_hint_is_not_followed_by_all_names():
    with pytest.raises(
        ParameterError, match=r"^LambdaMART has no parameter 'eta'\. It is called learning_rate here\.$"
    ):
        LambdaMART(eta=0.1)


@pytest.mark.parametrize(
    ("method", "name", "said"),
    [
        ("fit", "callbacks", "LambdaMART.fit has no argument 'callbacks'. It is called callback here"),
        ("fit", "eval_at", "It is a parameter of the ranker: LambdaMART(eval_metric=...)"),
        ("fit", "eval_metric", "It is a parameter of the ranker: LambdaMART(eval_metric=...)"),
        ("fit", "early_stopping_rounds", "LambdaMART(early_stopping_rounds=...)"),
        ("fit", "categorical_feature", "LambdaMART(categorical_features=...)"),
        ("fit", "feature_name", "Names are the data's: pass a frame"),
        ("fit", "init_score", "To continue from a ranker, pass init_model"),
        ("fit", "xgb_model", "It is called init_model here"),
        ("fit", "verbose", "set the level of the logger 'rankwell'"),
        ("fit", "colour", "LambdaMART.fit has no argument 'colour'. It has X, y, qid"),
        ("fit", "groups", "Did you mean group?"),
        ("predict", "pred_contrib", "Call contributions instead of predict"),
        ("predict", "num_iteration", "It is called n_rounds here"),
        ("predict", "iteration_range", "It is called n_rounds here"),
        ("predict", "raw_score", "Scores are always raw"),
        ("fit", "feature_weights", "features have no weights"),
        ("fit", "eval_X", "eval_set=(X, y)"),
        ("fit", "eval_y", "eval_set=(X, y)"),
        ("fit", "eval_init_score", "Scores begin at 0"),
        ("fit", "base_margin_eval_set", "Scores begin at 0"),
        ("fit", "query_id", "It is called qid here"),
        ("predict", "start_iteration", "Scores begin with the first round"),
        ("predict", "validate_features", "taken by name"),
        ("predict", "pred_interactions", "contributions has those of features"),
        ("predict", "strict_shape", "one number for each row"),
    ],
)
def test_methods_say_it_too(method, name, said):
    with pytest.raises(TypeError, match=re.escape(said)):
        getattr(LambdaMART(), method)([[1.0]], **{name: 1})


@pytest.mark.parametrize(
    ("ranker", "parameter", "value", "said"),
    [
        (LambdaMART, "loss", "rank_xendcg", "It is called 'xendcg' here."),
        (LambdaMART, "loss", "rank:ndcg", "It is called 'lambdarank' here."),
        (LambdaMART, "loss", "rank:pairwise", "It is called 'pairwise' here."),
        (LambdaMART, "loss", "rank:map", "It is called 'map' here."),
        (LambdaMART, "loss", "binary", "It does not compare the documents of a query"),
        (LambdaMART, "growth", "lossguide", "It is called 'leaf' here."),
        (LambdaMART, "growth", "SymmetricTree", "It is called 'symmetric' here."),
        (LambdaMART, "growth", "depthwise", "max_depth limits both"),
        (LambdaMART, "importance", "weight", "It is called 'split' here."),
        (LambdaMART, "importance", "total_gain", "It is called 'gain' here."),
        (LambdaMART, "gain", [0, 1, 3, 7], "pass the gain of each row as its label, with gain='linear'"),
        (LambdaMART, "gain", True, "It is called 'exponential' here."),
        (LambdaMART, "gain", False, "It is called 'linear' here."),
        (LambdaRank, "loss", "rank:ndcg", "It is called 'lambdarank' here."),
    ],
)
def test_values_have_names_elsewhere_too(ranker, parameter, value, said):
    with pytest.raises(
        ParameterError, match=rf"^{parameter} must be one of .* got {re.escape(repr(value))}\. "
    ) as told:
        ranker(**{parameter: value}).fit([[1.0], [2.0]], [0, 1], group=[2])
    assert f"got {value!r}. " in str(told.value)
    assert said in str(told.value)


def test_a_value_that_a_ranker_does_not_take_under_any_name():
    with pytest.raises(ParameterError, match=r"got 'rank:pairwise'\.$"):
        LambdaRank(loss="rank:pairwise").fit([[1.0], [2.0]], [0, 1], group=[2])


def test_every_value_suggested_exists():
    taken = {"loss": LOSSES, "growth": GROWTHS, "importance": IMPORTANCES, "gain": GAINS}
    for parameter, same in VALUES_ELSEWHERE.items():
        assert set(same.values()) <= set(taken[parameter])


def _is_explained(ranker, name):
    """A name that the ranker has, or one of which it is said what it is here: never a guess by letters."""
    known = list(ranker().get_params())
    said = hint(name, known)
    return name in known or (said != "" and "Did you mean" not in said)


@pytest.mark.parametrize("ranker", [LambdaMART, RankBoost, LambdaRank, RankSVM])
def test_every_parameter_of_lightgbm_is_explained(ranker):
    lightgbm = pytest.importorskip("lightgbm")
    aliases = lightgbm.basic._ConfigAliases._get_all_param_aliases()
    names = {name for known, others in aliases.items() for name in (known, *others)}
    names |= set(lightgbm.LGBMRanker().get_params())
    assert len(names) > 250
    assert [name for name in sorted(names) if not _is_explained(ranker, name)] == []


def test_all_names_that_lightgbm_has_for_a_parameter_are_told_the_same():
    lightgbm = pytest.importorskip("lightgbm")
    known = list(LambdaMART().get_params())
    for parameter, others in lightgbm.basic._ConfigAliases._get_all_param_aliases().items():
        # CatBoost's name of the device is one of LightGBM's names of a command's task.
        said = {hint(name, known) for name in (parameter, *others) if name not in (*known, "task_type")}
        own = next((name for name in (parameter, *others) if name in known), None)
        assert len(said) <= 1, (parameter, said)
        # Where the name is the ranker's own, the others are told it; subsample and the like are others' as well.
        if own is not None and said:
            assert said == {f"It is called {own} here."}, parameter


@pytest.mark.parametrize("ranker", [LambdaMART, RankBoost, LambdaRank, RankSVM])
def test_every_parameter_of_xgboost_is_explained(ranker):
    xgboost = pytest.importorskip("xgboost")
    names = set(xgboost.XGBRanker().get_params())
    assert len(names) > 30
    assert [name for name in sorted(names) if not _is_explained(ranker, name)] == []


@pytest.mark.parametrize("method", ["fit", "predict"])
@pytest.mark.parametrize(("library", "name"), [("lightgbm", "LGBMRanker"), ("xgboost", "XGBRanker")])
def test_every_argument_of_their_rankers_is_explained(library, name, method):
    theirs = inspect.signature(getattr(getattr(pytest.importorskip(library), name), method)).parameters
    ours = inspect.signature(getattr(LambdaMART, method)).parameters
    foreign = [argument for argument in theirs if argument not in ours and argument != "kwargs"]
    assert foreign
    for argument in foreign:
        with pytest.raises(TypeError) as told:
            getattr(LambdaMART(), method)([[1.0]], **{argument: 1})
        assert "Did you mean" not in str(told.value), argument
        assert not re.search(r"\. It has \w+,", str(told.value)), argument


def test_methods_keep_their_signatures():
    for method in (LambdaMART.fit, RankBoost.predict, Cascade.fit):
        assert next(iter(inspect.signature(method).parameters)) == "self"
    assert "init_model" in inspect.signature(LambdaMART().fit).parameters


def test_a_grid_says_it_too():
    with pytest.raises(ParameterError, match="It is called n_rounds here"):
        tune(RankBoost(), None, None, {"n_estimators": [1, 2]})


def test_every_suggestion_exists_somewhere():
    known = {name for ranker in RANKERS for name in ranker_class(ranker)().get_params()}
    assert {own for owns in _SAME.values() for own in owns} <= known


def test_no_name_has_two_explanations():
    names = [name for names in (*_SAME, *_ABSENT, *_ABSENT_OF_TREES) for name in names]
    assert len(names) == len(set(names))


def test_signatures_are_the_constructors_own():
    assert list(inspect.signature(RankBoost).parameters)[:2] == ["n_rounds", "learning_rate"]
    assert next(iter(inspect.signature(LambdaRank).parameters)) == "loss"
    assert hint("nothing_like_it", ["ridge"]) == ""
