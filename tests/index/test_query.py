from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.index.searching import make_index

from rankwell import ParameterError
from rankwell.index.query.query import MOST_TERMS, Query, parse_query, without_operators
from rankwell.index.query.tree import And, Everything, Group, Node, Not, Nothing, Or, Phrase, Word, condition_of
from rankwell.index.reader import Index
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter

PLAIN = Analysis()


def test_words_in_order_with_their_frequencies() -> None:
    query = parse_query("Oil prices, oil!", PLAIN)
    assert query == Query(terms=(b"oil", b"prices"), frequencies=(2, 1), words=(0, 1, 0), places=(0, 1, 2))


def test_operators_and_phrases() -> None:
    query = parse_query('oil +"crude oil" -gas -"natural gas" +price', PLAIN)
    assert query.terms == (b"oil", b"crude", b"price")
    assert query.frequencies == (2, 1, 1)
    assert query.words == (0, 1, 0, 2)
    assert query.tree == Group(
        required=(Phrase((b"crude", b"oil"), (0, 1), place=1), Word(b"price", 3)),
        optional=(Word(b"oil", 0),),
        excluded=(Word(b"gas", 3), Phrase((b"natural", b"gas"), (0, 1), place=3)),
    )


@pytest.mark.parametrize(
    ("text", "terms", "required", "excluded"),
    [
        ("state-of-the-art", (b"state", b"of", b"the", b"art"), (), ()),  # a minus inside a word is punctuation
        ("a - b + c", (b"a", b"b", b"c"), (), ()),  # operators alone, too
        ("c++ -", (b"c",), (), ()),
        ("--a ++b", (b"b",), (Word(b"b"),), (Word(b"a"),)),
        ('"one"', (b"one",), (Phrase((b"one",), (0,)),), ()),  # a phrase of one word
        ('"" +"" -""', (), (), ()),
        ("a\x00b\x07\x1b[31mc\x7fd", (b"a", b"b", b"31mc", b"d"), (), ()),  # control characters separate words
        ("", (), (), ()),
        ("!!! ... \t\n", (), (), ()),
        ('a "b c', (b"a", b"b", b"c"), (Phrase((b"b", b"c"), (0, 1), place=1),), ()),  # it reaches to the end
        ("a -e-mail", (b"a",), (), (Phrase((b"e", b"mail"), (0, 1), place=1),)),  # several words after an operator
        ("+x-ray", (b"x", b"ray"), (Phrase((b"x", b"ray"), (0, 1)),), ()),
    ],
)
def test_rules(text: str, terms: tuple, required: tuple, excluded: tuple) -> None:
    query = parse_query(text, PLAIN)
    tree = query.as_tree()
    assert query.terms == terms
    assert (tree.required, tree.excluded) == (required, excluded) if isinstance(tree, Group) else terms == ()


ENGLISH = Analysis(common_words=["the", "of", "to", "be", "or", "not"])


@pytest.mark.parametrize(
    ("text", "terms", "places"),
    [
        ("the price of oil", (b"price", b"oil"), (1, 3)),
        ("to be or not to be", (b"to", b"be", b"or", b"not"), (0, 1, 2, 3, 4, 5)),
        ("the -gas of", (b"the", b"of"), (0, 1)),
        ("the +of price", (b"of", b"price"), (1, 2)),
        ('the "bank of england"', (b"bank", b"of", b"england"), (1, 2, 3)),
        ("the AND price", (b"the", b"price"), (0, 1)),
    ],
)
def test_common_words_count_where_nothing_else_does(text: str, terms: tuple, places: tuple) -> None:
    query = parse_query(text, ENGLISH)
    assert (query.terms, query.places) == (terms, places)


THE, OF, OIL = Word(b"the", 0), Word(b"of", 1), Word(b"oil", 1)
OF_EXCLUDED = Word(b"of", 0)  # excluded words take no place


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("(the) oil", Group(optional=(OIL,))),  # parentheses alone are no operator
        ("((the) (oil))", Group(optional=(Group(optional=(Group(optional=(OIL,)),)),))),
        ("(the of)", Group(optional=(THE, OF))),
        ("-(the of)", Nothing()),
        ("* -(the of)", Group((), (Everything(),), (Group(optional=(THE, OF_EXCLUDED)),))),
        ("* NOT ((the) of)", Group((), (Everything(),), (Group(optional=(THE, OF_EXCLUDED)),))),
        ("+(the) oil", Group((Group(optional=(THE,)),), (OIL,))),
        ("(the) AND oil", Group(optional=(And((Group(optional=(THE,)), OIL)),))),
        ("oil OR NOT (of)", Group(optional=(Or((Word(b"oil"), Not(Group(optional=(OF,))))),))),
        ("(the)^2 oil", Group(optional=(Word(b"the", 0, boost=2.0), OIL))),
        ("(the -oil)", Group(optional=(Group(optional=(THE,), excluded=(OIL,)),))),
        ("* -(the oil)", Group((), (Everything(),), (Group(optional=(Word(b"oil"),)),))),
    ],
)
def test_common_words_in_parentheses_keep_their_operator(text: str, tree: Node) -> None:
    assert parse_query(text, ENGLISH).as_tree() == tree


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("* -(the)", ["b", "c"]),
        ("* -the", ["b", "c"]),
        ("* NOT (of the)", ["b", "c"]),
        ("-(the of)", []),
        ("-the -of", []),
        ("oil AND NOT (the)", ["c"]),
        ("oil -(the)", ["c"]),
        ("+(the) oil", ["a", "d"]),
        ("+the oil", ["a", "d"]),
        ("(the) oil", ["a", "c"]),
        ("(the -oil)", ["d"]),
        ("the -oil", ["d"]),
    ],
)
def test_documents_of_common_words_in_parentheses(text: str, ids: list[str]) -> None:
    texts = {"a": "the price of oil", "b": "gas", "c": "oil barrel", "d": "the of"}
    index = make_index([{"id": name, "body": body} for name, body in texts.items()], analysis=ENGLISH)
    assert sorted(index.search(text).ids) == ids
    assert index.count(text) == len(ids)
    if not text.startswith("-"):
        return
    # A filter may consist of exclusions, a query may not.
    assert sorted(index.search("*", filter=text).ids) == ["b", "c"]


