"""Keyword fields and dates: built, merged, checked, and found again after deletions."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.segments import assert_same, build, documents_of

from rankwell import DataError, Index, IndexWriter, ParameterError
from rankwell.index.checking import check_index
from rankwell.index.merging.segment_merging import merge_segments
from rankwell.index.schema import Schema
from rankwell.index.segments.checking import segment_problems
from rankwell.index.segments.columns import keyword_column
from rankwell.index.segments.dates import date_span, date_text
from rankwell.index.segments.sink import MemorySink

VALUE = st.sampled_from(["", "a", "b", "a b", "ä", "日本"])
ROW = st.fixed_dictionaries({}, optional={"kind": VALUE, "tags": st.lists(VALUE, max_size=3)})


def values_of(segment, field: int) -> list[list[str]]:
    """The values of each document, one by one."""
    column = keyword_column(segment, field)
    pointer = range(segment.n_docs + 1) if column.entry_ptr is None else column.entry_ptr.tolist()
    return [
        [column.values[entry].decode() for entry in column.entries[start:stop].tolist() if entry >= 0]
        for start, stop in pairwise(pointer)
    ]


@given(rows=st.lists(ROW, max_size=20), cuts=st.lists(st.integers(0, 20), max_size=2), seed=st.integers(0, 99))
def test_merged_as_if_built_at_once(rows: list[dict], cuts: list[int], seed: int) -> None:
    documents = documents_of({"id": number, **row} for number, row in enumerate(rows))
    schema = Schema(keywords=["kind", "tags"])
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    segments = [build(documents[start:stop], schema) for start, stop in pairwise(bounds)]
    alive = np.random.default_rng(seed).random(len(rows)) < 0.7
    live = [alive[start:stop].astype(np.uint8) for start, stop in pairwise(bounds)]
    sink = MemorySink()
    merge_segments(segments, live, sink)
    kept = [number for number in range(len(rows)) if alive[number]]
    merged = sink.segment()
    assert segment_problems(merged) == []
    assert_same(merged, build([documents[number] for number in kept], Schema(keywords=["kind", "tags"])))
    assert values_of(merged, 0) == [[rows[number]["kind"]] if "kind" in rows[number] else [] for number in kept]
    encoded = [sorted(set(rows[number].get("tags", [])), key=str.encode) for number in kept]
    assert values_of(merged, 1) == encoded


def test_a_field_that_came_later(tmp_path: Path) -> None:
    """Older segments do not have it."""
    path = tmp_path / "idx"
    with IndexWriter(path) as writer:
        writer.add([{"id": "old", "body": "x"}])
        writer.commit()
    with IndexWriter(path, schema=Schema(keywords=["kind"], dates=["day"])) as writer:
        writer.add([{"id": "new", "body": "x", "kind": "k", "day": "2020-01-01"}])
        writer.commit()
        for _ in range(2):
            index = Index.open(path)
            assert index.search("x", filter="kind:k").ids == ["new"]
            assert index.search("x", filter="-kind:*").ids == ["old"]
            assert index.search("x", filter="day:2020").ids == ["new"]
            assert index.search("x", sort="kind").ids == ["new", "old"]
            assert check_index(path).problems == []
            writer.merge()


def test_a_field_that_is_a_stream_cannot_become_a_keyword_field(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "idx") as writer:
        writer.add([{"id": 1, "kind": "x"}])
        writer.commit()
    with pytest.raises(ParameterError, match="field 'kind' is named twice"):
        IndexWriter(tmp_path / "idx", schema=Schema(keywords=["kind"]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "x" * 1025}, "field 'kind': a keyword has at most 1,024 bytes, got 1,025"),
        ({"day": "yesterday"}, "field 'day': a date is written 2024, 2024-05, .*, got 'yesterday'"),
        ({"day": "2023-02-29"}, "field 'day': there is no date '2023-02-29'"),
        ({"day": 20230101}, "field 'day': a date is a text such as 2024-05-31, got 20230101.0"),
        ({"day": ["2020", "2021"]}, "field 'day': a date is a text"),
    ],
)
def test_bad_values_name_their_place(tmp_path: Path, fields: dict, message: str) -> None:
    with (
        IndexWriter(tmp_path / "idx", schema=Schema(keywords=["kind"], dates=["day"])) as writer,
        pytest.raises(DataError, match=f"document 1 of those added, {message}"),
    ):
        writer.add([{"id": 1, **fields}])


def test_numbers_are_keywords_as_they_are_written(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "idx", schema=Schema(keywords=["sku"])) as writer:
        writer.add([{"id": 1, "sku": 123}, {"id": 2, "sku": "0123"}])
        writer.commit()
    index = Index.open(tmp_path / "idx")
    assert index.search("sku:123").ids == ["1"]
    assert index.search("*", filter={"sku": 123}).ids == ["1"]
    assert index.search("sku:0123").ids == ["2"]
    assert index.schema.streams == []


@pytest.mark.parametrize(
    ("text", "first", "seconds"),
    [
        ("1970", 0.0, 365 * 86_400.0),
        ("1970-02", 31 * 86_400.0, 28 * 86_400.0),
        ("1969-12-31", -86_400.0, 86_400.0),
        ("1970-01-01T01:02", 3_720.0, 60.0),
        ("1970-01-01T01:02:03Z", 3_723.0, 1.0),
        ("1970-01-01 01:00:00+01:00", 0.0, 1.0),
        ("1970-01-01T00:00:00-0030", 1_800.0, 1.0),
    ],
)
def test_dates_mean_what_they_name(text: str, first: float, seconds: float) -> None:
    assert date_span(text) == (first, first + seconds)


def test_dates_as_text() -> None:
    assert date_text(date_span("2024-05-31")[0]) == "2024-05-31"
    assert date_text(date_span("2024-05-31T10:30:00+02:00")[0]) == "2024-05-31T08:30:00Z"
    assert date_span("2024-05-31T10:30:00.25Z")[0] % 1 == 0.25


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"sort": "body"},
            "sort must be fields as year or year:desc; 'body' holds text, it can be sorted by: year, kind",
        ),
        ({"sort": ["year", "nope:desc"]}, "'nope' does not exist"),
        ({"facets": ["body"]}, "facets must be of year, kind; 'body' holds text"),
        ({"facets": {"kind": [1, 2]}}, "facets of field 'kind' cannot have the edges"),
        ({"facets": {"year": [0, float("nan")]}}, r"cannot have the edges \[0, nan\]: nan is not a number"),
        ({"facets": {"year": ["a", "b"]}}, "cannot have the edges .*: 'a' is not a number"),
        ({"facets": {"year": ["0", "1_0"]}}, "'1_0' is not a number"),
        ({"facets": {"year": [2, 1]}}, "facets of field 'year' must have two edges or more that ascend"),
        ({"sort": 3}, "sort must be fields as year or year:desc, got 3"),
        ({"sort": [3]}, "'3' does not exist"),
        ({"facets": 3}, "facets must be fields, or a mapping of fields to edges, got 3"),
        ({"facets": [["year"]]}, "facets must be fields, or a mapping"),
        ({"facets": {"year": 5}}, "facets of field 'year' must have a list of edges, got 5"),
        ({"facets": {"year": "0,5"}}, "facets of field 'year' must have a list of edges, got '0,5'"),
        ({"synonyms": "tv,television"}, r"synonyms must be Synonyms, as Synonyms.of\(.* got 'tv,television'"),
        ({"synonyms": {"tv": "television"}}, "synonyms must be Synonyms"),
        ({"typos": "yes"}, "typos must be True or False, got 'yes'"),
        ({"plain": 1}, "plain must be True or False, got 1"),
        ({"filter": {"body": "x"}}, "filter field 'body' holds text"),
        ({"filter": {"year": "x"}}, "filter field 'year' holds numbers, got 'x'"),
        ({"filter": 3}, "filter must be a text or a mapping"),
        ({"filter": "kind:[a TO b]"}, "the filter cannot be read, column 6: a range needs a field with numbers"),
        ({"filter": "year:"}, "the filter cannot be read, column 6: field 'year' has nothing after its colon"),
    ],
)
def test_wrong_arguments(tmp_path: Path, arguments: dict, message: str) -> None:
    with IndexWriter(tmp_path / "idx", schema=Schema(keywords=["kind"])) as writer:
        writer.add([{"id": 1, "body": "x", "year": 1, "kind": "k"}])
        writer.commit()
    with pytest.raises(ParameterError, match=message):
        Index.open(tmp_path / "idx").search("x", **arguments)


def test_fields_to_sort_by_may_be_one_text(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "idx", schema=Schema(keywords=["kind"])) as writer:
        writer.add([{"id": n, "year": n % 3, "kind": f"k{n % 2}"} for n in range(8)])
        writer.commit()
    index = Index.open(tmp_path / "idx")
    assert index.search("*", sort="year:desc,kind").ids == index.search("*", sort=["year:desc", "kind"]).ids
    assert index.search("*", sort="year:desc,kind", typos=np.False_).ids == ["2", "5", "4", "1", "7", "0", "6", "3"]
    assert index.search("*", sort=()).ids == index.search("*").ids


def test_facets_of_shards_add_up(tmp_path: Path) -> None:
    parts = []
    for part in range(2):
        with IndexWriter(tmp_path / str(part), schema=Schema(keywords=["kind"])) as writer:
            writer.add([{"id": n, "body": "x", "kind": f"k{(n + part) % 3}", "price": n} for n in range(10)])
            writer.commit()
        found = Index.open(tmp_path / str(part)).search("x", k=1, facets={"kind": None, "price": [0, 5, 10]})
        parts.append(found.facets)
    assert parts[0]["kind"] == {"k0": 4, "k1": 3, "k2": 3}
    assert parts[0]["kind"] + parts[1]["kind"] == {"k0": 7, "k1": 7, "k2": 6}
    assert parts[0]["price"] + parts[1]["price"] == {(0, 5): 10, (5, 10): 10}
