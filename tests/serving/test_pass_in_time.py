"""A pass of ranking that keeps to deadlines: by a clock that goes on by what each document costs."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from rankwell.serving.ranking import pass_in_time
from rankwell.serving.ranking.pass_in_time import PassInTime

COST = 0.001  # seconds a document


class Ranker:
    """Scores that are a function of query and place; time goes on by `COST` for each of them."""

    def __init__(self):
        self.now, self.calls = 100.0, []

    def __call__(self, queries, places):
        self.calls.append({query: own.tolist() for query, own in zip(queries, places, strict=True)})
        self.now += COST * sum(map(len, places))
        return np.concatenate([score_of(query, own) for query, own in zip(queries, places, strict=True)])


def score_of(query, places):
    return (7.0 * places + query) % 11


@pytest.fixture
def ranker(monkeypatch):
    made = Ranker()
    clock = SimpleNamespace(monotonic=lambda: made.now, perf_counter=lambda: made.now)
    monkeypatch.setattr(pass_in_time, "time", clock)
    return made


def run(ranker, run_pass, sizes, seconds, before=None):
    places = [np.arange(size) for size in sizes]
    before = [-own.astype(float) for own in places] if before is None else before
    deadlines = None if seconds is None else [ranker.now + own for own in seconds]
    ranker.calls.clear()
    ranked = run_pass.run(ranker, places, before, deadlines)
    for query, own in enumerate(ranked):
        assert (np.diff(own.places) > 0).all()
        np.testing.assert_array_equal(own.scores, score_of(query, own.places))
    return [own.places.tolist() for own in ranked]


def measured(ranker, *, scores_alone=True):
    """A pass whose cost is known."""
    run_pass = PassInTime(scores_alone=scores_alone)
    run(ranker, run_pass, [100], None)
    return run_pass


@pytest.mark.parametrize("scores_alone", [True, False])
def test_with_ample_time_there_is_one_call_for_all_queries(ranker, scores_alone):
    run_pass = measured(ranker, scores_alone=scores_alone)
    for seconds in (None, [1.0, 2.0, 1.5]):  # 0.3 s of work
        assert run(ranker, run_pass, [100, 0, 200], seconds) == [list(range(100)), [], list(range(200))]
        assert len(ranker.calls) == 1


def test_with_little_time_the_best_of_the_stage_before_are_ranked(ranker):
    before = np.random.default_rng(0).permutation(400).astype(float)
    (ranked,) = run(ranker, measured(ranker), [400], [0.2], [before])
    # Half of the time that it takes, used up, and by no more than one block of 32 exceeded.
    assert 200 <= len(ranked) <= 232
    assert len(ranker.calls) > 1
    assert set(ranked) == set(np.argsort(-before)[: len(ranked)].tolist())


def test_blocks_come_to_the_same_as_one_call_if_time_suffices_after_all(ranker):
    (ranked,) = run(ranker, measured(ranker), [400], [0.5])
    assert ranked == list(range(400))
    assert len(ranker.calls) > 1


def test_the_first_call_of_all_is_a_small_block(ranker):
    assert run(ranker, PassInTime(scores_alone=True), [400], [30.0]) == [list(range(400))]
    assert [len(call[0]) for call in ranker.calls] == [32, 368]


def test_a_query_whose_time_is_over_does_not_touch_the_others(ranker):
    run_pass = measured(ranker)
    late, short, ample = run(ranker, run_pass, [50, 300, 100], [-1.0, 0.1, 60.0])
    assert late == []
    assert 0 < len(short) < 300
    assert short == list(range(len(short)))
    assert ample == list(range(100))


def test_of_a_ranker_that_compares_documents_all_are_ranked_together_or_none(ranker):
    run_pass = measured(ranker, scores_alone=False)
    ranked = run(ranker, run_pass, [100, 100, 100], [0.25, 0.05, 0.15])
    # The most urgent first, each in one call; after 0.2 s the time of the last one is not over.
    assert ranker.calls == [{1: list(range(100))}, {2: list(range(100))}, {0: list(range(100))}]
    assert [len(own) for own in ranked] == [100, 100, 100]
    assert [len(own) for own in run(ranker, run_pass, [100, 100], [0.05, 0.08])] == [100, 0]


def test_a_call_that_was_slow_once_does_not_make_later_ones_small(ranker):
    run_pass = PassInTime(scores_alone=True)
    slow = 10.0

    def compiling(queries, places):
        scores = ranker(queries, places)
        ranker.now += slow
        return scores

    run_pass.run(compiling, [np.arange(10)], [np.zeros(10)], [math.inf])
    for _ in range(2):
        run(ranker, run_pass, [100], [60.0])
    run(ranker, run_pass, [100], [1.0])
    assert len(ranker.calls) == 1