def test_common_words_are_words_of_phrases() -> None:
    query = parse_query('"bank of england" -"to be"', ENGLISH)
    assert query.tree == Group(
        required=(Phrase((b"bank", b"of", b"england"), (0, 1, 2)),),
        excluded=(Phrase((b"to", b"be"), (0, 1), place=3),),
    )


def test_stop_words_leave_gaps() -> None:
    query = parse_query('bank "ministry of the interior" +the -of', Analysis(stop_words="english"))
    assert query.tree == Group((Phrase((b"ministry", b"interior"), (0, 3), place=1),), (Word(b"bank"),))
    assert query.places == (0, 1, 4)
    assert parse_query("the bank of england", Analysis(stop_words="english")).places == (1, 3)


def test_a_query_keeps_its_first_terms() -> None:
    words = [f"w{n}" for n in range(10_000)]
    start = time.perf_counter()
    query = parse_query(" ".join(words), PLAIN)
    clauses = parse_query(" ".join(f"+{word}" for word in words), PLAIN)
    assert time.perf_counter() - start < 5
    assert query.terms == clauses.terms == tuple(word.encode() for word in words[:MOST_TERMS])
    assert query.is_shortened
    assert clauses.is_shortened
    assert not parse_query(" ".join(words[:MOST_TERMS]), PLAIN).is_shortened
    # Repeated words are not new terms; a phrase is used as a whole or not at all.
    assert not parse_query(" ".join(words[:5] * 2_000), PLAIN).is_shortened
    cut = parse_query(" ".join(words[: MOST_TERMS - 1]) + ' "w0 new1 new2" -w1', PLAIN)
    assert cut.is_shortened
    assert cut.tree is None
    assert len(cut.terms) == MOST_TERMS - 1


def test_a_query_is_a_text() -> None:
    with pytest.raises(ParameterError, match=r"a query must be a text, got b'oil' of type bytes"):
        parse_query(b"oil", PLAIN)  # type: ignore[arg-type]


def test_phrases_have_a_limited_number_of_words() -> None:
    """The time to look for a phrase grows with its words times those of a document."""
    long = " ".join(["a", "b"] * (MOST_TERMS // 2))
    kept = parse_query(f'"{long}" c', Analysis())
    assert isinstance(kept.tree, Group)
    assert len(kept.tree.required[0].terms) == MOST_TERMS
    assert not kept.is_shortened
    for query in (f'"{long} a" c', f'-"{long} a" c', f'"{long}" "a b" c', '"a b" ' + f'"{long}" c'):
        shortened = parse_query(query, Analysis())
        assert shortened.is_shortened
        assert b"c" not in shortened.terms


def test_a_phrase_that_is_repeated_is_looked_for_once() -> None:
    query = parse_query('"a b" ' * 1000 + '-"c d" ' * 1000 + "e", Analysis())
    wanted, excluded = Phrase((b"a", b"b"), (0, 1)), Phrase((b"c", b"d"), (0, 1))
    assert condition_of(query.tree, "any") == And((wanted, Not(excluded)))
    assert query.frequencies == (1000, 1000, 1)
    assert not query.is_shortened


def test_a_long_phrase_in_a_long_document(tmp_path: Path) -> None:
    """A phrase of 100,000 words in a document of as many took 10^10 steps."""
    with IndexWriter(tmp_path / "index") as writer:
        writer.add([{"id": "1", "body": "a b " * 50_000}])
        writer.commit()
    index = Index.open(tmp_path / "index")
    index.search('"a b"')
    start = time.process_time()
    assert index.search('"' + "a b " * 50_000 + '" b').query.is_shortened
    assert index.search('"' + "a b " * (MOST_TERMS // 2) + '"').ids == ["1"]
    assert time.process_time() - start < 5


def test_many_common_words_without_white_space_between_them_take_one_pass() -> None:
    text = "+x " + "-".join(["the"] * 20_000 + [f"w{number}" for number in range(20_000)])
    parse_query("+x " + "-".join(["the"] * 20_000), ENGLISH)  # the kernel for long texts is loaded
    start = time.process_time()
    query = parse_query(text, ENGLISH)
    assert time.process_time() - start < 2  # it took 5 s when each word was compared with each common one
    assert query.is_shortened
    assert b"the" not in query.terms


@pytest.mark.parametrize("text", ['a "b', "(a AND", "titel:b", "a^ b~2 c?d *", "\\", "year:[1 TO", "NOT"])
def test_plain_text_has_no_operators_and_no_errors(text: str) -> None:
    query = parse_query(text, PLAIN, plain=True)
    assert query.tree is None
    assert query.terms == tuple(dict.fromkeys(term for term, _ in PLAIN.cut(text)))
    assert parse_query(without_operators(text), PLAIN) == query
