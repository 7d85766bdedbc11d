"""TREC's documents: what is read, and what is wrong in bad ones."""

import gzip
import time

import pytest

from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.reading import read_corpus
from rankwell.errors import DataError

TWO = """\
<DOC>
<DOCNO> AP880212-0001 </DOCNO>
<FILEID>AP-NR-02-12-88 2344EST</FILEID>
<HEAD>Reports Former Saigon &amp; Officials</HEAD>
<HEAD>Second head</HEAD>
<TEXT>
More than 150 former officers<P>of the   overthrown
government
</TEXT>
</DOC>
text between documents
<doc><docno>two</docno> outside <text>a &lt; b</text></doc><DOC><DOCNO>three</DOCNO></DOC>
"""


def documents(path, **options):
    return [document for batch in read_corpus(path, CorpusOptions(**options)) for document in batch]


@pytest.mark.parametrize("name", ["ap.trec", "ap.trectext", "ap.trec.gz"])
def test_documents_and_their_fields(tmp_path, name):
    content = TWO.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    first, second, third = documents(tmp_path / name)
    assert (first.id, second.id, third.id) == ("AP880212-0001", "two", "three")
    assert first.texts == {
        "fileid": "AP-NR-02-12-88 2344EST",
        "head": ["Reports Former Saigon & Officials", "Second head"],
        "text": "More than 150 former officers of the   overthrown\ngovernment",
    }
    assert second.texts == {"text": "a < b"}
    assert (first.place.line, second.place.line) == (1, 12)


def test_options(tmp_path):
    (tmp_path / "docs").write_bytes(TWO.replace("Officials", "Offici\xe9ls").encode("latin-1"))
    options = {"format": "trec", "encoding": "latin-1", "ignored": ("fileid",)}
    assert documents(tmp_path / "docs", **options)[0].texts["head"][0].endswith("Officiéls")
    assert "fileid" not in documents(tmp_path / "docs", **options)[0].texts
    (tmp_path / "docs").write_text("<DOC><URL>http://a</URL><TEXT>b</TEXT></DOC>")
    assert documents(tmp_path / "docs", format="trec", id_field="URL")[0].id == "http://a"


def test_a_document_may_extend_over_many_blocks(tmp_path):
    text = "word " * 1000
    lines = "\n".join([text] * 2000)
    (tmp_path / "long.trec").write_text(f"<DOC>\n<DOCNO>1</DOCNO>\n<TEXT>\n{lines}\n</TEXT>\n</DOC>\n{TWO}")
    found = documents(tmp_path / "long.trec")
    assert [document.id for document in found] == ["1", "AP880212-0001", "two", "three"]
    assert len(found[0].texts["text"].split()) == 2_000_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<DOC>\n<TEXT>a</TEXT>\n</DOC>\n", "line 1: the field 'docno' is missing"),
        ("<DOC>\n<DOCNO>1</DOCNO>\n", "line 1: the document was cut short: it has no </DOC>"),
        ("\n<DOC><DOCNO>1</DOCNO>\n<DOC><DOCNO>2</DOCNO></DOC>", "line 2: the document was cut short"),
        ("<DOC><DOCNO>1</DOCNO>" + "".join(f"<t{i}>" for i in range(200)) + "</DOC>", "tags of more than 100 names"),
        ("<DOC><DOCNO>1</DOCNO>" + "x" * 50_000 + "</DOC>", "more than 40,000 bytes"),
    ],
)
def test_bad_documents_are_named_or_skipped(tmp_path, content, message):
    (tmp_path / "bad.trec").write_text(content + "\n<DOC><DOCNO>good</DOCNO></DOC>\n")
    with pytest.raises(DataError, match=message):
        documents(tmp_path / "bad.trec", longest_document=40_000)
    skipped = documents(tmp_path / "bad.trec", longest_document=40_000, on_bad_document="skip")
    assert skipped[-1].id == "good"


def test_tags_without_an_end_take_no_time(tmp_path):
    (tmp_path / "hostile.trec").write_text("<DOC><DOCNO>1</DOCNO>\n" + "<a>\n<b \n" * 200_000 + "</DOC>\n")
    started = time.process_time()
    assert documents(tmp_path / "hostile.trec")[0].id == "1"
    assert time.process_time() - started < 5
