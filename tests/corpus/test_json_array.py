"""JSON arrays and CSV as documents."""

from __future__ import annotations

import json

import pytest
from tests.corpus.test_reading import read, write

from rankwell.corpus import json_array
from rankwell.errors import DataError

RECORDS = [{"id": number, "title": f"Été {number}", "body": 'a "b" [c], ' * number} for number in range(30)]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("piece", [7, 2**20])
@pytest.mark.parametrize("name", ["c.json", "c.json.gz"])
def test_an_array_is_read_in_pieces_of_any_size(tmp_path, monkeypatch, indent, piece, name):
    monkeypatch.setattr(json_array, "_PIECE", piece)
    monkeypatch.setattr(json_array, "_BATCH", 4)
    documents = read(write(tmp_path, name, "\n " + json.dumps(RECORDS, indent=indent, ensure_ascii=False) + "\n"))
    assert [document.id for document in documents] == [str(number) for number in range(30)]
    assert [document.texts["title"] for document in documents] == [record["title"] for record in RECORDS]
    assert json.loads(documents[3].stored) == RECORDS[3]
    assert str(documents[3].place).endswith(f"{name}, element 4")


def test_json_lines_may_be_called_json(tmp_path):
    assert [one.id for one in read(write(tmp_path, "c.json", '{"id": 1}\n{"id": 2}\n'))] == ["1", "2"]
    assert read(write(tmp_path, "empty.json", "[]")) == []
    assert [one.id for one in read(write(tmp_path, "c.txt", '\ufeff[{"id": 1}]'), format="json")] == ["1"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"id": 1}, {"id": 2', "element 2: not JSON"),
        ('[{"id": 1} {"id": 2}]', "after element 1: expected ',', found"),
        ('[{"id": 1},]', "element 2: not JSON"),
        ('[{"id": 1}', "after element 1: expected ',', found the end of the file"),
        ('[{"id": 1}] x', "has more after the end of its array: 'x'"),
        ('[{"id": NaN}]', "element 1: NaN is not JSON"),
        ('[{"id": 1}, 5]', "element 2: each element must be an object.*got 5"),
        ('[{"title": "x"}]', "element 1: the field 'id' is missing"),
        (
            '{"id": 1,\n "title": "x"}\n',
            "c.json: one object over several lines, neither an array of documents nor lines",
        ),
        ("{\n}", r"Write \[ and \] around it if it is a document, or leave the file out"),
        ('{"id": 1,\n"title', "line 1, column 10: not JSON"),
        ("[" * 100_000, "element 1: lists and objects are nested too deeply"),
        (b'[{"id": "\xff"}]', "0xff is not utf-8"),
    ],
)
def test_bad_arrays(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read(write(tmp_path, "c.json", content))


def test_an_object_over_several_lines_is_one_bad_document(tmp_path, caplog):
    assert read(write(tmp_path, "c.json", '{\n"id":\n1}'), on_bad_document="skip") == []
    assert "1 bad document was left out" in caplog.text


def test_bad_elements_can_be_left_out(tmp_path):
    path = write(tmp_path, "c.json", '[{"id": 1}, 5, {"x": 1}, {"id": 2}]')
    assert [document.id for document in read(path, on_bad_document="skip")] == ["1", "2"]


def test_an_element_that_is_too_long(tmp_path):
    path = write(tmp_path, "c.json", json.dumps([{"id": 1, "body": "x" * 3_000_000}]))
    with pytest.raises(DataError, match=r"element 1: the document has more than 1,000,000 bytes"):
        read(path, longest_document=1_000_000)


CSV = 'id,title,year\r\na,"Oil, ""crude""\nand gas",1984\r\n\r\n2,Été,\r\n'


def test_csv(tmp_path):
    documents = read(write(tmp_path, "c.csv", "\ufeff" + CSV), statics=("year",))
    assert [document.id for document in documents] == ["a", "2"]
    assert documents[0].texts == {"title": 'Oil, "crude"\nand gas'}
    assert [document.numbers for document in documents] == [{"year": 1984.0}, {}]
    assert [document.place.line for document in documents] == [2, 5]
    assert read(write(tmp_path, "d.csv", "x,1\n"), columns=("title", "id"))[0].texts == {"title": "x"}


def test_csv_with_long_fields(tmp_path):
    long = "word " * 100_000  # longer than the limit of Python's csv module
    assert read(write(tmp_path, "c.csv", f"id,body\n1,{long}\n"))[0].texts == {"body": long}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,title\n1,a,b\n", "line 2: the line has 3 columns, but 2 are named. A value with commas"),
        ("title\nx\n", "line 1: no column is called 'id'"),
        ("id,a,a\n", "two columns are called 'a'"),
        ('id,a\n1,"x', "line 2: not CSV"),
        (b"id,a\n1,\xff\n", "0xff is not utf-8"),
        ("", "no column is called 'id'"),
    ],
)
def test_bad_csv(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read(write(tmp_path, "c.csv", content))
