"""The pieces of an epoch, by a clock that the tests set."""

from __future__ import annotations

from rankwell.kernels.lists.epoch_pieces import EpochPieces


class Clock:
    """A machine that trains on a query in `seconds_per_query`."""

    def __init__(self, seconds_per_query):
        self.now = 0.0
        self.seconds_per_query = seconds_per_query

    def __call__(self):
        return self.now

    def pieces_of(self, pieces, n_queries):
        lengths = []
        for piece in pieces.slices(n_queries):
            assert piece.start == sum(lengths)
            lengths.append(piece.stop - piece.start)
            self.now += lengths[-1] * self.seconds_per_query
        assert sum(lengths) == n_queries
        return lengths


def test_a_fast_epoch_soon_is_one_piece():
    clock = Clock(1e-6)
    pieces = EpochPieces(clock)
    assert clock.pieces_of(pieces, 1000) == [64, 128, 256, 512, 40]
    assert clock.pieces_of(pieces, 1000) == [1000]


def test_a_slow_epoch_is_cut_into_quarters_of_a_second():
    clock = Clock(1 / 128)
    pieces = EpochPieces(clock)
    assert clock.pieces_of(pieces, 160) == [64, 32, 32, 32]
    clock.seconds_per_query = 2.0
    assert clock.pieces_of(pieces, 34) == [32, 1, 1]
    clock.seconds_per_query = 1 / 128
    assert clock.pieces_of(pieces, 20) == [1, 2, 4, 8, 5]


def test_an_epoch_without_queries_has_no_pieces():
    assert Clock(1.0).pieces_of(EpochPieces(), 0) == []
