"""The schema: names keep their numbers."""

from __future__ import annotations

import pytest

from rankwell.corpus.document import Place
from rankwell.errors import DataError, ParameterError
from rankwell.index.schema import MOST_STREAMS, Schema


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


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31m", "\ud800", "a\u2028b", "x" * 257, 7, None, ("a",)])
def test_what_is_not_a_name(name):
    with pytest.raises(ParameterError, match="the name of a field must be a text of 1 to 256 characters, none of them"):
        Schema([name])
    with pytest.raises(DataError, match=r"corpus, line 3, the name of a field must be a text of 1 to 256 characters"):
        Schema().static_number(name, Place("corpus", 3))


def test_where_one_name_is_refused_no_other_stays():
    schema = Schema(["title"], ["year"])
    assert schema.number_fields(["title", "body"], ["year", "rank"]) == ([0, 1], [0, 1])
    before = schema.copy()
    with pytest.raises(DataError, match="corpus, line 3, field 'title' holds a number"):
        schema.number_fields(["url", "body"], ["age", "title"], Place("corpus", 3))
    assert schema == before
    assert schema.number_fields(["age"], ["url"]) == ([2], [2])


def test_documents_with_names_of_their_own():
    schema = Schema()
    for number in range(MOST_STREAMS):
        schema.stream_number(f"stream {number}")
    with pytest.raises(
        DataError, match=r"corpus, line 257, field 'one more' is one too many: an index has at most 256"
    ):
        schema.stream_number("one more", Place("corpus", 257))
    assert (schema.n_streams, schema.static_number("a number")) == (MOST_STREAMS, 0)
