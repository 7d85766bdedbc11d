"""Names that say all about a feature, and sets of them."""

import re
from pathlib import Path

import numpy as np
import pytest
from tests.features.random_hits import FIVE_STREAMS

from rankwell.errors import DataError, ParameterError
from rankwell.features.catalogue import BM25F, COMBINED, KINDS, RELEVANCE_MODEL
from rankwell.features.feature_set import FeatureSet, make_feature_set
from rankwell.features.names import parse_feature
from rankwell.kernels.extraction.rules import Kind


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("bm25.title", "bm25.title"),
        ("bm25.title(k1=0.9;b=0.75)", "bm25.title(k1=0.9)"),
        ("bm25.title(k1=2.0;b=1)", "bm25.title(b=1;k1=2)"),
        ("lm_dirichlet.whole(mu=1000)", "lm_dirichlet.whole"),
        ("bm25f(weight.title=3;b=0.75)", "bm25f(weight.title=3)"),
        ("relevance_model.whole(terms=20.0;k1=1.2)", "relevance_model.whole(terms=20)"),
        ("static.page rank", "static.page rank"),
        ("a=b + 1", "a = b + 1"),
        ("tf_sum.a.b", "tf_sum.a.b"),
    ],
)
def test_a_name_has_one_canonical_form(given, canonical):
    assert parse_feature(given).name == canonical
    assert parse_feature(canonical) == parse_feature(canonical)
    assert parse_feature(parse_feature(given).name) == parse_feature(canonical)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bm26.title", "docs/features.md lists the features"),
        ("bm25", "name a stream, as in bm25.title"),
        ("window_all.whole", "reads places, and only streams have them"),
        ("bm25.title(mu=3)", "bm25 has no setting 'mu'; its settings are: k1, b"),
        ("bm25.title(b.title=3)", "bm25 has no setting 'b.title'"),
        ("bm25.title(b=high)", "'b=high' must be a parameter, = and a number"),
        ("bm25.title(b=1.5)", r"b must be in \[0, 1\], got 1.5"),
        ("bm25.title(b=nan)", r"b must be in \[0, 1\], got nan"),
        ("lm_absolute.title(delta=1)", r"delta must be in \(0, 1\), got 1"),
        ("completeness.title(b=1)", "completeness.title has no settings"),
    ],
)
def test_what_is_not_a_feature_is_refused(name, message):
    with pytest.raises(ParameterError, match=message):
        parse_feature(name)


def test_the_mslr_set_is_mslr_s_in_its_order():
    names = make_feature_set("mslr", ("url", "title", "anchor", "body")).names
    assert len(names) == 125
    # Features 1 to 5, 11, 21, 25, 106 and 125 of MSLR-WEB30K.
    assert names[:5] == (
        "covered_terms.body",
        "covered_terms.anchor",
        "covered_terms.title",
        "covered_terms.url",
        "covered_terms.whole",
    )
    assert (names[10], names[20], names[24]) == ("length.body", "tf_sum.body", "tf_sum.whole")
    assert (names[105], names[124]) == ("bm25.body", "lm_jelinek_mercer.whole")


def test_the_full_set_begins_with_the_mslr_set():
    full = make_feature_set("full", ("abstract", "title"), ("age",))
    mslr = make_feature_set("mslr", ("abstract", "title"))
    assert full.names[:75] == mslr.names
    assert mslr.names[:3] == ("covered_terms.title", "covered_terms.abstract", "covered_terms.whole")
    n_places = sum(not kind.of_whole for kind in KINDS.values())
    assert len(full) == 25 * 3 + n_places * 2 + 1 + 1 + 2 + 1
    last = ("static.age", "bm25f", "completeness.title", "completeness.abstract", "relevance_model.whole")
    assert full.names[-5:] == last
    assert full.without_feedback().names == full.names[:-1]


