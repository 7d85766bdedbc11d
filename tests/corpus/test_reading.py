"""Corpora: files and folders of every format as documents, and errors for bad ones."""

from __future__ import annotations

import gzip
import json
import logging
import time
from pathlib import Path

import pyarrow
import pytest

from rankwell.corpus.bad_documents import MOST_NAMED, BadDocuments
from rankwell.corpus.formats import format_of
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.reading import read_corpus
from rankwell.errors import DataError, ParameterError


def read(path, **options):
    return [document for batch in read_corpus(path, CorpusOptions(**options)) for document in batch]


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    if name.endswith(".gz"):
        data = gzip.compress(data)
    elif name.endswith(".zst"):
        data = pyarrow.Codec("zstd").compress(data, asbytes=True)
    path.write_bytes(data)
    return path


LINES = '{"id": "a", "title": "Été", "year": 1984}\n\n{"id": 2, "tags": ["x", "y"]}\r\n'


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_json_lines(tmp_path, suffix, end):
    documents = read(write(tmp_path, f"c.jsonl{suffix}", LINES.rstrip() + end))
    assert [document.id for document in documents] == ["a", "2"]
    assert documents[0].texts == {"title": "Été"}
    assert documents[0].numbers == {"year": 1984.0}
    assert documents[1].texts == {"tags": ["x", "y"]}
    assert [document.place.line for document in documents] == [1, 3]
    assert documents[0].stored == '{"id": "a", "title": "Été", "year": 1984}'.encode()


def test_a_byte_order_mark_is_not_text(tmp_path):
    assert read(write(tmp_path, "c.jsonl", b"\xef\xbb\xbf" + LINES.encode()))[0].id == "a"


def test_batches_hold_all_documents_in_order(tmp_path):
    lines = "".join(json.dumps({"id": number, "body": "word " * 50}) + "\n" for number in range(20_000))
    path = write(tmp_path, "c.jsonl", lines)
    batches = list(read_corpus(path))
    assert len(batches) > 3
    assert [document.id for batch in batches for document in batch] == [str(number) for number in range(20_000)]
    places = {document.id: document.place.line for batch in batches for document in batch}
    assert places["19999"] == 20_000


BAD_LINES = [
    ('{"id": 1', r"column 9: not JSON \(expecting ',' delimiter\), at the end of the line"),
    ('{"id": 1} x', r"column 11: not JSON \(extra data\), at 'x'\. Each line"),
    ("[1, 2]", r"each line must be one object, .* got \[1, 2\] \(list\)"),
    ('"text"', "each line must be one object"),
    ('{"id": "a\tb"}', r"not JSON \(invalid control character at\)"),
    ('{"id": 1, "n": NaN}', "NaN is not JSON"),
    ('{"id": 1, "n": -Infinity}', "-Infinity is not JSON"),
    ('{"id": 1, "n": 1e999}', "field 'n': a number must be finite"),
    ('{"title": "x"}', "the field 'id' is missing"),
    ('{"id": {}}', "field 'id': an id is a text or an integer"),
    ('{"id": 1, "m": [1, true]}', "field 'm': a field holds a text"),
    ("[" * 100_000, "nested too deeply"),
    ('{"id": 1, "n": ' + "9" * 5000 + "}", "an integer has too many digits"),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES)
def test_a_bad_line_is_named(tmp_path, line, message):
    path = write(tmp_path, "c.jsonl", f'{{"id": "good"}}\n{line}\n')
    with pytest.raises(DataError, match=f"c.jsonl, line 2.*{message}.*on_bad_document='skip'"):
        read(path)


def test_bad_lines_are_left_out_when_asked(tmp_path, caplog):
    path = write(tmp_path, "c.jsonl", '{"id": 1}\n{\n{"id": 2}\n\xff\n'.encode("latin-1") + b'{"id": 3}')
    with caplog.at_level(logging.WARNING, logger="rankwell"):
        assert [document.id for document in read(path, on_bad_document="skip")] == ["1", "2", "3"]
    first, second, count = caplog.messages
    assert first.startswith(f"left out: {path}, line 2, column 2: not JSON")
    assert second.startswith(f"left out: {path}, line 4, byte 1: 0xff is not utf-8")
    assert count == "2 bad documents were left out."


