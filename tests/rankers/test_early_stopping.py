"""Early stopping: the best step, patience, equals and NaN."""

import math

import pytest

from rankwell.errors import DataError, ParameterError
from rankwell.rankers.early_stopping import EarlyStopping, check_early_stopping


def test_stops_after_patience_steps_without_a_better_figure():
    watch = EarlyStopping(2)
    assert [watch.update(step, value) for step, value in enumerate([0.1, 0.3, 0.2, 0.3], start=1)] == [
        False,
        False,
        False,
        True,
    ]
    assert (watch.best_step, watch.best_value) == (2, 0.3)


def test_steps_until_stop_is_when_it_stops_without_a_better_figure():
    watch = EarlyStopping(3)
    assert watch.steps_until_stop(0) == 3
    watch.replay([0.1, 0.3, 0.2])
    assert watch.steps_until_stop(3) == 2
    assert [watch.update(4, 0.2), watch.update(5, 0.2)] == [False, True]
    assert EarlyStopping(None).steps_until_stop(7) is None


def test_earliest_of_equals_is_best():
    watch = EarlyStopping(None)
    watch.replay([0.5, 0.5, 0.5])
    assert watch.best_step == 1


def test_no_patience_never_stops():
    watch = EarlyStopping(None)
    assert not any(watch.update(step, 1.0 / step) for step in range(1, 1000))


def test_nan_is_never_better():
    watch = EarlyStopping(2)
    assert [watch.update(step, math.nan) for step in (1, 2)] == [False, True]
    assert (watch.best_step, watch.best_value) == (0, None)
    watch.update(3, 0.1)
    assert watch.best_step == 3


def test_replay_is_the_same_as_step_by_step():
    values = [0.1, 0.4, 0.2, 0.5, 0.3]
    watch, again = EarlyStopping(3), EarlyStopping(3)
    for step, value in enumerate(values, start=1):
        watch.update(step, value)
    again.replay(values)
    assert (watch.best_step, watch.best_value) == (again.best_step, again.best_value) == (4, 0.5)


def test_what_cannot_work_is_refused():
    with pytest.raises(ParameterError, match="a better one, 1 or more, got 0"):
        check_early_stopping(0, has_validation=True)
    with pytest.raises(DataError, match="pass eval_set"):
        check_early_stopping(10, has_validation=False)
    check_early_stopping(None, has_validation=False)