def test_parameters_are_in_the_names_and_reach_the_kernels():
    parameters = {"b": 0.5, "b.title": 0.25, "mu.whole": 5, "k1": 2, "weight.title": 3}
    full = make_feature_set("full", ("title", "body"), parameters=parameters)
    assert "bm25.title(b=0.25;k1=2)" in full.names
    assert "lm_dirichlet.whole(mu=5)" in full.names
    assert "lm_dirichlet.body" in full.names
    assert "bm25f(b=0.5;b.title=0.25;k1=2;weight.title=3)" in full.names
    assert full.names[-1] == "relevance_model.whole(b=0.5;k1=2)"
    columns = FeatureSet(full.names).columns(("title", "body"), (full.names[-1],))
    np.testing.assert_array_equal(columns.parameters[:, 0], 2)
    np.testing.assert_array_equal(columns.parameters[:, 1], [0.25, 0.5, 0.5])
    np.testing.assert_array_equal(columns.parameters[:, 2], [1000, 1000, 5])
    np.testing.assert_array_equal(columns.bm25f, [2, 0.25, 0.5, 3, 1])


def test_a_fingerprint_changes_with_names_and_their_order():
    one = FeatureSet(["bm25.title", "idf.title"])
    assert one.fingerprint == FeatureSet(["bm25.title(k1=1.2)", "idf.title"]).fingerprint
    others = [["idf.title", "bm25.title"], ["bm25.title"], ["bm25.title(k1=1)", "idf.title"]]
    assert len({one.fingerprint, *(FeatureSet(names).fingerprint for names in others)}) == 4


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["bm25.title", "bm25.title"], "holds each feature once"),
        (["bm25.title", "bm25.title(k1=1)"], "holds each feature once: 'bm25.title' and 'bm25.title"),
        (["a = 1", "a = 2"], "holds each feature once: 'a = 1' and 'a = 2'"),
        (["bm25.title(k1=1)", "bm25_proximity.title"], "have different k1: a stream has only one"),
        (["a = bm25.title", "bm25.title"], "feature 'a = bm25.title': .*there is no feature of this name"),
        (["a = 1 +"], "feature 'a = 1 \\+'"),
    ],
)
def test_sets_that_make_no_sense_are_refused(names, message):
    with pytest.raises(ParameterError, match=message):
        FeatureSet(names)


@pytest.mark.parametrize("parameters", [{"k2": 1}, {"b.abstract": 0.5}, {"b": 2}, {"terms": 20}])
def test_parameters_that_make_no_sense_are_refused(parameters):
    with pytest.raises(ParameterError):
        make_feature_set("full", ("title",), parameters=parameters)


def test_a_set_of_another_name_is_refused():
    with pytest.raises(ParameterError, match="one of mslr, full, got 'letor'"):
        make_feature_set("letor", ("title",))


def test_every_kind_has_a_formula_and_every_formula_is_documented():
    assert list(KINDS) == [kind.name.lower() for kind in Kind]
    pages = Path(__file__).resolve().parents[2] / "docs" / "features.md"
    documented = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", pages.read_text(encoding="utf-8"), re.MULTILINE))
    catalogue = {kind.name: kind.formula for kind in (*KINDS.values(), *COMBINED.values(), BM25F, RELEVANCE_MODEL)}
    assert documented == catalogue


def test_streams_and_statics_may_have_any_name():
    streams = ("a.b", "price (EUR)", 'say "x=1;"', "100%", "k1", *FIVE_STREAMS)
    statics = ("age = 3", "{stream}")
    full = make_feature_set("full", streams, statics, {"b.price (EUR)": 0.5, 'weight.say "x=1;"': 2})
    assert "bm25.price %28EUR%29(b=0.5)" in full.names
    assert "static.age %3D 3" in full.names
    again = FeatureSet(full.names)
    assert again == full
    columns = again.columns(streams, (*statics, "relevance_model.whole"))
    assert (columns.column_of[:-1] >= 0).all()
    assert (columns.static_column >= 0).all()
    assert columns.parameters[1, 1] == 0.5
    assert columns.bm25f[1 + len(streams) + 2] == 2
    more = FeatureSet([*full.names, 'x = "bm25.price %28EUR%29(b=0.5)" + 1'])
    assert len(more) == len(full) + 1


def test_a_stream_with_the_name_of_the_whole_document_is_refused():
    with pytest.raises(DataError, match="a stream called 'whole'"):
        make_feature_set("full", ("title", "whole"))
