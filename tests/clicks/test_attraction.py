"""Attraction from clicks and examinations: the mean of the log, and the distribution in it."""

import numpy as np
import pytest

from rankwell.clicks.attraction import attraction


def test_a_number_counts_as_examinations_of_the_mean():
    # The mean is (3 + 1) / (4 + 4) = ½: (3 + 2 · ½) / (4 + 2) and (1 + 2 · ½) / (4 + 2).
    found = attraction(np.array([3.0, 1.0]), np.array([4.0, 4.0]), 2.0)
    assert found.tolist() == pytest.approx([4 / 6, 2 / 6])


def test_documents_of_two_kinds_are_told_apart_by_few_examinations():
    """Nine in ten have γ = 0.1, one in ten 0.8; each was examined about eight times."""
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(4000) < 0.9, 0.1, 0.8)
    examined = rng.uniform(4, 12, len(truth))
    clicks = rng.poisson(truth * examined).astype(float)
    errors = {prior: np.abs(attraction(clicks, examined, prior) - truth).mean() for prior in ("log", 0.0, 1.0, 4.0)}
    assert errors["log"] < 0.4 * min(errors[prior] for prior in (0.0, 1.0, 4.0))
    found = attraction(clicks, examined, "log")
    assert np.median(found[truth == 0.1]) == pytest.approx(0.1, abs=0.02)
    assert np.median(found[truth == 0.8]) == pytest.approx(0.8, abs=0.05)


def test_more_clicks_never_attract_less():
    rng = np.random.default_rng(1)
    examined = rng.uniform(1, 50, 500)
    clicks = rng.poisson(rng.beta(1, 4, 500) * examined).astype(float)
    more = attraction(np.concatenate((clicks, clicks)), np.concatenate((examined, examined)), "log")
    one_more = clicks + 1.0
    found = attraction(np.concatenate((clicks, one_more)), np.concatenate((examined, examined)), "log")
    assert (found[500:] >= found[:500]).all()
    np.testing.assert_allclose(more[:500], more[500:])


def test_many_examinations_decide_alone():
    """The grid's values are 12 % apart, so γ is found to about half of that."""
    clicks, examined = np.array([100.0, 2000.0, 7000.0]), np.full(3, 10_000.0)
    np.testing.assert_allclose(attraction(clicks, examined, "log"), [0.01, 0.2, 0.7], rtol=0.06)


@pytest.mark.parametrize(("clicks", "examined"), [([1.0], [1.0]), ([0.0, 1.0], [1e-3, 5.0]), ([0, 1e6], [1e9, 1e6])])
def test_extreme_counts_give_numbers(clicks, examined):
    found = attraction(np.array(clicks, float), np.array(examined), "log")
    assert np.isfinite(found).all()
    assert (found > 0).all()


def test_a_document_that_nobody_looked_at_is_taken_for_one_of_the_many_poor_ones():
    rng = np.random.default_rng(2)
    truth = np.where(rng.random(2000) < 0.8, 0.1, 0.8)
    examined = np.where(rng.random(len(truth)) < 0.5, 0.1, 30.0)
    clicks = rng.poisson(truth * examined).astype(float)
    found = attraction(clicks, examined, "log")
    unseen = found[(examined == 0.1) & (clicks == 0)]
    assert unseen.max() < 0.2
    assert attraction(clicks, examined, 1.0)[(examined == 0.1) & (clicks == 0)].min() > 0.2
