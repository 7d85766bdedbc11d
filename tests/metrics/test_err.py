"""Expected reciprocal rank: values a reader can check, and grades that overflow 2^grade."""

from __future__ import annotations

import pytest

from rankwell.errors import DataError, ParameterError
from rankwell.metrics import evaluate


def err(labels, scores, metric="err", **options):
    return evaluate(labels, scores, metrics=metric, **options).mean[metric]


def test_the_cascade():
    # Grades 0..2: a document of grade 1 satisfies with 1/4, of grade 2 with 3/4.
    expected = 1 / 4 + (3 / 4) * (3 / 4) / 2 + (3 / 4) * (1 / 4) * 0 / 3
    assert err([1, 2, 0], [3, 2, 1]) == pytest.approx(expected, abs=1e-15)
    assert err([1, 2, 0], [3, 2, 1], "err@1") == pytest.approx(1 / 4, abs=1e-15)


def test_the_highest_grade_of_the_scale_can_be_given():
    assert err([1, 2, 0], [3, 2, 1], "err@1", max_grade=4) == pytest.approx(1 / 16, abs=1e-15)
    assert evaluate([1, 2], [1, 2], metrics="err").max_grade == 2.0


def test_a_highest_grade_below_a_label_is_refused_with_the_row():
    with pytest.raises(ParameterError, match=r"got 1: row 2 has label 2\."):
        err([1, 0, 2], [3, 2, 1], max_grade=1)


def test_grades_beyond_the_range_of_float64():
    # R = 1 for the highest grade, 1/2 for the one below, to more digits than float64 has.
    assert err([1268, 1267], [1, 2]) == pytest.approx(1 / 2 + (1 / 2) / 2, rel=1e-15)


@pytest.mark.parametrize("convention", ["letor4", "mslr", "gbdt", "trec", "sklearn", "burges"])
def test_every_convention_has_the_same_err(convention):
    assert err([1, 2, 0], [3, 2, 1], convention=convention) == pytest.approx(1 / 4 + 9 / 32, abs=1e-15)


def test_negative_labels_are_refused():
    with pytest.raises(DataError, match="err under burges needs labels of 0 or more"):
        err([1, -1], [1, 2])
