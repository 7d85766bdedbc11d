"""The estimated examination is that of the users who were simulated."""

import numpy as np
import pytest

from rankwell.clicks import Impression, PositionBias, count_clicks, estimate_position_bias, exchanged_neighbours
from rankwell.errors import DataError, ParameterError


def page(documents, *clicked, query="q"):
    return Impression(query, tuple(documents), frozenset(clicked))


def test_two_positions_by_hand():
    # a is clicked in 8 of 10 pages where it is first and in 2 of 5 where it is second; b never. Of the documents
    # shown at both positions the mean click rates are (0.8 + 0)/2 and (0.4 + 0)/2: the second is examined half as
    # often.
    pages = [page("ab", "a")] * 8 + [page("ab")] * 2 + [page("ba", "a")] * 2 + [page("ba")] * 3
    bias = estimate_position_bias(count_clicks(pages))
    np.testing.assert_allclose(bias.examination, [1.0, 0.5], rtol=1e-6)


def test_counts_by_hand():
    counts = count_clicks([page("ab", "a"), page("ab"), page("ba", "a"), page("a", "a", query="other")])
    assert counts.query_ids == ("q", "q", "other")
    assert counts.document_ids == ("a", "b", "a")
    assert counts.item.tolist() == [0, 0, 1, 1, 2]
    assert counts.position.tolist() == [1, 2, 1, 2, 1]
    assert counts.shown.tolist() == [2, 1, 1, 2, 1]
    assert counts.clicked.tolist() == [1, 1, 0, 0, 1]


@pytest.mark.parametrize("truth", [np.arange(1, 9.0) ** -1.0, np.array([1, 0.9, 0.3, 0.5, 0.2, 0.2, 0.1, 0.05])])
def test_simulated_users(truth):
    rng = np.random.default_rng(0)
    attraction = rng.random((30, 8)) ** 2
    pages = []
    for _ in range(40_000):
        query = int(rng.integers(30))
        order = exchanged_neighbours(8, rng)
        clicked = (rng.random(8) < truth) & (rng.random(8) < attraction[query, order])
        pages.append(page([str(d) for d in order], *(str(d) for d in order[clicked]), query=str(query)))
    bias = estimate_position_bias(count_clicks(pages))
    assert bias.seen.all()
    np.testing.assert_allclose(bias.examination, truth, rtol=0.15)


def test_positions_that_nothing_connects_follow_the_curve():
    pages = [page("abcd", "a")] * 6 + [page("bacd", "a")] * 3 + [page("bacd", "b")] * 4 + [page("abcd", "b")] * 1
    bias = estimate_position_bias(count_clicks(pages))
    assert bias.seen.tolist() == [True, True, False, False]
    eta = -np.log(bias.examination[1]) / np.log(2)
    np.testing.assert_allclose(bias.examination[2:], [3.0**-eta, 4.0**-eta])


def test_one_order_alone_tells_nothing():
    with pytest.raises(DataError, match="position bias cannot be estimated"):
        estimate_position_bias(count_clicks([page("ab", "a")] * 10 + [page("ab", "b")] * 3))


def test_no_impressions():
    with pytest.raises(DataError, match="no results that were shown"):
        count_clicks([])


def test_exchanged_neighbours_move_one_place_at_most():
    rng = np.random.default_rng(1)
    for n_results in (0, 1, 2, 7, 10):
        orders = np.array([exchanged_neighbours(n_results, rng) for _ in range(300)])
        np.testing.assert_array_equal(np.sort(orders, axis=1), np.broadcast_to(np.arange(n_results), orders.shape))
        assert np.abs(orders - np.arange(n_results)).max(initial=0) <= 1
        # Every result is shown at every neighbouring place: all positions are connected.
        assert all(set(orders[:, place]) == {p for p in (place - 1, place, place + 1) if 0 <= p < n_results}
                   for place in range(n_results))  # fmt: skip


def test_a_known_bias():
    bias = PositionBias.power(1.0, 4)
    np.testing.assert_allclose(bias.at(np.array([1, 2, 4, 9])), [1.0, 0.5, 0.25, 0.25])
    with pytest.raises(ParameterError, match="eta must be a number from 0 on, got -1"):
        PositionBias.power(-1, 4)
