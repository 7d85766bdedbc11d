"""A static order: segments hold documents in it after builds and merges, and a search stops after the first matches."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from tests.index.segments import assert_same, build, documents_of, random_rows

from rankwell.errors import DataError, ParameterError
from rankwell.index.checking import check_index
from rankwell.index.merging import reordering
from rankwell.index.merging.reordering import reorder_segment
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.search import static_order
from rankwell.index.search.bm25 import BM25, BM25F
from rankwell.index.search.static_order import falling_order
from rankwell.index.segments.sink import MemorySink
from rankwell.index.writer import IndexWriter


def scored_rows(seed, n_docs):
    """Documents with a static `score` that has ties, is missing in every seventh document, and says nothing."""
    generator = np.random.default_rng(seed)
    rows = random_rows(generator, n_docs, vocabulary=40)
    for number, row in enumerate(rows):
        row["kind"] = [f"k{generator.integers(4)}" for _ in range(generator.integers(3))]
        row["tag"] = f"t{generator.integers(3)}"
        if number % 7:
            row["score"] = float(generator.integers(50)) / 4 - 3.0
    return rows


def in_falling_order(rows):
    return sorted(rows, key=lambda row: -row.get("score", -math.inf))


def schema_of(**options):
    return Schema(["title", "body", "url"], ["clicks", "score"], keywords=["kind", "tag"], **options)


def write_index(folder, rows, *, cuts=(), deleted=(), **options):
    bounds = [0, *cuts, len(rows)]
    with IndexWriter(
        folder, schema=schema_of(static_order="score", forward="all"), max_segments=99, **options
    ) as writer:
        for start, stop in itertools.pairwise(bounds):
            writer.add(rows[start:stop])
            writer.commit()
        writer.delete(deleted)
        writer.commit()
    return Index.open(folder)


class TestLayout:
    @pytest.mark.parametrize(("n_docs", "piece"), [(1, 2**18), (150, 2**18), (150, 60)])
    def test_a_segment_is_the_one_that_sorted_documents_give(self, monkeypatch, n_docs, piece):
        monkeypatch.setattr(reordering, "PIECE", piece)
        monkeypatch.setattr(reordering, "_STORED_BYTES", 2000)
        monkeypatch.setattr(reordering, "_RECORDS_AT_A_TIME", 16)
        rows = scored_rows(3, n_docs)
        written = build(documents_of(rows), schema_of(forward="all"))
        order = falling_order(written, 1)
        sink = MemorySink()
        reorder_segment(written, np.arange(1) if order is None else order, sink)
        assert_same(sink.segment(), build(documents_of(in_falling_order(rows)), schema_of(forward="all")))

    def test_no_work_where_documents_are_in_order(self):
        rows = in_falling_order(scored_rows(4, 50))
        assert falling_order(build(documents_of(rows), schema_of()), 1) is None
        assert falling_order(build(documents_of(rows[-2:]), Schema()), 5) is None

    def test_commits_and_merges_keep_the_order(self, tmp_path):
        rows = scored_rows(5, 120)
        index = write_index(tmp_path / "several", rows, cuts=(30, 31, 90), deleted=["d3", "d99"])
        assert len(index.segments) == 4
        for start, segment in zip((0, 30, 31, 90), index.segments, strict=True):
            own = in_falling_order(rows[start : start + segment.n_docs])
            assert [segment.id_of(doc) for doc in range(segment.n_docs)] == [row["id"] for row in own]
        with IndexWriter(tmp_path / "several") as writer:
            writer.merge()
        merged = Index.open(tmp_path / "several")
        # Equal statics stay in the order of their segments, and there in the order they were added in.
        kept = [row for row in in_falling_order(rows) if row["id"] not in ("d3", "d99")]
        (segment,) = merged.segments
        assert_same(segment, build(documents_of(kept), schema_of(forward="all")))
        assert merged.schema.static_order == "score"
        assert check_index(tmp_path / "several").is_sound
        assert not check_index(tmp_path / "several").remains

    def test_small_memory_gives_the_same_documents(self, tmp_path):
        rows = scored_rows(6, 80)
        write_index(tmp_path / "small", rows, memory_bytes=20_000)
        with IndexWriter(tmp_path / "small") as writer:
            writer.merge()
        (segment,) = Index.open(tmp_path / "small").segments
        assert_same(segment, build(documents_of(in_falling_order(rows)), schema_of(forward="all")))

    def test_a_duplicate_is_reported_at_its_own_place(self, tmp_path):
        schema = Schema(statics=["score"], static_order="score")
        with IndexWriter(tmp_path / "i", schema=schema) as writer:
            writer.add([{"id": "old", "body": "x", "score": 1}])
            writer.commit()
        with IndexWriter(tmp_path / "i", on_duplicate="error") as writer:
            writer.add([{"id": "a", "body": "x", "score": 1}, {"id": "old", "body": "x", "score": 9}])
            with pytest.raises(DataError, match=r"document 2 of those added: .*id 'old'"):
                writer.commit()

    def test_an_index_keeps_its_order(self, tmp_path):
        write_index(tmp_path / "i", scored_rows(1, 5))
        with pytest.raises(ParameterError, match="built with static_order='score', got 'clicks'"):
            IndexWriter(tmp_path / "i", schema=Schema(static_order="clicks"))
        assert Index.open(tmp_path / "i").schema == Index.open(tmp_path / "i").schema.copy()
        with pytest.raises(ParameterError, match="static order is not among the statics"):
            Schema.from_json({"streams": [], "statics": ["a"], "static_order": "b"})

    def test_check_finds_documents_out_of_order(self, tmp_path, monkeypatch):
        with monkeypatch.context() as patched:
            patched.setattr(static_order, "falling_order", lambda segment, static: None)
            write_index(tmp_path / "i", scored_rows(1, 40))
        (problem,) = check_index(tmp_path / "i").problems
        assert "not in the order of 'score'" in problem


@pytest.fixture(scope="module")
def rows():
    return scored_rows(8, 300)


@pytest.fixture(scope="module")
def indexes(rows, tmp_path_factory):
    """The same documents in several segments and in one."""
    folder = tmp_path_factory.mktemp("ordered")
    several = write_index(folder / "several", rows, cuts=(100, 101, 250), deleted=["d7"])
    write_index(folder / "one", rows, cuts=(100, 101, 250), deleted=["d7"])
    with IndexWriter(folder / "one") as writer:
        writer.merge()
    return several, Index.open(folder / "one")


class TestSearch:
    QUERIES = ("w1", "w1 w2 w3", "w3 w30", "+w1 w2", "w1 -w2", '"w1 w1"', "title:w1 w2", "tag:t1 w2", "-w1", "w99")

    def assert_best_of_first(self, index, rows, query, n, k, **options):
        """By the definition: all documents are sorted by the static, those after the examined ones dropped."""
        result = index.search(query, k=k, stop_after=n, **options)
        everything = index.search(query, k=len(rows), **options)
        statics = {row["id"]: row.get("score", -math.inf) for row in rows}
        flags = [
            np.ones(one.n_docs) if own is None else own for one, own in zip(index.segments, index.live, strict=True)
        ]
        live = np.flatnonzero(np.concatenate(flags)).tolist()
        first = sorted(live, key=lambda doc: (-statics[index.id_of(doc)], doc))[: result.n_examined]
        kept = np.isin(everything.docs, first)
        assert result.docs.tolist() == everything.docs[kept][:k].tolist()
        assert result.scores.tolist() == everything.scores[kept][:k].tolist()
        assert result.stopped_early == (result.n_examined < len(live))
        if result.stopped_early:
            assert len(result) == k
        return result, int(kept.sum())

    @pytest.mark.parametrize("query", QUERIES)
    @pytest.mark.parametrize("n", [1, 2, 10, 57, 1000])
    def test_the_best_of_the_first_documents(self, indexes, rows, query, n):
        for index in indexes:
            for k in (1, 10, 300):
                self.assert_best_of_first(index, rows, query, n, k)

    def test_about_as_many_match_as_were_asked_for(self, indexes, rows):
        """A static that says nothing: the share of the examined documents that match is that of all documents."""
        for index in indexes:
            for query in ("w1", "w2", "+w1 +w2"):
                result, n_matches = self.assert_best_of_first(index, rows, query, 40, 5)
                assert result.stopped_early
                assert 25 < n_matches < 60

    @pytest.mark.parametrize(
        "options", [{"match": "all"}, {"filter": "tag:t2"}, {"model": BM25F({"title": 2, "body": 1})}]
    )
    def test_with_other_ways_of_matching(self, indexes, rows, options):
        for index in indexes:
            for n in (3, 40):
                for k in (2, 300):
                    self.assert_best_of_first(index, rows, "w1 w2", n, k, **options)

    def test_it_does_not_depend_on_segments(self, indexes):
        several, one = indexes
        for query in self.QUERIES:
            for n in (5, 50):
                found = [index.search(query, k=20, stop_after=n) for index in (several, one)]
                # Scores, not ids: equal scores are in the order of documents, which differs.
                np.testing.assert_array_equal(found[0].scores, found[1].scores)

    def test_an_index_without_documents(self, tmp_path):
        index = write_index(tmp_path / "i", [])
        result = index.search("w1", stop_after=10)
        assert (result.ids, result.n_examined, result.stopped_early) == ([], 0, False)

    def test_many_windows(self, tmp_path):
        """More documents than a window has: the search reaches further only where matches are rare."""
        generator = np.random.default_rng(2)
        order = generator.permutation(9000).tolist()
        rows = [{"id": str(n), "body": "a" if n % 4000 else "a rare", "score": -n} for n in order]
        with IndexWriter(tmp_path / "i", schema=Schema(["body"], ["score"], static_order="score")) as writer:
            writer.add(rows)
            writer.commit()
        index = Index.open(tmp_path / "i")
        assert [index.id_of(doc) for doc in range(9000)] == [str(n) for n in range(9000)]
        result = index.search("rare", k=1, stop_after=2)
        assert (result.ids, result.n_examined, result.stopped_early) == (["0"], 6000, True)
        # Too few are found among the first ones.
        result = index.search("rare", k=3, stop_after=1)
        assert (result.ids, result.n_examined, result.stopped_early) == (["0", "4000", "8000"], 9000, False)
        result = index.search("a", k=3, stop_after=5000)
        assert (result.n_examined, result.stopped_early) == (5000, True)
        assert index.search("a", k=1, model=BM25(stream="body"), stop_after=1).ids == ["0"]

    def test_what_it_refuses(self, indexes, tmp_path):
        with IndexWriter(tmp_path / "plain") as writer:
            writer.add([{"id": "a", "body": "x"}])
            writer.commit()
        with pytest.raises(ParameterError, match="stop_after needs an index whose documents have a static order"):
            Index.open(tmp_path / "plain").search("x", stop_after=5)
        with pytest.raises(ParameterError, match="stop_after must be"):
            indexes[0].search("w1", stop_after=0)
        for options in ({"sort": "score"}, {"facets": ["tag"]}):
            with pytest.raises(ParameterError, match="sort and facets"):
                indexes[0].search("w1", stop_after=5, **options)
