"""What is shown of documents is the same the first time and again, and takes a bounded part of the memory."""

import gc
import weakref

from tests.index.searching import make_index

from rankwell.serving import shown_documents
from rankwell.serving.answer import CaptionPart
from rankwell.serving.shown_documents import ShownDocuments, shown_results

ROWS = [
    {"id": f"d{number}", "title": f"Title {number}", "url": "https://example.org/x", "body": f"crude oil of {number}"}
    for number in range(40)
]


def shown(index, query, docs):
    return shown_results(index, index.parse(query), docs, [1.0] * len(docs), [2.0] * len(docs), 3)


def test_a_result_has_all_that_is_shown():
    (result,) = shown(make_index(ROWS), "oil", [7])
    assert (result.rank, result.id, result.score, result.first_score) == (3, "d7", 1.0, 2.0)
    assert (result.title, result.url, result.fields) == ("Title 7", "https://example.org/x", ROWS[7])
    assert list(result.caption) == [CaptionPart("crude ", False), CaptionPart("oil", True), CaptionPart(" of 7", False)]
    # Of a document whose texts are its title and nothing else, that is the caption.
    (bare,) = shown(make_index([{"id": "x", "title": "Crude oil", "link": "javascript:alert(1)"}]), "oil", [0])
    assert "".join(part.text for part in bare.caption) == "Crude oil"
    assert bare.url is None


def test_what_is_kept_gives_the_same_results(monkeypatch):
    index = make_index(ROWS)
    first = [shown(index, query, range(40)) for query in ("oil", "crude 7", "nothing")]
    documents = ShownDocuments.of(index)
    assert documents.n_bytes > 0
    again = [shown(index, query, range(40)) for query in ("oil", "crude 7", "nothing")]
    assert again == first
    # Room for a few: those that were shown longest ago are made again.
    most = documents.n_bytes // 8
    monkeypatch.setattr(shown_documents, "_MOST_BYTES", most)
    other = make_index(ROWS)
    for _ in range(2):
        assert [shown(other, query, range(40)) for query in ("oil", "crude 7", "nothing")] == first
        assert most / 2 < ShownDocuments.of(other).n_bytes <= most


def test_a_forward_index_changes_nothing():
    rows = [row | {"body": f"{row['body']}, and of the sea: " * 60} for row in ROWS]
    plain = make_index(rows, cuts=[10])
    by_words = make_index(rows, cuts=[10], forward="all")
    for query in ("oil 7", "crude sea", "se* 12", "nothing"):
        for _ in range(2):
            assert shown(plain, query, range(40)) == shown(by_words, query, range(40))


def test_an_index_that_is_gone_keeps_nothing():
    index = make_index(ROWS)
    shown(index, "oil", range(40))
    kept = weakref.ref(ShownDocuments.of(index))
    del index
    gc.collect()
    assert kept() is None
