from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankwell import ParameterError, QueryError
from rankwell.index.query.parser import MOST_DEPTH
from rankwell.index.query.query import Query, parse_filter, parse_query
from rankwell.index.query.tree import (
    And,
    Everything,
    Exists,
    Group,
    Keyword,
    Node,
    Not,
    Nothing,
    Or,
    Phrase,
    Prefix,
    Range,
    Word,
)
from rankwell.index.schema import Schema
from rankwell.index.text.analysis import Analysis

SCHEMA = Schema(["title", "body"], ["year", "price"])
A, B, C = Word(b"a", 0), Word(b"b", 1), Word(b"c", 2)


def parse(text: str, analysis: Analysis | None = None) -> Query:
    return parse_query(text, analysis or Analysis(), SCHEMA)


def any_of(*parts: Node) -> Group:
    return Group(optional=parts)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a AND b NOT c", Group(optional=(And((A, B)),), excluded=(C,))),  # NOT, then AND, then OR, then blanks
        ("a OR b AND c", any_of(Or((A, And((B, C)))))),
        ("a && b || c", any_of(Or((And((A, B)), C)))),
        ("a OR b c", any_of(Or((A, B)), C)),
        ("a AND NOT b", any_of(And((A, Not(B))))),
        ("a OR -b", any_of(Or((A, Not(B))))),
        ("+a AND +b", any_of(And((A, B)))),
        ("(a b) AND c", any_of(And((any_of(A, B), C)))),
        ("+(a b) c", Group((any_of(A, B),), (C,))),
        ("-(a AND b) c", Group(optional=(Word(b"c", 0),), excluded=(any_of(And((A, Word(b"b", 0)))),))),
        ("a !b", Group(optional=(A,), excluded=(B,))),
        ("NOT NOT a -b", Group(optional=(A,), excluded=(B,))),
        ("a (-b)", Group((Group(excluded=(B,)),), (A,))),  # a clause without words only filters: it is required
        ("-a NOT b", Nothing()),  # only exclusions
        ("* -a", Group((), (Everything(),), (A,))),
        ("()", Nothing()),
        ("a AND ()", any_of(A)),
        ("f(x)", any_of(Word(b"f"), any_of(Word(b"x", 1)))),
    ],
)
def test_boolean_groups(text: str, tree: Node) -> None:
    assert parse(text).as_tree() == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("title:a b", any_of(replace(A, field="title"), B)),
        ("title:(a b)", any_of(any_of(replace(A, field="title"), replace(B, field="title")))),
        ('title:"a b"', Group((Phrase((b"a", b"b"), (0, 1), field="title"),))),
        ("title:x-ray", Group((Phrase((b"x", b"ray"), (0, 1), field="title"),))),
        ('"a b"~3', Group((Phrase((b"a", b"b"), (0, 1), 3),))),
        ('"a b"~3^2', Group((Phrase((b"a", b"b"), (0, 1), 3, boost=2.0),))),
        ("a^2 b^.5", any_of(replace(A, boost=2.0), replace(B, boost=0.5))),
        ("(a b^2)^3", any_of(any_of(replace(A, boost=3.0), replace(B, boost=6.0)))),
        ("(a AND b)^3", any_of(any_of(And((replace(A, boost=3.0), replace(B, boost=3.0)))))),
        ("Comp* title:B*^2", any_of(Prefix(b"comp"), Prefix(b"b", "title", 2.0))),
        ("title:*", Group((Exists("title"),))),
        (r"a\:b \AND \(c\)", any_of(A, B, Word(b"and", 2), Word(b"c", 3))),
        ("title:(a body:b)", any_of(any_of(replace(A, field="title"), replace(B, field="body")))),
        ("a (+)", any_of(A)),
    ],
)
def test_fields_boosts_prefixes_slop(text: str, tree: Node) -> None:
    assert parse(text).as_tree() == tree


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("year:[2000 TO 2010]", Range("year", 2000, 2010)),
        ("year:{2000 TO 2010}", Range("year", 2000, 2010, False, False)),
        ("year:[2000 TO 2010}", Range("year", 2000, 2010, True, False)),
        ("year:[* TO 2010]", Range("year", -math.inf, 2010)),
        ("price:>1.5", Range("price", 1.5, math.inf, False, True)),
        ("price:>=-1e3", Range("price", -1000, math.inf)),
        ("price:<10", Range("price", -math.inf, 10, True, False)),
        ("price:<= 10", Range("price", -math.inf, 10)),
        ("year:2010", Range("year", 2010, 2010)),
        ('year:"2010"', Range("year", 2010, 2010)),
        ("year:true", Range("year", 1, 1)),
        ("year:*", Exists("year")),
    ],
)
def test_ranges_are_required(text: str, wanted: Node) -> None:
    assert parse(f"{text} a").tree == Group((wanted,), (A,))
    assert parse(f"-{text} a").tree == Group((), (A,), (wanted,))


