"""The schema: names keep their numbers."""

from __future__ import annotations

import pytest

from rankwell.corpus.document import Place
from rankwell.errors import DataError, ParameterError
from rankwell.index.schema import Schema


def test_names_are_numbered_in_the_order_they_come():
    schema = Schema(["title"])
    assert [schema.stream_number(name) for name in ("body", "title", "body")] == [1, 0, 1]
    assert schema.static_number("clicks") == 0
    assert schema.to_json() == {"streams": ["title", "body"], "statics": ["clicks"]}
    assert Schema.from_json(schema.to_json()) == schema


def test_a_copy_grows_alone():
    schema = Schema(["title"])
    schema.copy().stream_number("body")
    assert schema.streams == ["title"]


def test_a_field_is_one_kind_of_thing():
    schema = Schema(["title"], ["year"])
    with pytest.raises(DataError, match=r"corpus, line 3, field 'year' holds a text, but other documents have numbers"):
        schema.stream_number("year", Place("corpus", 3))
    with pytest.raises(DataError, match="field 'title' holds a number, but other documents have texts"):
        schema.static_number("title")


@pytest.mark.parametrize(("streams", "statics"), [(["a", "a"], []), (["a"], ["a"])])
def test_a_name_twice(streams, statics):
    with pytest.raises(ParameterError, match="'a' is named twice"):
        Schema(streams, statics)


def test_an_empty_name():
    with pytest.raises(ParameterError, match="one character or more, got ''"):
        Schema().stream_number("")