def test_bad_documents_of_several_corpora_are_counted_together(tmp_path, caplog):
    path = write(tmp_path, "c.jsonl", '{"id": 1}\n{\n')
    together = BadDocuments("skip")
    with caplog.at_level(logging.WARNING, logger="rankwell"):
        read(path, on_bad_document=together)
        read(path, on_bad_document=together)
        assert len(caplog.messages) == 2
        together.report()
        together.report()
    assert (together.count, caplog.messages[2:]) == (2, ["2 bad documents were left out."])


def test_not_every_one_of_very_many_bad_documents_is_named(tmp_path, caplog):
    path = write(tmp_path, "c.jsonl", "{\n" * (MOST_NAMED + 50))
    with caplog.at_level(logging.WARNING, logger="rankwell"):
        assert read(path, on_bad_document="skip") == []
    assert sum(message.startswith("left out: ") for message in caplog.messages) == MOST_NAMED
    assert caplog.messages[MOST_NAMED:] == [
        "further bad documents are left out and counted, but not reported.",
        f"{MOST_NAMED + 50} bad documents were left out.",
    ]


def test_bytes_that_are_not_utf8(tmp_path):
    path = write(tmp_path, "c.jsonl", b'{"id": 1, "t": "caf\xe9"}\n')
    with pytest.raises(DataError, match=r"c.jsonl, line 1, byte 20: 0xe9 is not utf-8.*encoding='latin-1'"):
        read(path)
    assert read(path, encoding="latin-1")[0].texts == {"t": "café"}
    assert json.loads(read(path, encoding="latin-1")[0].stored) == {"id": 1, "t": "café"}


def test_utf16_is_named_as_such(tmp_path):
    path = write(tmp_path, "c.jsonl", LINES.encode("utf-16"))
    with pytest.raises(DataError, match=r"c.jsonl is UTF-16 text. Convert it to UTF-8"):
        read(path)
    with pytest.raises(ParameterError, match="files of lines cannot be read in utf-16"):
        read(path, encoding="utf-16")


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz"])
def test_an_enormous_line(tmp_path, name):
    text = '{"id": 1}\n{"id": 2, "t": "' + "x" * 3_000_000 + '"}\n{"id": 3}\n'
    path = write(tmp_path, name, text)
    assert len(read(path)) == 3
    with pytest.raises(DataError, match=r"line 2: the document has more than 1,000,000 bytes.*longest_document"):
        read(path, longest_document=1_000_000)
    skipped = read(path, longest_document=1_000_000, on_bad_document="skip")
    assert [(document.id, document.place.line) for document in skipped] == [("1", 1), ("3", 3)]


def test_a_truncated_file_is_an_error_even_when_skipping(tmp_path):
    data = gzip.compress("".join(json.dumps({"id": n, "t": f"{n * 7919}"}) + "\n" for n in range(9999)).encode())
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match=r"cannot read .*c.jsonl.gz"):
        read(path, on_bad_document="skip")


def test_tsv_with_names_in_its_first_line(tmp_path):
    path = write(tmp_path, "c.tsv", "id\ttitle\tyear\na\tOne two\t1984\r\nb\t\t\n")
    documents = read(path, statics=("year",))
    assert [document.id for document in documents] == ["a", "b"]
    assert documents[0].texts == {"title": "One two"}
    assert documents[0].numbers == {"year": 1984.0}
    assert (documents[1].texts, documents[1].numbers) == ({"title": ""}, {})
    assert json.loads(documents[0].stored) == {"id": "a", "title": "One two", "year": 1984.0}