def test_several_values_of_a_field() -> None:
    parsed = parse("year:(2000 OR [2003 TO 2005] OR >2010) a")
    values = Or((Range("year", 2000, 2000), Range("year", 2003, 2005), Range("year", 2010, math.inf, False, True)))
    assert parsed.tree == Group((Group((values,)),), (A,))


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("a (b", 3, r"'\(' is not closed"),
        ("a b)", 4, r"'\)' closes nothing"),
        ("AND b", 1, "AND has nothing before it"),
        ("a OR", 5, "OR has nothing after it"),
        ("a NOT", 3, "NOT has nothing after it"),
        ("a titel:b", 3, "there is no field 'titel'; the fields are title, body, year, price"),
        ("co*p", 1, "'co\\*p': wildcards are supported at the end of a word only"),
        ("a c?mp", 3, "'c\\?mp': wildcards"),
        ("*a", 1, "'\\*a': wildcards"),
        ("x-r*", 1, "a prefix is one word without punctuation"),
        ("/ab+c/", 1, "regular expressions are not supported"),
        ("a [b TO c]", 3, "a range needs a field with numbers or dates"),
        ("title:[a TO b]", 7, "'title' holds text"),
        ("title:>3", 7, "'>' needs a field with numbers or dates, 'title' holds text"),
        ("year:abc", 6, "field 'year' holds numbers, got 'abc'"),
        ("year:[1 TO b]", 6, "field 'year' holds numbers, got 'b'"),
        ("year:nan", 6, "field 'year' holds numbers, got 'nan'"),
        ("price:1_000", 7, "field 'price' holds numbers, got '1_000'"),
        ("year:[2000 TO", 6, r"the range '\[2000 TO' is not closed by \] or }: it is written year:\[1 TO 5\]"),
        ("year:{2000", 6, "the range '{2000' is not closed"),
        ("year:[2000 2010] a", 6, r"the range '\[2000 2010\]' has no TO between its ends"),
        ("year:[ TO 2010]", 6, r"the range '\[ TO 2010\]' has not two ends of one word each"),
        ("a year:[2010 TO 2000]", 8, "field 'year' has nothing between 2010 and 2000: a range begins with its lower"),
        ("a year:(2010 2012)", 8, r"no document meets year:\(2010 2012\): it has one value of 'year', and all of"),
        ("year:(2010 AND 2012)", 6, "Write OR between alternatives"),
        ("year:(<2010 2010)", 6, "no document meets"),
        ("price:>=100 AND <200", 17, "'<200' does not say what it compares: .* as in year:<200"),
        ("a >=-.5", 3, "'>=-.5' does not say what it compares"),
        ('a "b c"*', 8, "a star after a phrase has no word to complete"),
        ('"b c"~2*', 6, "the slop of a phrase must be a whole number from 0 to 99, got 2\\*"),
        ("a^", 2, "a boost is written"),
        ("a^0", 2, "a boost must be between 0.000001 and 1000000, got 0"),
        *(
            (
                f"oil {word}^{boost}",
                5 + len(word),
                rf"a boost is written \^ and a number, as in oil\^2 .*got '\^{boost}'",
            )
            for word in ("a", "title:a", "comp*", '"a b"', "(a b)")
            for boost in ("-1", "abc", "nan", "1e400", "2x", "2~")
        ),
        ("year:5^2", 7, "a boost needs words"),
        ('"a b"~2.5', 6, "the slop of a phrase must be a whole number from 0 to 99, got 2.5"),
        ('"a b"~100', 6, "from 0 to 99, got 100"),
        ('a "a b"~x', 8, "the slop of a phrase must be a whole number from 0 to 99, got x"),
        ('"a b"~', 6, "from 0 to 99, got nothing after its tilde"),
        ('"a b"~3x', 6, "from 0 to 99, got 3x"),
        ("foo~bar", 4, "the edits after a tilde must be 0, 1 or 2, got bar"),
        ("foo~1x", 4, "the edits after a tilde must be 0, 1 or 2, got 1x"),
        *(
            (f"{text}~2", 1 + len(text), "a tilde needs one whole word, as in receive~, or a phrase")
            for text in ("comp*", "(a b)", "year:5", "*", "title:*")
        ),
        ("title: oil", 7, "field 'title' has nothing after its colon: .* follows without a blank, as in title:oil"),
        ("a -title:", 10, "field 'title' has nothing after its colon"),
        ("(a title:)", 10, "field 'title' has nothing after its colon"),
        ("price:", 7, r"field 'price' has nothing after its colon: .*as in price:\[1 TO 5\]"),
        ("title:title:oil", 7, "field 'title' is followed by another field, 'title': give one of them"),
        ("year:title:oil", 6, "field 'year' is followed by another field, 'title'"),
        ("a* " * 33, 97, "there are more than 32 prefixes"),
        ("abc~ " * 33, 161, "there are more than 32 words with a tilde"),
        ("(a) " * 1025, 4097, "there are more than 1,024 parentheses"),
        ("year:1 " * 1025, 1024 * 7 + 6, "there are more than 1,024 values of fields"),
        ("(" * (MOST_DEPTH + 1), MOST_DEPTH + 1, "nested more than 50 deep"),
    ],
)
def test_what_is_not_supported_is_named_with_its_column(text: str, column: int, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        parse(text)
    assert caught.value.column == column
    assert f"column {column}:" in str(caught.value)
    assert "pass plain=True" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "column", "word"), [('a "b com*"', 6, "com"), ('"x*', 2, "x"), ('"ab* c"~2', 2, "ab")]
)
def test_a_phrase_has_no_prefixes(text: str, column: int, word: str) -> None:
    with pytest.raises(
        QueryError, match=rf"'{word}\*': a phrase has whole words, and no prefixes. Put a backslash"
    ) as told:
        parse(text)
    assert told.value.column == column
    assert "in quotes" not in str(told.value)


