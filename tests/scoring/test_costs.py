"""Tables of costs: what is shared is paid once, files are checked, and times are measured sensibly."""

import json

import numpy as np
import pytest

from rankwell import FileFormatError, LeastSquares
from rankwell.scoring.costs import Cost, FeatureCost, FeatureCosts, cost_through, measure_model, read_costs

TABLE = FeatureCosts(
    {
        "a": FeatureCost(1.0, ("hits",)),
        "b": FeatureCost(2.0, ("hits", "places")),
        "sum": FeatureCost(0.5, (), ("a", "b")),
        "known": FeatureCost(0.1, ("hits",)),
    },
    {"hits": Cost(100.0, 3.0), "places": Cost(0.0, 4.0), "lookup": Cost(10.0, 0.1)},
    frozenset({"known"}),
    default=7.0,
)


def test_shared_costs_are_paid_once():
    assert TABLE.of(["a"], 10) == 100 + 10 * (3 + 1)
    assert TABLE.of(["a", "b"], 10) == 100 + 10 * (3 + 4 + 1 + 2)
    assert TABLE.of(["sum"], 10) == 100 + 10 * (3 + 4 + 1 + 2 + 0.5)
    assert TABLE.of(["other"], 10) == 70
    assert TABLE.of([], 10) == 0
    assert TABLE.of(["a"], 0) == 0


def test_what_selection_knows_is_looked_up_unless_hits_are_read_anyway():
    assert TABLE.of(["known"], 10) == 10 + 1
    assert TABLE.of(["known", "a"], 10) == pytest.approx(100 + 10 * (3 + 1 + 0.1))


def test_only_values_without_shared_work_are_not_paid_again():
    assert TABLE.of(["other", "x"], 10, fetched=["other"]) == 70
    assert TABLE.of(["a"], 10, fetched=["a"]) == TABLE.of(["a"], 10)


def test_a_table_comes_back_from_its_file(tmp_path):
    (tmp_path / "costs.json").write_text(json.dumps(TABLE.to_json()))
    assert read_costs(tmp_path / "costs.json") == TABLE


def test_a_hand_written_table(tmp_path):
    (tmp_path / "costs.yaml").write_text(
        "default: 2\nfeatures:\n  bm25.title: 0.2\n  static.price: {document: 3, shared: [price service]}\n"
        "shared:\n  price service: {query: 500}\n"
    )
    costs = read_costs(tmp_path / "costs.yaml")
    assert costs.of(["bm25.title"], 100) == pytest.approx(20)
    assert costs.of(["static.price"], 100) == 800
    assert costs.of(["other"], 100) == 200


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("features: {a: -1}", "line 1, column 15: the cost of 'a' must be 0 or more"),
        ("features:\n  a: {shared: [hits]}", "line 2, column 16: a shared cost must be one of"),
        ("feature: {a: 1}", "did you mean 'features'"),
        ("features: {a: cheap}", "must be a number, got 'cheap'"),
    ],
)
def test_mistakes_are_told_with_their_place(tmp_path, text, message):
    (tmp_path / "costs.yaml").write_text(text)
    with pytest.raises(FileFormatError) as caught:
        read_costs(tmp_path / "costs.yaml")
    assert message in str(caught.value)


def test_features_that_the_data_lacks_are_known_by_what_reads_them():
    assert TABLE.without_effect(["a", "other"]) == ["b", "sum", "known"]
    assert TABLE.without_effect(["sum"]) == ["known"]
    assert TABLE.without_effect([*TABLE.features, "other"]) == []


def test_a_line_through_two_measurements():
    assert cost_through((10, 30.0), (110, 130.0)) == Cost(20.0, 1.0)
    assert cost_through((10, 30.0), (110, 20.0)) == Cost(20.0, 0.0)  # noise: no document costs less than nothing
    assert cost_through((10, 1.0), (110, 110.0)).query >= 0


def test_a_model_is_measured():
    rows = np.random.default_rng(0).normal(size=(2000, 20)).astype(np.float32)
    cost = measure_model(LeastSquares().fit(rows, rows[:, 0]).description_, rows)
    assert 0 <= cost.document < 5
    assert cost.of(2000) > 0
