"""How many documents match: as many as a search finds that is not limited."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.searching import make_index
from tests.index.test_selection import CLAUSE, DOCUMENT, MODELS

from rankwell import ParameterError


@settings(max_examples=60)
@given(
    documents=st.lists(DOCUMENT, min_size=1, max_size=12),
    copies=st.sampled_from([1, 11, 65]),
    query=st.lists(CLAUSE, max_size=5).map(" ".join),
    model=st.sampled_from(MODELS),
    match=st.sampled_from(["any", "all"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_number_of_matches_is_that_of_an_unlimited_search(documents, copies, query, model, match, seed) -> None:
    random = np.random.default_rng(seed)
    documents = documents * copies
    deleted = np.flatnonzero(random.random(len(documents)) < random.choice([0.0, 0.3])).tolist()
    cuts = [cut for cut in [len(documents) // 3] if cut]
    index = make_index(documents, cuts=cuts, deleted=deleted, streams=["title", "body"], statics=["year"])
    found = index.search(query, k=len(documents), model=model, match=match)
    assert index.count(query, model=model, match=match) == len(found)
    # Counted alone, and after the documents that match were listed.
    assert index.search(query, k=1, model=model, match=match).n_matches == len(found)
    listed = index.search(query, k=1, model=model, match=match, sort="year")
    assert listed.n_matches == len(found)


def test_bad_parameters() -> None:
    index = make_index([{"body": "a"}])
    with pytest.raises(ParameterError, match="match must be 'any' or 'all'"):
        index.count("a", match="some")