@pytest.mark.parametrize("text", [r'"a b\*"', '"a * b"', '"a*b"', '"* a b"'])
def test_other_stars_in_a_phrase_separate_words(text: str) -> None:
    assert parse(text).terms == (b"a", b"b")


def test_several_conditions_of_one_number() -> None:
    both_needed = (Range("year", 2000, math.inf, with_low=False), Range("year", -math.inf, 2010))
    assert parse("year:(>2000 <=2010) a").tree == Group((Group(both_needed),), (A,))
    assert parse("year:(2010 >=2010) a").tree == Group(
        (Group((Range("year", 2010, 2010), Range("year", 2010, math.inf))),), (A,)
    )


DATED = Schema(["title"], dates=["added"], keywords=["tags"])
MAY = 1714521600.0  # 2024-05-01


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("added:2024-05-01T00:00:00Z", Range("added", MAY, MAY + 1, with_high=False)),
        ("added:2024-05-01T00:00", Range("added", MAY, MAY + 60, with_high=False)),
        ("added:2024-05-01T02:00:00+02:00", Range("added", MAY, MAY + 1, with_high=False)),
        ('added:"2024-05-01 00:00:00"', Range("added", MAY, MAY + 1, with_high=False)),
        ("added:>=2024-05-01T00:00:00", Range("added", MAY, math.inf)),
        ("added:<2024-05-01T00:00:00", Range("added", -math.inf, MAY, with_high=False)),
        ("added:[2024-05-01T00:00:00 TO *]", Range("added", MAY, math.inf)),
        ("added:{* TO 2024-05-01T00:00:00}", Range("added", -math.inf, MAY, with_high=False)),
        ("tags:a:b", Keyword("tags", b"a:b")),
    ],
)
def test_values_that_contain_colons(text: str, wanted: Node) -> None:
    assert parse_query(f"{text} a", Analysis(), DATED).tree == Group((wanted,), (A,))
    if text.startswith("added:2024"):
        grouped = text.replace("added:", "added:(") + ")"
        assert parse_query(f"{grouped} a", Analysis(), DATED).tree == Group((Group((wanted,)),), (A,))