def test_tsv_with_names_given(tmp_path):
    documents = read(write(tmp_path, "c.tsv.zst", "7\tOne\n"), columns=("id", "body"))
    assert (documents[0].id, documents[0].texts) == ("7", {"body": "One"})


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a\tb\n", {}, "line 1: no column is called 'id'"),
        ("id\tb\tb\n", {}, "line 1: two columns are called 'b'"),
        ("id\t\n", {}, "line 1: column 2 has no name"),
        ("id\tb\n1\n", {}, "line 2: the line has 1 columns, but 2 are named"),
        ("id\tb\n1\tx\ty\n", {}, "line 2: the line has 3 columns"),
        ("id\tn\n1\tmany\n", {"statics": ("n",)}, "line 2, field 'n': a number was expected, got 'many'"),
        ("id\tn\n1\tnan\n", {"statics": ("n",)}, "line 2, field 'n': a number must be finite"),
        ("id\tn\n1\t2\n", {"statics": ("m",)}, "line 1: statics names 'm', which is not among the columns"),
        ("id\tn\n\t2\n", {}, "line 2, field 'id': the id is empty"),
    ],
)
def test_bad_tsv(tmp_path, text, options, message):
    with pytest.raises(DataError, match=f"c.tsv, {message}"):
        read(write(tmp_path, "c.tsv", text), **options)


def test_a_folder_of_files(tmp_path):
    write(tmp_path, "b/notes.txt", "plain words\n")
    write(tmp_path, "a.md", "# The title\n\nSome [link](http://x.example/path) text.\n")
    write(tmp_path, "c.html.gz", "<title>Page &amp; more</title><p>Seen<script>unseen</script>")
    write(tmp_path, ".hidden/d.txt", "no")
    write(tmp_path, "picture.png", b"\x89PNG")
    documents = read(tmp_path)
    assert [document.id for document in documents] == ["a.md", "b/notes.txt", "c.html.gz"]
    assert [document.texts["title"] for document in documents] == ["The title", "notes", "Page & more"]
    assert "path" not in documents[0].texts["body"]
    assert documents[1].texts["body"] == "plain words\n"
    assert documents[1].texts["url"] == "b/notes.txt"
    assert documents[2].texts["body"] == "Seen"
    assert json.loads(documents[1].stored)["body"] == "plain words\n"


def test_json_that_is_no_documents_is_skipped_among_pages(tmp_path, caplog):
    for name in ("a/settings.json", "model.json.gz"):
        write(tmp_path, name, '{\n  "rounds": 3\n}\n')
    write(tmp_path, "more.json", '[{"id": 1}]')
    write(tmp_path, "page.md", "words")
    assert [document.id for document in read(tmp_path)] == ["1", "page.md"]
    assert "2 JSON files among pages were skipped" in caplog.text
    assert f"the first is {tmp_path / 'a' / 'settings.json'}" in caplog.text
    (tmp_path / "page.md").unlink()
    with pytest.raises(DataError, match=r"settings.json: one object over several lines, neither an array"):
        read(tmp_path)


