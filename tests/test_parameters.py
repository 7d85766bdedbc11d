"""Wrong parameters: every ranker says which one, what is allowed and what was given."""

import numpy as np
import pytest

from rankwell import Binner, LeastSquares, ListNet, ParameterError, RankBoost, RankSVM
from rankwell.parameters import check_choice, check_number, check_whole_number

FEATURES = np.arange(8, dtype=np.float32).reshape(4, 2)
LABELS = [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (RankBoost(n_rounds="10"), r"n_rounds must be a whole number, got '10'\."),
        (RankBoost(n_rounds=10.0), r"n_rounds must be a whole number, got 10\.0\."),
        (RankBoost(n_bins="a"), r"n_bins must be a whole number, got 'a'\."),
        (RankBoost(n_bins=257), r"n_bins must be from 2 to 256, got 257\."),
        (RankBoost(binning=3), r"binning must be one of 'width', 'quantile', got 3\."),
        (RankBoost(random_state=None), r"random_state must be a whole number, got None\."),
        (ListNet(n_epochs=2.5), r"n_epochs must be a whole number, got 2\.5\."),
        (ListNet(hidden=15), r"hidden must be whole numbers .* as in \(15,\), got 15\."),
        (ListNet(hidden=(15, "a")), r"hidden must be whole numbers"),
        (ListNet(learning_rate="fast"), r"learning_rate must be a finite number above 0, got 'fast'\."),
        (ListNet(dropout=1), r"dropout must be a finite number at least 0 and below 1, got 1\."),
        (ListNet(random_state=-1), r"random_state must be 0 or more, got -1\."),
        (LeastSquares(ridge="a"), r"ridge must be a finite number of 0 or more, got 'a'\."),
        (RankSVM(max_iter=True), r"max_iter must be a whole number, got True\."),
        (RankSVM(method=None), r"method must be one of 'auto', .*, got None\."),
    ],
)
def test_a_ranker_names_the_parameter(ranker, message):
    with pytest.raises(ParameterError, match=message):
        ranker.fit(FEATURES, LABELS, group=[4])


def test_a_binner_names_the_parameter():
    with pytest.raises(ParameterError, match=r"n_bins must be from 2 to 256, .*, got '9'\."):
        Binner(n_bins="9")


def test_numbers_of_numpy_are_numbers():
    check_whole_number("n", np.int32(3), least=3, most=3)
    check_number("x", np.float32(0.5), above=0, below=1)
    check_choice("name", "a", ["a", "b"])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1, "0.5", None, True])
def test_what_is_not_a_number_below_one(value):
    with pytest.raises(ParameterError, match="x must be a finite number below 1, got"):
        check_number("x", value, below=1)
