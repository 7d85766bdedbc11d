"""Documents made of dictionaries: texts, numbers, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rankwell.corpus.document import LONGEST_ID, Place, document_of
from rankwell.errors import DataError

PLACE = Place("corpus.jsonl", 17)


def test_fields_are_parted_into_texts_and_numbers():
    fields = {"id": 7, "title": "A", "tags": ["x", "y"], "year": 1984, "rate": 0.5, "new": True, "gone": None}
    document = document_of(fields, PLACE)
    assert document.id == "7"
    assert document.texts == {"title": "A", "tags": ["x", "y"]}
    assert document.numbers == {"year": 1984.0, "rate": 0.5, "new": 1.0}
    assert json.loads(document.stored) == fields
    assert b"\n" not in document.stored
    assert document.n_characters == 3


def test_numbers_of_numpy_are_numbers():
    fields = {
        "id": np.int64(7),
        "year": np.int16(1984),
        "rate": np.float32(0.5),
        "odds": np.float64(0.25),
        "new": np.bool_(True),
        "title": np.str_("A"),
    }
    document = document_of(fields, PLACE)
    plain = {"id": 7, "year": 1984, "rate": 0.5, "odds": 0.25, "new": True, "title": "A"}
    assert document == document_of(plain, PLACE)
    assert (document.id, document.numbers) == ("7", {"year": 1984.0, "rate": 0.5, "odds": 0.25, "new": 1.0})
    assert json.loads(document.stored) == plain
    with pytest.raises(DataError, match="field 'n': a number must be finite"):
        document_of({"id": "a", "n": np.float32("nan")}, PLACE)
    for wrong in (np.complex64(1), np.array([[1.0]]), np.datetime64("2024-01-01")):
        with pytest.raises(DataError, match="field 'n': a field holds a text"):
            document_of({"id": "a", "n": wrong}, PLACE)


def test_ignored_fields_are_stored_only():
    document = document_of({"id": "a", "meta": {"x": 1}}, PLACE, ignored=("meta",))
    assert (document.texts, document.numbers) == ({}, {})
    assert json.loads(document.stored) == {"id": "a", "meta": {"x": 1}}


def test_half_a_surrogate_pair_does_not_break_what_is_stored():
    assert json.loads(document_of({"id": "a", "t": "x\ud800y"}, PLACE).stored) == {"id": "a", "t": "x?y"}


def nested(depth):
    return {"x": nested(depth - 1)} if depth else "text"


@pytest.mark.parametrize(
    ("value", "texts", "numbers"),
    [
        ({"name": "Ada", "born": 1815}, {"m.name": "Ada"}, {"m.born": 1815.0}),
        ({"a": {"b": {"c": ["x", "y"]}}, "none": None}, {"m.a.b.c": ["x", "y"]}, {}),
        ([{"name": "Ada"}, {"name": "Alan", "from": "UK"}], {"m.name": ["Ada", "Alan"], "m.from": ["UK"]}, {}),
        ([{"tags": ["x", "y"]}, {"tags": "z", "note": None}, "w"], {"m.tags": ["x", "y", "z"], "m": ["w"]}, {}),
        ({}, {}, {}),
    ],
)
def test_fields_of_objects_have_the_names_of_both(value, texts, numbers):
    document = document_of({"id": "a", "m": value}, PLACE)
    assert (document.texts, document.numbers) == (texts, numbers)
    assert json.loads(document.stored) == {"id": "a", "m": value}


def test_lists_of_numbers_are_vectors_and_not_stored():
    fields = {"id": "a", "title": "A", "u": [1, 2.5], "v": np.array([3.0], np.float32)}
    document = document_of(fields, PLACE, stored=b'{"all": "of them"}')
    assert document.vectors.keys() == {"u", "v"}
    assert document.vectors["u"] == [1, 2.5]
    assert (document.texts, document.numbers) == ({"title": "A"}, {})
    assert json.loads(document.stored) == {"id": "a", "title": "A"}
    assert document_of({"id": "a", "u": [1]}, PLACE, ignored=["u"]).vectors == {}


def test_fields_of_objects_can_be_ignored():
    fields = {"id": "a", "m": {"x": [1, 2], "y": "text"}, "n": {"z": b""}}
    assert document_of(fields, PLACE, ignored=["m.x", "n"], stored=b"{}").texts == {"m.y": "text"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": 10**5000}, "field 'id': an id has at most 1024 bytes, got a very large value"),
        ({"id": 10**1300}, "field 'id': an id has at most 1024 bytes, got '1000"),
        ({"id": "a", "n": 10**5000}, "field 'n': a number must be finite.*, got a very large value"),
        ({"id": "a", "n": ["x", 10**5000]}, "field 'n': a field holds.*, got a very large value"),
        ({"id": "a", ("n", "m"): "x"}, "The names of fields must be texts"),
    ],
)
def test_what_python_cannot_write(fields, message):
    with pytest.raises(DataError, match=f"corpus.jsonl, line 17.*{message}"):
        document_of(fields, PLACE)


@pytest.mark.parametrize("document_id", ["a", "é", "a b/c.txt", "x" * LONGEST_ID])
def test_good_ids(document_id):
    assert document_of({"id": document_id}, PLACE).id == document_id


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"title": "x"}, "the field 'id' is missing.*id_field"),
        ({"id": ""}, "field 'id': the id is empty"),
        ({"id": None}, "an id is a text or an integer, got None"),
        ({"id": 1.5}, "an id is a text or an integer, got 1.5"),
        ({"id": True}, "an id is a text or an integer, got True"),
        ({"id": "a\nb"}, r"must not contain control characters or line breaks, got '\\n' in 'a\\nb'"),
        ({"id": "a\x00"}, r"got '\\x00'"),
        ({"id": "\ud800"}, r"got '\\ud800'"),
        ({"id": "a\u2028"}, r"got '\\u2028'"),
        ({"id": "é" * LONGEST_ID}, "an id has at most 1024 bytes"),
        ({"id": "a", "n": float("nan")}, "field 'n': a number must be finite.*got nan"),
        ({"id": "a", "n": float("inf")}, "must be finite"),
        ({"id": "a", "n": 10**400}, "must be finite and fit"),
        (
            {"id": "a", "m": [1, True]},
            r"field 'm': a field holds a text.*got \[1, True\].*leave the field out",
        ),
        ({"id": "a", "m": {"x": [1]}}, r"field 'm.x': a field holds a text.*got \[1\] \(list\)"),
        ({"id": "a", "m": [{"x": 1}]}, r"field 'm.x': a field holds a text.*got \[1\] \(list\)"),
        ({"id": "a", "m.x": "1", "m": {"x": 1}}, "there are two fields 'm.x'"),
        ({"id": "a", "m": nested(17)}, "objects are nested more than 16 deep"),
        ({"id": "a", "m": ["x", 1]}, "got \\['x', 1\\] \\(list\\)"),
        ({"id": "a", "m": b"x"}, "got b'x' \\(bytes\\)"),
    ],
)
def test_what_is_wrong_and_where(fields, message):
    with pytest.raises(DataError, match=f"corpus.jsonl, line 17.*{message}"):
        document_of(fields, PLACE)


def test_a_place_without_lines():
    assert str(Place("a.txt")) == "a.txt"
