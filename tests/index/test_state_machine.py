"""All operations on an index, in any order, with crashes in between, compared with a dictionary."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hypothesis")

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule
from tests.index.fragile_storage import Crash, CrashingStorage
from tests.index.model import Content, content_of, expected_content, expected_ranking

from rankwell import DataError
from rankwell.index.checking import check_index
from rankwell.index.reader import Index
from rankwell.index.writer import IndexWriter

IDS = st.sampled_from([f"d{number}" for number in range(12)])
WORDS = st.lists(st.sampled_from(["ant", "bee", "cat", "dog", "eel", "fox"]), max_size=12).map(" ".join)
FIELDS = st.fixed_dictionaries(
    {"id": IDS, "body": WORDS}, optional={"title": WORDS, "year": st.integers(1900, 2100), "tag": WORDS}
)

Documents = dict[str, dict[str, Any]]


class IndexMachine(RuleBasedStateMachine):
    """`committed` is what the index must hold, `pending` what it will after the next commit."""

    readers = Bundle("readers")

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.path = self.root / "index"
        self.n_crashes = 0
        self.storage = CrashingStorage()
        self.committed: Documents = {}
        self.pending: Documents = {}
        self.added: set[str] = set()
        self.writer = IndexWriter(self.path, storage=self.storage, max_segments=3)
        self.writer.commit()

    def teardown(self) -> None:
        self.writer.close()
        shutil.rmtree(self.root)

    @rule(documents=st.lists(FIELDS, min_size=1, max_size=4, unique_by=lambda one: one["id"]))
    def add(self, documents: list[dict[str, Any]]) -> None:
        twice = [one["id"] for one in documents if one["id"] in self.added]
        if twice:
            with pytest.raises(DataError, match=f"id '({'|'.join(twice)})' exists already"):  # noqa: PT012
                self.writer.add(documents)
                self.writer.commit()
            self.rollback()
            return
        self.writer.add(documents)
        self.pending = {key: one for key, one in self.pending.items() if key not in {d["id"] for d in documents}}
        self.pending |= {one["id"]: one for one in documents}
        self.added |= {one["id"] for one in documents}

    @rule(ids=st.lists(IDS, max_size=3, unique=True))
    def delete(self, ids: list[str]) -> None:
        assert self.writer.delete(ids) == sum(one in self.pending for one in ids)
        self.pending = {key: one for key, one in self.pending.items() if key not in ids}
        self.added -= set(ids)

    @rule()
    def commit(self) -> None:
        self.writer.commit()
        self._is_committed()

    @rule(max_segments=st.integers(1, 3))
    def merge(self, max_segments: int) -> None:
        self.writer.merge(max_segments)
        self._is_committed()
        index = Index.open(self.path)
        assert len(index.segments) <= max_segments
        assert all(live is None for live in index.live)

    def _is_committed(self) -> None:
        self.committed, self.added = dict(self.pending), set()

    @rule()
    def rollback(self) -> None:
        self.writer.rollback()
        self.pending, self.added = dict(self.committed), set()

    @rule()
    def next_writer(self) -> None:
        self.writer.close()
        self.writer = IndexWriter(self.path, storage=self.storage, max_segments=3)
        self.pending, self.added = dict(self.committed), set()

    @rule(
        crashes_after=st.integers(1, 40),
        keeps=st.sampled_from([0.0, 0.5, 1.0]),
        seed=st.integers(0, 99),
        merges=st.booleans(),
    )
    def crash(self, crashes_after: int, keeps: float, seed: int, merges: bool) -> None:
        """The machine stops during a commit, and is started again."""
        self.storage.crashes_at = self.storage.n_operations + crashes_after
        try:
            if merges:
                self.writer.merge()
            else:
                self.writer.commit()
            self._is_committed()
        except Crash:
            pass
        self.storage.is_dead = True
        with pytest.raises(Crash):
            self.writer.close()
        self.n_crashes += 1
        self.path = self.root / f"restarted{self.n_crashes}"
        self.storage.survivors(self.path, random.Random(seed), keeps=keeps)
        self.storage = CrashingStorage()
        self.storage.adopt(self.path)
        found = content_of(Index.open(self.path))
        old, new = self._expected(self.committed), self._expected(self.pending)
        assert found in (old, new)
        self.committed = self.committed if found == old else self.pending
        self.pending, self.added = dict(self.committed), set()
        self.writer = IndexWriter(self.path, storage=self.storage, max_segments=3)

    def _expected(self, documents: Documents) -> Content:
        return expected_content(documents.values())

    @rule(target=readers)
    def open(self) -> tuple[Index, Content]:
        return Index.open(self.path), self._expected(self.committed)

    @rule(reader=consumes(readers))
    def an_old_reader_sees_what_it_saw(self, reader: tuple[Index, Content]) -> None:
        index, expected = reader
        assert content_of(index) == expected

    @rule(document_id=IDS)
    def find(self, document_id: str) -> None:
        index = Index.open(self.path)
        doc = index.find(document_id)
        assert (doc >= 0) == (document_id in self.committed)
        if doc >= 0:
            assert index.stored(doc) == self.committed[document_id]

    @rule(words=st.lists(st.sampled_from(["ant", "bee", "cat", "dog", "gnu"]), min_size=1, max_size=4))
    def search(self, words: list[str]) -> None:
        """Deleted and replaced documents count nowhere: not among the results, not in the statistics."""
        result = Index.open(self.path).search(" ".join(words), k=20)
        expected = expected_ranking(self._expected(self.committed), words)
        assert result.ids == [key for key, _ in expected]
        assert result.scores.tolist() == pytest.approx([score for _, score in expected])

    @precondition(lambda self: len(self.committed) > 0)
    @rule()
    def documents_are_in_the_order_they_came(self) -> None:
        index = Index.open(self.path)
        assert list(content_of(index)) == list(self.committed)

    @rule()
    def check(self) -> None:
        assert check_index(self.path).problems == []

    @invariant()
    def what_is_read_is_what_was_committed(self) -> None:
        index = Index.open(self.path)
        assert content_of(index) == self._expected(self.committed)
        assert index.n_docs == len(self.committed)
        assert self.writer.generation == index.generation


TestIndexMachine = IndexMachine.TestCase
TestIndexMachine.settings = settings(max_examples=12, stateful_step_count=25, deadline=None)


@pytest.mark.slow
def test_many_more_histories() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(IndexMachine, settings=settings(max_examples=300, stateful_step_count=50, deadline=None))
