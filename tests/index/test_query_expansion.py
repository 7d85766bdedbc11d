"""Accents, synonyms and typing errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.searching import expected, make_index, pairs

from rankwell import DataError, Index, IndexWriter, QueryError
from rankwell.index.query.near_words import tolerance
from rankwell.index.query.query import parse_query
from rankwell.index.query.tree import Group, Or, Phrase, Similar
from rankwell.index.search.bm25 import BM25, BM25F
from rankwell.index.search.caption import find_caption
from rankwell.index.search.phrase_lists import PhraseTerms
from rankwell.index.statistics import Statistics
from rankwell.index.text.analysis import Analysis, without_accents
from rankwell.index.text.synonyms import Synonyms
from rankwell.kernels.words.reference import edit_distance


@pytest.mark.parametrize(
    ("word", "plain"),
    [
        ("résumé", "resume"),
        ("naïve", "naive"),
        ("straße", "straße"),  # folding makes it strasse
        ("smørrebrød", "smorrebrod"),
        ("œuvre", "oeuvre"),
        ("łódź", "lodz"),
        ("ἀθήνα", "αθηνα"),
        ("й", "й"),  # a letter of its own
        ("が", "が"),
        ("हिन्दी", "हिन्दी"),
    ],
)
def test_letters_without_accents(word: str, plain: str) -> None:
    assert without_accents(word) == plain


def test_resume_finds_resume_with_accents(tmp_path: Path) -> None:
    for fold in (True, False):
        path = tmp_path / str(fold)
        with IndexWriter(path, analysis=Analysis("english", fold_accents=fold)) as writer:
            writer.add([{"id": "with", "body": "two résumés"}, {"id": "without", "body": "a resume"}])
            writer.commit()
        index = Index.open(path)
        assert index.analysis.fold_accents is fold
        for query in ("resume", "Résumé", "résum*"):
            assert sorted(index.search(query).ids) == (["with", "without"] if fold else index.search(query).ids)
        assert len(index.search("resume")) == (2 if fold else 1)


def test_english_folds_accents() -> None:
    assert Analysis.of_language("en").fold_accents
    assert not Analysis.of_language("de").fold_accents
    assert not Analysis.of_language("en").with_accents(fold=False).fold_accents
    assert Analysis.of_language("en") != Analysis.of_language("en").with_accents(fold=False)


@given(
    texts=st.lists(st.text(alphabet="abé ", max_size=12), min_size=1, max_size=8),
    word=st.text(alphabet="abé", min_size=1, max_size=6),
    distance=st.integers(0, 2),
    n_deleted=st.integers(0, 2),
)
def test_near_words_are_those_of_live_documents(texts: list[str], word: str, distance: int, n_deleted: int) -> None:
    index = make_index([{"body": text} for text in texts], cuts=[len(texts) // 2], deleted=range(n_deleted))
    having: dict[str, int] = {}
    for text in texts[n_deleted:]:
        for one in set(text.split()):
            having[one] = having.get(one, 0) + 1
    near = [(edit_distance(one, word), -n, one.encode()) for one, n in having.items()]
    expected = [
        (term, 1 - edits / min(len(term.decode()), len(word)))
        for edits, _, term in sorted(near)
        if edits <= distance and edits < min(len(term.decode()), len(word))
    ]
    found = Statistics.of(index).near_words(word.encode(), distance, -1)
    assert found == tuple(expected)[:32]


def test_typing_errors() -> None:
    index = make_index([{"body": "receive letters"}, {"body": "receiver set"}, {"body": "cat"}, {"body": "bat"}])
    assert index.search("recieve").ids == []
    assert index.search("recieve", typos=True).ids == ["d0", "d1"]
    assert index.search("recieve~").ids == ["d0", "d1"]
    assert index.search("recieve~1").ids == ["d0"]
    assert index.search("cat", typos=True).ids == ["d2", "d3"]  # the word itself counts more
    assert index.search("cat~0").ids == ["d2"]
    assert index.search('+"recieve"', typos=True).ids == []  # a phrase is taken as it is written
    assert index.search("letters -recieve", typos=True).ids == ["d0"]
    assert index.parse("recieve", typos=True).terms == (b"receive",)
    assert [tolerance(word) for word in (b"ab", b"abc", b"abcde", b"abcdef", "éé".encode())] == [0, 1, 1, 2, 0]


NEAR_DOCUMENTS = [{"body": text} for text in ("receive oil", "oil recieve", "oil gas", "rate gas", "receives")]


@pytest.mark.parametrize(
    ("query", "filter", "ids"),
    [
        ("oil -receive~", None, ["d2"]),
        ("oil -receive~0", None, ["d1", "d2"]),
        ("oil AND NOT recieve~1", None, ["d2"]),
        ("* -(receive~ OR rate)", None, ["d2"]),
        ("* NOT (gas receive~)", None, []),
        ("oil OR NOT (gas OR receive~)", None, ["d0", "d1", "d2"]),
        ("-body:receive~ oil", None, ["d2"]),
        ("oil -xyzzy~", None, ["d0", "d1", "d2"]),  # no word is near
        ("oil", "receive~", ["d0", "d1"]),
        ("oil", "recieve~1", ["d0", "d1"]),
        ("oil", "-receive~", ["d2"]),
        ("*", "body:receive~ AND NOT oil", ["d4"]),
        ("*", "NOT (NOT rtae~1)", ["d3"]),
    ],
)
def test_words_with_a_tilde_exclude_and_filter(query: str, filter: str | None, ids: list[str]) -> None:
    index = make_index(NEAR_DOCUMENTS, cuts=[2])
    found = index.search(query, filter=filter)
    assert sorted(found.ids) == ids
    assert pairs(found) == expected(index, NEAR_DOCUMENTS, query, filter=filter)
    assert found.n_matches == index.count(query, filter=filter) == len(ids)
    assert index.search("oil", filter="receive~0").ids == ["d0"]


@pytest.mark.parametrize("documents", [NEAR_DOCUMENTS, [*NEAR_DOCUMENTS, {"body": "rtae"}]])
def test_a_near_word_counts_less_also_if_it_is_the_only_one(documents: list[dict[str, str]]) -> None:
    index = make_index(documents)
    for query, typos in (("rtae~", False), ("rtae~1 oil*", False), ("gas rtae~1", False), ("rtae", True)):
        wanted = dict(expected(index, documents, query, typos=typos))
        assert dict(pairs(index.search(query, typos=typos))) == pytest.approx(wanted)
    (rate,) = (doc for doc, words in enumerate(documents) if words["body"].startswith("rate"))
    scores = dict(pairs(index.search("rtae~1 xyzzy*")))
    assert dict(pairs(index.search("rtae~1")))[rate] == scores[rate] < dict(pairs(index.search("rate")))[rate]


def test_excluded_words_without_a_tilde_are_taken_as_they_are_written() -> None:
    index = make_index(NEAR_DOCUMENTS)
    assert sorted(index.search("oil -receve", typos=True).ids) == ["d0", "d1", "d2"]
    synonyms = Synonyms.of(["rate, oil"])
    assert sorted(index.search("gas -rate", synonyms=synonyms).ids) == ["d2"]


def test_a_condition_with_unknown_near_words_is_a_bug() -> None:
    index = make_index(NEAR_DOCUMENTS)
    unresolved = parse_query("oil -receive~", index.analysis, index.schema)
    with pytest.raises(TypeError, match=r"Near.*is not a condition"):
        index.search(unresolved)


def test_typing_errors_are_forgiven_in_the_first_words() -> None:
    index = make_index([{"body": "receive"}])
    assert index.search("x " * 31 + "recieve", typos=True).ids == ["d0"]
    assert index.search(" ".join(f"x{n}" for n in range(32)) + " recieve", typos=True).ids == []


@pytest.mark.parametrize(
    ("query", "message"),
    [("a~3", "the edits after a tilde must be 0, 1 or 2, got 3"), ("x-ray~1", "a tilde needs one word")],
)
def test_wrong_tildes(query: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        make_index([{"body": "a"}]).search(query)


RULES = """
# televisions
tv, television , telly
laptop => notebook, portable computer
united states => usa
"""


@pytest.fixture(scope="module")
def index() -> Index:
    texts = ["a tv", "the television", "a laptop", "my notebook", "a portable computer", "usa", "united we stand"]
    return make_index([{"body": text} for text in texts], analysis=Analysis("english"))


@pytest.mark.parametrize(
    ("query", "match", "ids"),
    [
        ("tv", "any", ["d0", "d1"]),
        ("televisions", "any", ["d0", "d1"]),  # rules are in stems
        ("laptop", "any", ["d2", "d3", "d4"]),
        ("notebook", "any", ["d3"]),  # the arrow has one direction
        ("united states", "any", ["d5", "d6"]),
        ("united states", "all", ["d5"]),
        ('"tv"', "any", ["d0"]),
        ("+tv a", "any", ["d0", "d1"]),
        ("a -tv", "any", ["d2", "d4"]),
    ],
)
def test_synonyms(index: Index, query: str, match: str, ids: list[str]) -> None:
    synonyms = Synonyms.of(RULES.splitlines())
    assert sorted(index.search(query, match=match, synonyms=synonyms).ids) == ids


def test_the_words_that_were_typed_are_the_querys_terms(index: Index) -> None:
    parsed = index.parse("laptop tv", synonyms=Synonyms.of(RULES.splitlines()))
    assert (parsed.terms, parsed.frequencies, parsed.places) == ((b"laptop", b"tv"), (1, 1), (0, 1))
    assert parsed.phrases == ()
    computer = Phrase((b"portabl", b"comput"), (0, 1), is_typed=False)
    assert parsed.tree == Group(
        optional=(
            Or((Similar(((b"laptop", 1.0), (b"notebook", 1.0))), computer)),
            Similar(((b"tv", 1.0), (b"televis", 1.0), (b"telli", 1.0)), 1),
        )
    )
    assert index.parse("cat", synonyms=Synonyms.of(RULES.splitlines())).tree is None
    for typos in (False, True):
        states = index.parse("united states", synonyms=Synonyms.of(RULES.splitlines()), typos=typos)
        assert states.terms == (b"unit", b"state")
    typed = index.parse('"portable computer" laptop', synonyms=Synonyms.of(RULES.splitlines()))
    assert typed.terms == (b"portabl", b"comput", b"laptop")
    assert (typed.phrases, typed.phrase_frequencies) == ((PhraseTerms((b"portabl", b"comput"), (0, 1)),), (1,))


SYNONYM_DOCUMENTS = [
    {"title": "news", "body": text}
    for text in (
        "laptop sale", "notebook sale", "portable computer sale", "sale of a portable computer and a laptop",
        "computer portable", "united states trip", "usa trip", "united trip", "states", "united kingdom",
    )
] + [{"title": "united states", "body": "usa"}, {"title": "portable computer", "body": "news"}]  # fmt: skip


@pytest.mark.parametrize("match", ["any", "all"])
@pytest.mark.parametrize(
    "query",
    [
        "laptop", "laptop sale", "+sale laptop", "+laptop sale", "laptop AND sale", "laptop -notebook",
        '"laptop" laptop', "body:laptop", "laptop^2 trip", "usa", "+usa trip", "united states",
        "+(united OR states) united states",
        "united states^2 sale", "body:(united states)", "title:(united states) news", "computer laptop",
        '"portable computer" laptop', "sal* laptop", "+missing laptop", "+(laptop OR missing)",
    ],
)  # fmt: skip
def test_synonyms_of_several_words_count_as_one_term(query: str, match: str) -> None:
    synonyms = Synonyms.of(["laptop => notebook, portable computer", "usa, united states"])
    for cuts in ((), (3, 8)):
        index = make_index(SYNONYM_DOCUMENTS, cuts=cuts, streams=["title", "body"])
        for model in (BM25(), BM25(stream="body"), BM25F({"title": 2.0, "body": 1.0})):
            wanted = expected(index, SYNONYM_DOCUMENTS, query, model=model, match=match, k=20, synonyms=synonyms)
            for prune in (True, False):
                found = index.search(query, model=model, match=match, k=20, synonyms=synonyms, prune=prune)
                assert dict(pairs(found)) == pytest.approx(dict(wanted))
                assert found.n_matches == len(wanted)
            best = index.search(query, model=model, match=match, k=2, synonyms=synonyms)
            assert best.scores == pytest.approx([score for _, score in wanted[:2]])


def test_a_synonym_scores_as_the_word_would() -> None:
    """One document has each, and all are equally long: the phrase counts once, not with its words."""
    index = make_index([{"body": text} for text in ("cheap laptop", "portable computer", "cheap notebook")])
    found = index.search("laptop", synonyms=Synonyms.of(["laptop => portable computer"]))
    assert found.ids == ["d0", "d1"]
    assert found.scores[0] == found.scores[1] == index.search("laptop").scores[0]


def test_words_of_one_field_have_synonyms_together() -> None:
    synonyms = Synonyms.of(["united states => usa"])
    index = make_index(SYNONYM_DOCUMENTS, streams=["title", "body"])
    for query, ids in (
        ("body:(united states)", ["d10", "d5", "d6", "d7", "d8", "d9"]),
        ("title:(united states)", ["d10"]),
        ("body:united title:states", ["d10", "d5", "d7", "d9"]),  # not of one field
        ("+body:(united states) trip", ["d10", "d5", "d6", "d7", "d8", "d9"]),
        ("body:(united states) AND trip", ["d5", "d6", "d7"]),
    ):
        assert sorted(index.search(query, synonyms=synonyms, k=20).ids) == ids


def test_synonyms_of_several_words_are_marked_in_captions(index: Index) -> None:
    parsed = index.parse("laptop", synonyms=Synonyms.of(RULES.splitlines()))
    caption = find_caption({"body": "a portable computer, usa"}, parsed, index.analysis)
    assert [caption.text[start:stop] for start, stop in caption.hits] == ["portable", "computer"]
    parsed = index.parse("united states", synonyms=Synonyms.of(RULES.splitlines()))
    caption = find_caption({"body": "a portable computer, usa"}, parsed, index.analysis)
    assert [caption.text[start:stop] for start, stop in caption.hits] == ["usa"]


def test_files_of_synonyms(tmp_path: Path) -> None:
    path = tmp_path / "synonyms.txt"
    path.write_text(RULES, "utf-8")
    assert Synonyms.read(path) == Synonyms.of(RULES.splitlines())
    for line in ("alone", "=> a", "a =>", ", ,"):
        path.write_text(f"a, b\n{line}\n", "utf-8")
        with pytest.raises(DataError, match=r"synonyms.txt, line 2 must be words as in 'tv, television'"):
            Synonyms.read(path)


def test_a_word_without_synonyms_stays(index: Index) -> None:
    assert index.search("stand", synonyms=Synonyms.of(["x, y"])).ids == ["d6"]
