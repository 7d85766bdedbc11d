"""The result cache keeps to its budget and its expiry."""

import pytest

from rankwell.errors import ParameterError
from rankwell.serving.result_cache import _ENTRY_BYTES, ResultCache


def test_the_answers_used_last_are_kept_within_the_budget():
    cache = ResultCache(budget=3 * (_ENTRY_BYTES + 100))
    for key in "abc":
        cache.put(key, key.upper(), 100)
    assert cache.get("a") == "A"
    cache.put("d", "D", 100)
    assert [cache.get(key) for key in "abcd"] == ["A", None, "C", "D"]
    assert (len(cache), cache.n_bytes) == (3, 3 * (_ENTRY_BYTES + 100))


def test_an_answer_larger_than_the_budget_is_not_kept_and_drops_nothing():
    cache = ResultCache(budget=1000)
    cache.put("a", "A", 100)
    cache.put("b", "B", 1000)
    assert (cache.get("a"), cache.get("b")) == ("A", None)


def test_replacing_an_answer_counts_it_once():
    cache = ResultCache()
    cache.put("a", "old", 100)
    cache.put("a", "new", 200)
    assert (cache.get("a"), len(cache), cache.n_bytes) == ("new", 1, _ENTRY_BYTES + 200)
    cache.clear()
    assert (cache.get("a"), len(cache), cache.n_bytes) == (None, 0, 0)


def test_answers_expire():
    now = [0.0]
    cache = ResultCache(expiry=10.0, clock=lambda: now[0])
    cache.put("a", "A", 1)
    now[0] = 9.9
    assert cache.get("a") == "A"
    now[0] = 10.0
    assert cache.get("a") is None
    assert cache.n_bytes == 0


def test_a_negative_budget_is_refused():
    with pytest.raises(ParameterError, match="budget must be 0 or more bytes, got -1"):
        ResultCache(budget=-1)
