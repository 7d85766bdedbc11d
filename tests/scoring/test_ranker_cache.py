"""The cache of rankers: least recently used goes first, the budget holds, each is made once."""

import threading
from dataclasses import dataclass

import pytest

from rankwell.errors import DeviceError, ParameterError
from rankwell.scoring.ranker_cache import RankerCache


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


def test_threads_share_one_upload():
    cache, made = make_cache(100)
    threads = [threading.Thread(target=ask, args=(cache, "a", 40)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_a_budget_of_nothing_is_refused():
    with pytest.raises(ParameterError, match="byte_budget must be 1 or more, got 0"):
        RankerCache(0, lambda description: Uploaded("", 0))