@pytest.mark.parametrize(("text", "example"), [("added: a", "added:2024-05"), ("tags:", "tags:value")])
def test_a_field_needs_a_value(text: str, example: str) -> None:
    with pytest.raises(QueryError, match=f"has nothing after its colon: .*as in {example}"):
        parse_query(text, Analysis(), DATED)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("added:soon", "field 'added' holds dates: a date is written 2024, .* got 'soon'"),
        ("added:[2024 TO soon]", "field 'added' holds dates: .* got 'soon'"),
        ("added:2024-02-30", "field 'added' holds dates: there is no date '2024-02-30'"),
        ("added:[2024 TO 2023-05]", "field 'added' has nothing between 2024 and 2023-05"),
        ("added:(2023 2024)", r"no document meets added:\(2023 2024\)"),
        ("<2024", "does not say what it compares: put a field and a colon before it. Put what"),
    ],
)
def test_mistakes_in_dates_name_the_field(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse_query(text, Analysis(), DATED)


def test_a_document_has_several_keywords_and_several_spans_of_one_date() -> None:
    tags = tuple(Keyword("tags", value) for value in (b"new", b"[x"))
    assert parse_query("tags:(new [x) a", Analysis(), DATED).tree == Group((Group(tags),), (A,))
    assert parse_query("added:(2024 2024-05)", Analysis(), DATED).tree is not None


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        (
            {"year": (2010, 2000)},
            "filter field 'year' has nothing between 2010 and 2000: a range begins with its lower",
        ),
        ({"year": (1, 2, 3)}, "field 'year': a tuple is a range .* holds numbers or dates, got 3 values"),
        ({"tags": ("A", "B")}, "field 'tags': a tuple is a range .* holds keywords, .*Several values are a list"),
        ({"tags": None}, "field 'tags' holds keywords, got None"),
        ({"added": "soon"}, "field 'added' holds dates: a date is written"),
        ({"added": (None, "soon")}, "field 'added' holds dates: a date is written"),
        ({"year": ["1_0"]}, "field 'year' holds numbers, got '1_0'"),
    ],
)
def test_mistakes_in_a_mapping_name_the_field(filter: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse_filter(filter, Analysis(), Schema(["title"], ["year"], keywords=["tags"], dates=["added"]))


def test_in_a_group_of_keywords_an_unknown_field_is_an_error() -> None:
    with pytest.raises(QueryError, match="there is no field 'pricee'"):
        parse_query("tags:(new pricee:5)", Analysis(), DATED)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("12:30 train", "12 30 train"),  # a time
        ("http://a.org/b?c=d*", "http a org b c d"),  # an address
        ("who is he?", "who is he"),
        ("error: not found", "error not found"),
        ("^ a ~5 ^^ ~~b", "a 5 b"),
        ("http://a.org/~b/c^2", "http a org b c 2"),
        ("[1] {x}", "1 x"),
        ("and or not", "and or not"),
    ],
)
def test_prose_is_words(text: str, words: str) -> None:
    parsed = parse(text)
    assert b" ".join(parsed.terms[number] for number in parsed.words).decode() == words
    assert parsed.tree is None or not parsed.tree.required


def test_excluded_words_are_no_terms() -> None:
    parsed = parse("a -b NOT c (d OR NOT e) title:a")
    assert parsed.terms == (b"a", b"d")
    assert parsed.frequencies == (2, 1)
    assert parsed.places == (0, 1, 2)


@given(st.text(alphabet='ab AND OR NOT"+-:()[]{}^~*?!\\/&|<>=.0123 title:year:', max_size=40))
@example('a"')
@example("\\")
def test_any_text_is_a_query_or_an_error_with_a_column(text: str) -> None:
    caught = None
    try:
        parsed = parse(text)
    except QueryError as error:
        caught = error
    if caught is not None:
        assert 1 <= caught.column <= len(text) + 1
    else:
        assert list(parsed.places) == sorted(set(parsed.places))
    assert parse_query(text, Analysis(), SCHEMA, plain=True).tree is None
