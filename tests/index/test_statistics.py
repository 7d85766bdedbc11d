from __future__ import annotations

from tests.index.searching import make_index

from rankwell.index.statistics import Statistics

DOCUMENTS = [{"title": "a", "body": "a b b"}, {"body": "b"}, {"title": "a a"}, {"title": "c", "body": "c a"}]


def test_counts_by_stream_and_whole_document() -> None:
    for cuts in ([], [1], [1, 3]):
        statistics = Statistics.of(make_index(DOCUMENTS, cuts=cuts, streams=["title", "body"]))
        assert statistics.n_docs == 4
        assert statistics.tokens.tolist() == [1 + 0 + 2 + 1, 3 + 1 + 0 + 2, 10]
        assert statistics.average_length(1) == 6 / 4
        assert statistics.average_length(-1) == 10 / 4
        a = statistics.term(b"a")
        assert a.doc_freq.tolist() == [2, 2, 3]
        assert a.occurrences.tolist() == [3, 2, 5]
        assert statistics.term(b"zzz").doc_freq.tolist() == [0, 0, 0]


def test_deleted_documents_are_not_counted() -> None:
    statistics = Statistics.of(make_index(DOCUMENTS, cuts=[2], deleted=[0, 3], streams=["title", "body"]))
    assert statistics.n_docs == 2
    assert statistics.tokens.tolist() == [2, 1, 3]
    assert statistics.term(b"a").doc_freq.tolist() == [1, 0, 1]
    assert statistics.term(b"a").occurrences.tolist() == [2, 0, 2]
    assert statistics.term(b"c").doc_freq.tolist() == [0, 0, 0]


def test_they_are_remembered_for_an_index() -> None:
    index = make_index(DOCUMENTS)
    assert Statistics.of(index) is Statistics.of(index)
    assert Statistics.of(index) is not Statistics.of(make_index(DOCUMENTS))


def test_no_words_at_all() -> None:
    statistics = Statistics.of(make_index([{"body": ""}], streams=["body"]))
    assert statistics.average_length(0) == 1.0
