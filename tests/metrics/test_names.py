"""Metric names and convention names."""

from __future__ import annotations

import dataclasses
import json

import pytest

from rankwell.errors import ParameterError
from rankwell.metrics import CONVENTIONS, DEFAULT, get_convention, parse_metric, parse_metrics
from rankwell.metrics.conventions import burges, letor4, mslr


@pytest.mark.parametrize(
    ("text", "family", "cutoff"),
    [
        ("ndcg@10", "ndcg", 10),
        ("NDCG", "ndcg", None),
        (" map ", "map", None),
        ("map@10", "map", 10),
        ("mrr", "mrr", None),
        ("p@5", "p", 5),
        ("recall@10", "recall", 10),
        ("err@10", "err", 10),
        ("mean_ndcg", "mean_ndcg", None),
        ("pairwise_accuracy", "pairwise_accuracy", None),
        ("kendall_tau", "kendall_tau", None),
    ],
)
def test_names(text, family, cutoff):
    metric = parse_metric(text)
    assert (metric.family.name, metric.cutoff) == (family, cutoff)
    assert parse_metric(metric.name) == metric


@pytest.mark.parametrize("text", ["ndgc", "", "ndcg@", "ndcg@ten", "ndcg@-1", "ndcg@1.5", "ndcg@²", "@10"])
def test_a_wrong_name_is_answered_with_the_right_ones(text):
    with pytest.raises(ParameterError, match=r"metric must be one of ndcg, ndcg@K, .*p@K.*kendall_tau.*got '"):
        parse_metric(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p", "p needs a cut-off: write p@10"),
        ("recall", "recall needs a cut-off"),
        ("kendall_tau@3", "kendall_tau takes no cut-off"),
        ("ndcg@0", "must be 1 or more, got 0"),
        ("ndcg@99999999999999999999", "must be 1 or more"),
    ],
)
def test_a_cut_off_that_cannot_be(text, message):
    with pytest.raises(ParameterError, match=message):
        parse_metric(text)


def test_several_names_are_kept_once_in_order():
    names = [metric.name for metric in parse_metrics("map, ndcg@10,MAP")]
    assert names == ["map", "ndcg@10"]
    with pytest.raises(ParameterError, match="at least one metric"):
        parse_metrics(" , ")


def test_conventions_are_known_by_name():
    assert list(CONVENTIONS) == ["letor4", "mslr", "gbdt", "catboost", "trec", "sklearn", "burges"]
    assert get_convention("letor4") is letor4
    assert DEFAULT is burges
    with pytest.raises(ParameterError, match=r"one of letor4, mslr, .*, sklearn, burges .* got 'letor'"):
        get_convention("letor")


def test_mslr_differs_from_letor4_in_one_rule():
    assert dataclasses.replace(mslr, name=letor4.name, source=letor4.source, relevance_level=1.0) == letor4


def test_a_convention_of_ones_own():
    strict = dataclasses.replace(letor4, name="strict", relevance_level=3)
    assert get_convention(strict) is strict
    with pytest.raises(ParameterError, match="no_relevant of a convention must be one of 'zero', 'one', 'left out'"):
        dataclasses.replace(letor4, no_relevant="half")
    with pytest.raises(ParameterError, match="relevance_level must be a finite label"):
        dataclasses.replace(letor4, relevance_level=float("nan"))


def test_the_rules_fit_into_json():
    for convention in CONVENTIONS.values():
        assert json.loads(json.dumps(convention.to_dict()))["name"] == convention.name
