"""Short pauses: collections of a server are small, and what it loaded is left alone."""

import gc
import sys

import pytest

from rankwell.serving.short_pauses import short_pauses


def state():
    return sys.getswitchinterval(), gc.get_threshold(), gc.get_freeze_count()


@pytest.fixture(autouse=True)
def collection_of_a_command():
    """Thresholds as the command line sets them."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 20)
    yield
    gc.set_threshold(*before)


def largest_collections(n_objects):
    """How many objects the largest collection of each generation looks at while objects are made that stay."""
    sizes = {0: 0, 1: 0, 2: 0}

    def note(phase, information):
        if phase == "start":
            generation = information["generation"]
            seen = sum(len(gc.get_objects(generation=younger)) for younger in range(generation + 1))
            sizes[generation] = max(sizes[generation], seen)

    gc.callbacks.append(note)
    try:
        kept = [[] for _ in range(n_objects)]
    finally:
        gc.callbacks.remove(note)
    assert len(kept) == n_objects
    return sizes


def test_collections_are_small():
    before = largest_collections(150_000)
    assert before[0] > 90_000
    with short_pauses(0.0001):
        assert sys.getswitchinterval() == pytest.approx(0.0001)
        within = largest_collections(150_000)
    assert 0 < within[0] < 5_000
    assert within[1] < 20_000


def test_what_was_loaded_is_not_looked_at_again():
    loaded = [[] for _ in range(10_000)]
    with short_pauses(0.0001):
        assert gc.get_freeze_count() > len(loaded)
        assert not any(one is loaded[0] for one in gc.get_objects())


def test_garbage_in_circles_is_still_collected():
    class Circle:
        alive = 0

        def __init__(self):
            self.own = self
            Circle.alive += 1

        def __del__(self):
            Circle.alive -= 1

    with short_pauses(0.0001):
        for _ in range(50_000):
            Circle()
        assert Circle.alive < 5_000


def test_all_is_as_before_in_the_end():
    before = state()
    with pytest.raises(ZeroDivisionError), short_pauses(0.0001):
        1 / (state() == before)
    assert state() == before
