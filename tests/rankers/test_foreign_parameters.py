"""Names that users of other libraries type."""

import inspect

import pytest

from rankwell import LambdaMART, LambdaRank, LeastSquares, ListNet, ParameterError, RankBoost, RankSVM
from rankwell.rankers.foreign_parameters import _ABSENT, _ABSENT_OF_TREES, _SAME, hint
from rankwell.rankers.registry import RANKERS, ranker_class
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
