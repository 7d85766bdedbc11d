"""The terms of documents, against the analysis that cuts them one by one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from rankwell.index.reader import Index
from rankwell.index.segments import document_terms
from rankwell.index.segments.document_terms import DocumentTerms
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter

DOCUMENTS = [
    {"id": 0, "title": "The cats", "body": "of the Cat, 日本語 naïve"},
    {"id": 1, "title": "", "body": ["two texts", "of a list"]},
    {"id": 2, "author": {"name": "Ada"}, "body": f"{'x' * 300} end"},
    {"id": 3, "year": 1984},
]


ANALYSES = [Analysis(), Analysis(stop_words="english"), Analysis(stop_words="english", word_rule="unicode-1")]


@pytest.fixture(params=ANALYSES)
def index(request, tmp_path):
    with IndexWriter(tmp_path / "index", analysis=request.param) as writer:
        writer.add(DOCUMENTS)
        writer.commit()
    return Index.open(tmp_path / "index")


def expected(index, doc):
    fields = {"author.name": "Ada"} if doc == 2 else {}
    fields |= DOCUMENTS[doc]
    found = []
    for stream in index.schema.streams:
        value = fields.get(stream, "")
        for text in [value] if isinstance(value, str) else value:
            found += [term for term, _ in index.analysis.cut(text)]
    return found


def terms(index, docs):
    words, by_number = DocumentTerms.of(index).read(index, docs)
    return [[by_number[number] for number in own.tolist()] for own in words]


def test_the_terms_are_those_of_the_analysis(index):
    for docs in ([0], [2, 0, 3], [1, 1, 0], []):
        assert terms(index, docs) == [expected(index, doc) for doc in docs]


def test_what_is_forgotten_is_read_again(index, monkeypatch):
    monkeypatch.setattr(document_terms, "_TOKENS_REMEMBERED", 2)
    for docs in ([0, 1], [2], [1, 3, 0]):
        assert terms(index, docs) == [expected(index, doc) for doc in docs]


def test_several_threads(tmp_path):
    documents = [{"id": doc, "body": " ".join(f"w{doc % 7}x{word}" for word in range(50))} for doc in range(60)]
    with IndexWriter(tmp_path / "index") as writer:
        writer.add(documents)
        writer.commit()
    index = Index.open(tmp_path / "index")
    with ThreadPoolExecutor(4) as pool:
        read = DocumentTerms.of(index)
        found = list(pool.map(lambda doc: read.read(index, [doc, (doc * 7) % 60]), range(60)))
    for doc, (words, by_number) in enumerate(found):
        text = documents[doc]["body"].split()
        assert [by_number[number].decode() for number in words[0].tolist()] == text
