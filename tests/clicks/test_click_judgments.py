"""Judgments and pairs from clicks, by hand and by simulated users."""

import numpy as np
import pytest

import rankwell
from rankwell.clicks import Impression, PositionBias, click_judgments, click_pairs, count_clicks, simulate_clicks
from rankwell.errors import DataError, ParameterError
from rankwell.features.qrels import qrels_text, read_qrels

HALF = PositionBias(np.array([1.0, 0.5]), np.array([True, True]))
PAGES = [
    Impression("q", ("a", "b"), frozenset("a")),
    Impression("q", ("a", "b"), frozenset("b")),
    Impression("q", ("b", "a"), frozenset()),
    Impression("q", ("b", "a"), frozenset("ab")),
]


def test_attraction_is_clicks_by_expected_examinations():
    # a: first twice and second twice, clicked twice: 2/(2·1 + 2·½); b the same.
    judgments = click_judgments(count_clicks(PAGES), HALF, grades=None, prior=0.0)
    assert judgments == {"q": {"a": pytest.approx(2 / 3), "b": pytest.approx(2 / 3)}}


def test_the_prior_draws_to_the_mean():
    pages = [Impression("q", ("a", "b"), frozenset("a"))] * 4
    judgments = click_judgments(count_clicks(pages), HALF, grades=None, prior=2.0)
    # 4 clicks by 4·1 + 4·½ examinations are the mean; a has 4 clicks by 4, b none by 2.
    mean = 4 / 6
    assert judgments["q"]["a"] == pytest.approx((4 + 2 * mean) / (4 + 2))
    assert judgments["q"]["b"] == pytest.approx((0 + 2 * mean) / (2 + 2))


def test_grades():
    pages = [Impression("q", ("a", "b", "c"), frozenset("ab"))] * 2 + [
        Impression("q", ("a", "b", "c"), frozenset("a"))
    ] * 2
    judgments = click_judgments(count_clicks(pages), PositionBias.power(0.0, 3), grades=3, prior=0.0)
    # 90 % of the clicks are on attraction 1 or less; b's is a half.
    assert judgments == {"q": {"a": 2.0, "b": 1.0, "c": 0.0}}


def test_documents_hardly_examined_can_be_left_out():
    pages = [Impression("q", ("a", "b"), frozenset("a"))]
    assert click_judgments(count_clicks(pages), HALF, min_examinations=0.75) == {"q": {"a": 2.0}}


def test_pairs_weigh_what_the_position_hid():
    rows = {("q", "a"): 5, ("q", "b"): 3}
    pairs, weights = click_pairs(PAGES, HALF, rows)
    # a clicked at position 1 beside b: 1. b clicked at position 2 beside a: 1/½. Both clicked: no preference.
    assert pairs.tolist() == [[3, 5], [5, 3]]
    assert weights.tolist() == [2.0, 1.0]


def test_pairs_of_documents_without_features_are_left_out():
    pairs, weights = click_pairs(PAGES, HALF, {("q", "a"): 0})
    assert pairs.shape == (0, 2)
    assert weights.shape == (0,)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"grades": 1}, "grades must be 2 or more"), ({"prior": -1.0}, r"prior must be .log., or a number of 0 or more")],
)
def test_wrong_parameters(parameters, message):
    with pytest.raises(ParameterError, match=message):
        click_judgments(count_clicks(PAGES), HALF, **parameters)


def test_no_clicks():
    with pytest.raises(DataError, match="no click"):
        click_judgments(count_clicks([Impression("q", ("a",), frozenset())]), HALF)


def test_judgments_as_text(tmp_path):
    qrels = {"q 1": {"d": 1.0}}
    with pytest.raises(DataError, match="'q 1' must not be empty or contain one"):
        qrels_text(qrels)
    qrels = {"q1": {"d": 2.0, "e": 0.25}, "q2": {"d": 0.0}}
    (tmp_path / "qrels").write_text(qrels_text(qrels))
    assert read_qrels(tmp_path / "qrels") == qrels


def test_a_ranker_learns_relevance_where_the_naive_one_learns_the_order_shown():
    dataset = rankwell.make_ranking("mq2008", scale=0.3)
    train, test = dataset.subset(np.arange(0, dataset.n_queries, 2)), dataset.subset(np.arange(1, dataset.n_queries, 2))
    # The order shown is by one of the features.
    shown_by = train.features[:, 0]
    bias = PositionBias.power(1.0, 200)
    counts = count_clicks(simulate_clicks(train, shown_by, bias, n_impressions=20_000))

    def figure(assumed):
        labels = np.zeros(train.n_docs)
        for judged in click_judgments(counts, assumed).values():
            for row, grade in judged.items():
                labels[int(row)] = grade
        learnt = rankwell.RankBoost(n_rounds=40).fit(train.features, labels, group=train.query_sizes)
        return learnt.score(test)

    best = rankwell.RankBoost(n_rounds=40).fit(train).score(test)
    assert figure(bias) > best - 0.03
    assert figure(PositionBias.power(0.0, 1)) < figure(bias)


def test_simulated_users_need_labels():
    dataset = rankwell.RankingDataset(np.zeros((2, 1), np.float32), group=[2])
    with pytest.raises(DataError, match="need labels"):
        next(simulate_clicks(dataset, np.zeros(2), HALF, n_impressions=1))