def test_files_read_as_one_format_are_text(tmp_path):
    write(tmp_path, "a.rst", "words")
    write(tmp_path, "b.gz", "packed words")
    write(tmp_path, "c", "wide words".encode("utf-16"))
    write(tmp_path, "picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    assert [document.id for document in read(tmp_path, format="html")] == ["a.rst", "b.gz", "c"]
    with pytest.raises(DataError, match=r"picture\.png"):
        read(tmp_path / "picture.png", format="markdown")


def test_several_paths_in_their_order(tmp_path):
    one, two = write(tmp_path, "z.jsonl", '{"id": 1}'), write(tmp_path, "a.txt", "x")
    assert [document.id for document in read([one, two])] == ["1", "a.txt"]


def test_a_text_file_that_is_not_utf8(tmp_path):
    path = write(tmp_path, "a.txt", b"caf\xe9")
    with pytest.raises(DataError, match=r"a.txt, byte 4: 0xe9 is not utf-8"):
        read(path)
    assert read(path, encoding="latin-1")[0].texts["body"] == "café"
    assert read(path, on_bad_document="skip") == []


def test_a_page_in_the_encoding_it_names(tmp_path):
    page = '<meta charset="iso-8859-1"><p>café'
    assert read(write(tmp_path, "a.html", page.encode("latin-1")))[0].texts["body"] == "café"
    assert read(write(tmp_path, "b.html", page.encode("utf-16")))[0].texts["body"] == "café"


def test_an_empty_file_is_an_empty_document(tmp_path):
    assert read(write(tmp_path, "a.txt", ""))[0].texts == {"title": "a", "body": "", "url": "a.txt"}
    assert read(write(tmp_path, "a.jsonl", "")) == []


def test_a_file_that_is_too_long(tmp_path):
    path = write(tmp_path, "a.txt", "x" * 11)
    with pytest.raises(DataError, match=r"a.txt: the document has more than 10 bytes"):
        read(path, longest_document=10)
    assert len(read(path, longest_document=11)) == 1


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.jsonl", "jsonl"), ("a.JSONL.GZ", "jsonl"), ("a.tsv.zst", "tsv"), ("a.md", "markdown"), ("a.gz", None)],
)
def test_the_name_tells_the_format(name, kind):
    assert format_of(name) == kind


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match=r"cannot read .*none.jsonl: No such file"):
        read(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="the name does not tell the format"):
        read(write(tmp_path, "a.xyz", "x"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty contains no file to index"):
        read(tmp_path / "empty")
    with pytest.raises(ParameterError, match="standard input has no name"):
        read("-")
    with pytest.raises(ParameterError, match="at least one file or folder"):
        read([])
    for nowhere in ("", [tmp_path, ""]):
        with pytest.raises(ParameterError, match="the path of a corpus is empty"):
            read(nowhere)
    with pytest.raises(ParameterError, match="format must be one of jsonl, json, tsv, csv"):
        read(tmp_path / "a.xyz", format="pdf")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_bad_document": "drop"}, "on_bad_document must be 'error' or 'skip', got 'drop'"),
        ({"longest_document": 0}, "longest_document must be at least 1, got 0"),
        ({"encoding": "utf-99"}, "encoding must be a text encoding that Python knows.*got 'utf-99'"),
        ({"encoding": "hex"}, "encoding must be a text encoding that Python knows.*got 'hex'"),
        ({"encoding": "undefined"}, "encoding must be a text encoding that Python knows.*got 'undefined'"),
        ({"encoding": "idna"}, "encoding must be a text encoding that Python knows.*got 'idna'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ParameterError, match=message):
        CorpusOptions(**options)


def linked_corpus(folder: Path) -> Path:
    """A folder with a file, and links to a file, to a folder and to itself."""
    outside = folder / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret words")
    corpus = folder / "corpus"
    corpus.mkdir()
    (corpus / "own.txt").write_text("own words")
    (corpus / "link.txt").symlink_to(outside / "secret.txt")
    (corpus / "linked").symlink_to(outside)
    (corpus / "again").symlink_to(corpus)
    (corpus / "broken.txt").symlink_to(folder / "nothing")
    return corpus


def test_links_in_a_folder_are_not_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    corpus = linked_corpus(tmp_path)
    assert [document.id for document in read(corpus)] == ["own.txt"]
    assert f"{corpus}: 4 links were skipped, the first is {corpus / 'again'}. Pass follow_links=True" in caplog.text


def test_links_in_a_folder_are_followed_if_asked(tmp_path: Path) -> None:
    corpus = linked_corpus(tmp_path)
    found = [document.id for document in read(corpus, follow_links=True)]
    assert found == ["link.txt", "linked/secret.txt", "own.txt"]


def test_a_path_that_is_given_may_be_a_link(tmp_path: Path) -> None:
    linked_corpus(tmp_path)
    (tmp_path / "given").symlink_to(tmp_path / "outside")
    assert [document.id for document in read(tmp_path / "given")] == ["secret.txt"]
    assert [document.id for document in read(tmp_path / "corpus" / "link.txt")] == ["link.txt"]


def test_many_columns_take_time_in_proportion(tmp_path: Path) -> None:
    """100,000 columns took a minute."""
    path = tmp_path / "wide.tsv"
    names = [f"c{number}" for number in range(100_000)]
    path.write_text("\t".join(["id", *names]) + "\n")
    start = time.process_time()
    assert read(path) == []
    assert time.process_time() - start < 5
    path.write_text("\t".join(["id", *names, "c7"]) + "\n")
    with pytest.raises(DataError, match="two columns are called 'c7'"):
        read(path)
