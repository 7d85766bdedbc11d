"""The cache of rankers: least recently used goes first, the budget holds, each is loaded once and blocks no other."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from tests.scoring.random_rankers import describe, random_rows

from rankwell.errors import DeviceError, ParameterError
from rankwell.scoring import scorer as scorer_module
from rankwell.scoring.description import LinearInputs, Sum
from rankwell.scoring.ranker_cache import RankerCache
from rankwell.scoring.scorer import RankerScorer, kept_scorer

# A wait that ends in an error instead of a test that hangs.
PATIENCE = 20


@dataclass(frozen=True)
class Uploaded:
    name: str
    nbytes: int


def make_cache(budget):
    made = []

    def make(description):
        made.append(description)
        return Uploaded(*description)

    return RankerCache(budget, make), made


def ask(cache, name, size):
    return cache.get(name, lambda: (name, size))


def test_the_least_recently_used_goes_first():
    cache, made = make_cache(100)
    ask(cache, "a", 40)
    ask(cache, "b", 40)
    ask(cache, "a", 40)
    ask(cache, "c", 40)  # 120 > 100: b was used before a
    assert cache.keys() == ["a", "c"]
    assert cache.nbytes == 80
    ask(cache, "d", 90)  # needs both others to go
    assert cache.keys() == ["d"]
    assert [name for name, _ in made] == ["a", "b", "c", "d"]


def test_a_ranker_above_the_budget_is_refused_and_others_stay():
    cache, _ = make_cache(100)
    ask(cache, "a", 40)
    with pytest.raises(DeviceError, match=r"'big' takes 101 bytes, the cache may hold 100"):
        ask(cache, "big", 101)
    assert cache.keys() == ["a"]


def test_a_forgotten_ranker_is_made_again():
    cache, made = make_cache(100)
    first = ask(cache, "a", 40)
    cache.forget("a")
    cache.forget("nothing")
    assert ask(cache, "a", 40) is not first
    assert len(made) == 2


def test_threads_that_want_one_ranker_share_its_loading():
    cache, made = make_cache(100)
    begun, may_end, n_threads = threading.Event(), threading.Event(), 8

    def slow_load():
        begun.set()
        assert may_end.wait(PATIENCE)
        return ("a", 40)

    with ThreadPoolExecutor(n_threads) as pool:
        found = [pool.submit(cache.get, "a", slow_load) for _ in range(n_threads)]
        assert begun.wait(PATIENCE)
        assert not any(future.done() for future in found)
        may_end.set()
        assert {id(future.result(PATIENCE)) for future in found} == {id(found[0].result())}
    assert made == [("a", 40)]


def test_loading_one_ranker_does_not_block_another():
    cache, _ = make_cache(100)
    ask(cache, "ready", 10)
    both_are_loading = threading.Barrier(2)

    def load(name):
        both_are_loading.wait(PATIENCE)  # only passes where two loads overlap
        assert ask(cache, "ready", 10).name == "ready"
        return (name, 40)

    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(cache.get, name, lambda name=name: load(name)) for name in "ab"]
        assert [future.result(PATIENCE).name for future in found] == ["a", "b"]
    assert sorted(cache.keys()) == ["a", "b", "ready"]


def test_a_failed_load_is_told_to_all_who_wait_and_tried_again():
    cache, made = make_cache(100)
    begun, may_end = threading.Event(), threading.Event()

    def broken():
        begun.set()
        assert may_end.wait(PATIENCE)
        raise OSError("the file is damaged")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get, "a", broken)
        assert begun.wait(PATIENCE)
        second = pool.submit(cache.get, "a", broken)
        may_end.set()
        for future in (first, second):
            with pytest.raises(OSError, match="the file is damaged"):
                future.result(PATIENCE)
    assert ask(cache, "a", 40) == Uploaded("a", 40)
    assert made == [("a", 40)]


def test_what_is_forgotten_while_it_loads_is_not_kept():
    cache, _ = make_cache(100)

    def load():
        cache.forget("a")  # as when the ranker file is replaced in between
        return ("a", 40)

    assert cache.get("a", load).name == "a"
    assert cache.keys() == []


def linear_ranker(n_features=3):
    return describe(n_features, [LinearInputs.identity(n_features)], [Sum()])


def test_a_description_has_one_scorer_as_long_as_it_lives():
    cache = RankerCache(2**20, RankerScorer)
    description, other = linear_ranker(), linear_ranker()
    scorer = cache.of(description)
    assert cache.of(description) is scorer
    assert cache.of(other) is not scorer
    assert cache.nbytes == 2 * scorer.nbytes == 2 * 3 * (4 + 8 + 8 + 8)
    del description, scorer
    gc.collect()
    assert cache.nbytes == cache.of(other).nbytes
    assert len(cache.keys()) == 1


def test_a_description_above_the_budget_is_scored_and_not_kept():
    cache = RankerCache(1, RankerScorer)
    description = linear_ranker()
    assert cache.of(description).score(np.ones((1, 3), np.float32)) == [3.0]
    assert cache.of(description) is not cache.of(description)
    assert cache.keys() == []


def test_rankers_that_die_while_others_are_asked_for():
    cache = RankerCache(2**20, RankerScorer)
    kept = [linear_ranker() for _ in range(4)]

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(200):
            cache.of(linear_ranker())
            cache.of(kept[rng.integers(len(kept))])
            gc.collect(0)

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(work, seed) for seed in range(4)]:
            future.result(PATIENCE)
    for description in kept:
        cache.of(description)
    assert len(cache.keys()) == len(kept)


def test_prediction_prepares_a_ranker_once(monkeypatch):
    prepared = []

    def make(description):
        prepared.append(description)
        return RankerScorer(description)

    monkeypatch.setitem(scorer_module._KEPT, "cpu", RankerCache(2**20, make))
    description = linear_ranker()
    rows = random_rows(np.random.default_rng(0), 5, 3)
    scores = [kept_scorer(description).score(rows) for _ in range(3)]
    np.testing.assert_array_equal(scores[0], scores[2])
    assert prepared == [description]


def test_a_budget_of_nothing_is_refused():
    with pytest.raises(ParameterError, match="byte_budget must be 1 or more, got 0"):
        RankerCache(0, lambda description: Uploaded("", 0))
