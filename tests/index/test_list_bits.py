"""Counting the documents of several words by bits, of which those of frequent words are kept."""

from __future__ import annotations

import numpy as np
import pytest
from tests.index.searching import make_index

from rankwell.index.search import list_bits

N_DOCS = 200


def make_words(seed):
    """For each document its words: w0 is in nearly all, w40 in few."""
    random = np.random.default_rng(seed)
    return [{f"w{word}" for word in range(41) if random.random() < 1 / (1 + word)} | {"x"} for _ in range(N_DOCS)]


@pytest.mark.parametrize("bytes_per_doc", [0, 1, 32])
def test_counts_are_those_of_sets_however_few_bits_are_kept(monkeypatch, bytes_per_doc):
    monkeypatch.setattr(list_bits, "_BYTES_PER_DOC", bytes_per_doc)
    documents = make_words(1)
    index = make_index([{"body": " ".join(sorted(words))} for words in documents])
    random = np.random.default_rng(2)
    for n_words in (1, 2, 5, 12) * 10:
        asked = {f"w{word}" for word in random.integers(41, size=n_words)}
        assert index.count(" ".join(asked)) == sum(bool(asked & words) for words in documents)
    (kept,) = (list_bits._kept[segment] for segment in index.segments)
    assert sum(bits.nbytes for bits in kept.values()) <= max(bytes_per_doc * N_DOCS, 8 * 4)
    assert len(kept) > 5 or bytes_per_doc < 32


def test_bits_that_are_kept_cannot_be_changed():
    index = make_index([{"body": "a b"}, {"body": "b"}])
    assert index.count("a b") == 2
    (kept,) = (list_bits._kept[segment] for segment in index.segments)
    assert kept
    assert not any(bits.flags.writeable for bits in kept.values())
