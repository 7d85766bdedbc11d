"""Ranked search by rankers made of rankers: two passes, deadlines, and the features that each pass extracts."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from tests.features.random_hits import random_documents
from tests.features.small_index import index_of, text_of

from rankwell import LeastSquares, MadeRanker, RankBoost
from rankwell.data.dataset import RankingDataset
from rankwell.features.extraction import extract
from rankwell.features.feature_set import FeatureSet, make_feature_set
from rankwell.features.feedback import with_feedback
from rankwell.features.hit_reading import collect_hits
from rankwell.features.queries import QueryText
from rankwell.features.selected import is_selected, selected_features
from rankwell.features.training_data import judged_features
from rankwell.index.query.query import parse_query
from rankwell.index.search.bm25 import BM25, BM25F
from rankwell.scoring.composition import FirstPass, RankerPart
from rankwell.scoring.description import ExpressionInputs, RankerDescription
from rankwell.scoring.feature_use import over_features, read_features
from rankwell.scoring.normaliser import Normaliser
from rankwell.serving.ranking.feature_log import FeatureLog, FeatureLogReader
from rankwell.serving.ranking.ranked_search import RankedSearch

STREAMS = ("title", "body")
FEATURES = make_feature_set("full", STREAMS)
FIRST = ("bm25.body", "covered_terms.whole", "completeness.title")
QUERIES = [QueryText(str(number), text_of([number % 9, (number * 5) % 11])) for number in range(8)]
KEEP, DEPTH = 6, 30


@pytest.fixture(scope="module")
def index():
    documents = random_documents(np.random.default_rng(4), 80, streams=STREAMS)
    ranks = [float(number) if number % 3 else np.nan for number in range(80)]
    return index_of(documents, streams=STREAMS, statics={"rank": ranks}, cuts=(50,))


@pytest.fixture(scope="module")
def train(index):
    rng = np.random.default_rng(5)
    qrels = {query.id: {f"d{doc}": float(rng.integers(0, 3)) for doc in range(80)} for query in QUERIES}
    return judged_features(index, QUERIES, qrels, FEATURES, source="top", n_candidates=DEPTH).dataset


@pytest.fixture(scope="module")
def cascade(train):
    """Least squares over three features, one of them an expression of others, then RankBoost over all."""
    columns = tuple(FEATURES.names.index(name) for name in FIRST)
    few = RankingDataset(train.features[:, columns], train.labels, group=train.query_sizes, feature_names=FIRST)
    first = LeastSquares(normalize="query-minmax").fit(few).description_
    second = RankBoost(n_rounds=10, normalize="query-minmax").fit(train).description_
    return replace(second, parts=(RankerPart("first", columns, first),), first_pass=FirstPass(0, KEEP))


def expected(index, description, number):
    """The scores of a query's candidates by prediction, in the order of selection, by which ties are decided."""
    query = parse_query(QUERIES[number].text, index.analysis)
    found = index.search(query, k=DEPTH)
    hits = collect_hits(index, [query], [found.docs])
    rows = extract(with_feedback(hits, FEATURES, index, [found], [found.docs]), FEATURES)
    scores = MadeRanker.from_description(description).predict(rows, group=[len(rows)])
    return dict(zip(found.ids, scores.tolist(), strict=True))


def test_search_ranks_as_prediction_does(index, train, cascade, tmp_path):
    MadeRanker.from_description(cascade).save(tmp_path / "cascade.rank")
    searcher = RankedSearch(index, tmp_path / "cascade.rank", n_candidates=DEPTH)
    for number, result in enumerate(searcher.search_many([query.text for query in QUERIES], k=DEPTH)):
        assert dict(zip(result.ids, result.scores.tolist(), strict=True)) == expected(index, cascade, number)
        assert result.n_ranked == min(KEEP, result.n_candidates)
        assert (np.diff(result.scores) <= 0).all()


@pytest.mark.parametrize("model", [None, BM25(), BM25(k1=0.9, b=0.4, stream="body")], ids=str)
def test_what_selection_knows_is_what_extraction_computes(index, model):
    features = FeatureSet(
        [
            "bm25.body(b=0.4;k1=0.9)" if model is not None and model.stream else "bm25.whole",
            *("length.title", "length.whole", "static.rank", "long = length.whole / (1 + length.title)"),
        ]
    )
    assert is_selected(features, model)
    queries = [parse_query(text, index.analysis) for text in ("w1 w5 w5 w2", "w2 w3 w4", "w8 w0", "unknown", "")]
    found = [index.search(query, k=DEPTH, model=model) for query in queries]
    docs = [result.docs for result in found]
    rows = selected_features(index, features, found, docs)
    assert len(rows) > 30
    np.testing.assert_array_equal(rows, extract(collect_hits(index, queries, docs), features))


def test_words_with_operators_are_scored_by_extraction(index, train, cascade):
    columns, names = (FEATURES.names.index("bm25.whole"),), ["bm25.whole"]
    few = RankingDataset(train.features[:, columns], train.features[:, columns[0]], feature_names=names)
    part = RankerPart("first", columns, LeastSquares(normalize="none").fit(few).description_)
    searcher = RankedSearch(index, replace(cascade, parts=(part,)), n_candidates=DEPTH)
    query = index.parse("title:w1 w2^3")
    late = searcher.search(query, k=DEPTH, deadline=time.monotonic() - 1)
    found = searcher.search(query, k=DEPTH)
    both = (found.docs[KEEP:], late.docs)
    below, selected = (extract(collect_hits(index, [query], [docs]), FeatureSet(names))[:, 0] for docs in both)
    assert (np.diff(below) <= 0).all()  # those below are in the order of the feature, not of selection
    assert (np.diff(selected) > 0).any()


def test_what_selection_does_not_know():
    assert not is_selected(FeatureSet(["bm25.title"]), None)
    assert not is_selected(FeatureSet(["bm25.whole(b=0.4)"]), BM25())
    assert not is_selected(FeatureSet(["bm25.whole"]), BM25F())
    assert not is_selected(FeatureSet(["covered_terms.whole"]), None)


def test_a_first_pass_over_what_selection_knows(index, train, cascade):
    names = ("bm25.whole", "length.body")
    columns = tuple(FEATURES.names.index(name) for name in names)
    few = RankingDataset(train.features[:, columns], train.labels, group=train.query_sizes, feature_names=names)
    first = LeastSquares().fit(few).description_
    quick = replace(cascade, parts=(RankerPart("first", columns, first),))
    searcher = RankedSearch(index, quick, n_candidates=DEPTH)
    for number in range(len(QUERIES)):
        result = searcher.search(QUERIES[number].text, k=DEPTH)
        assert dict(zip(result.ids, result.scores.tolist(), strict=True)) == expected(index, quick, number)


def test_a_pass_extracts_what_its_ranker_reads(index, train, cascade):
    searcher = RankedSearch(index, cascade)
    assert set(FIRST) <= set(searcher._first.feature_set.names)
    assert len(searcher._first.feature_set) == len(FIRST) + 2  # and what the expression reads
    assert set(read_features(cascade.second_pass)) <= set(searcher._ranker.feature_set.names)
    assert len(searcher._ranker.feature_set) < len(FEATURES)


def test_what_is_over_its_deadline_stays_in_the_order_of_the_stage_before(index, train, cascade, monkeypatch):
    searcher = RankedSearch(index, cascade, n_candidates=DEPTH)
    text = QUERIES[3].text
    late = searcher.search(text, k=DEPTH, deadline=time.monotonic() - 1)
    selected = index.search(parse_query(text, index.analysis), k=DEPTH)
    assert late.ids == tuple(selected.ids)
    assert late.n_ranked == 0
    # The deadline comes while the first pass, which compares documents, runs.
    first_pass = searcher._first.score

    def slow(hits):
        scores = first_pass(hits)
        time.sleep(max(0.0, until - time.monotonic()))
        return scores

    monkeypatch.setattr(searcher._first, "score", slow)
    until = time.monotonic() + 0.5
    between = searcher.search(text, k=DEPTH, deadline=until)
    first = over_features(cascade.parts[0].description, FEATURES.names)
    assert dict(zip(between.ids, between.scores.tolist(), strict=True)) == expected(index, first, 3)
    assert (between.n_ranked, between.n_kept) == (0, KEEP)
    monkeypatch.undo()
    assert searcher.search(text, k=DEPTH, deadline=time.monotonic() + 60).n_ranked == KEEP


def search_of_documents_alone(index, cascade, **settings):
    """A search by a cascade of which no pass compares documents."""
    few = replace(cascade.parts[0].description, normaliser=Normaliser())
    alone = replace(cascade, normaliser=Normaliser(), parts=(replace(cascade.parts[0], description=few),), **settings)
    return RankedSearch(index, alone, n_candidates=80)


def end_after(monkeypatch, ranking_pass, n_calls, until):
    """Let the time be over when a pass has been called so often; blocks are of four documents."""
    monkeypatch.setattr("rankwell.serving.ranking.pass_in_time._LEAST_BLOCK", 4)
    monkeypatch.setattr("rankwell.serving.ranking.pass_in_time._BLOCK_SHARE", 0.0)
    monkeypatch.setattr("rankwell.serving.ranking.pass_in_time._AMPLE", 1e12)
    score, calls = ranking_pass.score, []

    def counted(hits):
        scores = score(hits)
        calls.append(len(scores))
        if len(calls) == n_calls:
            time.sleep(max(0.0, until - time.monotonic()))
        return scores

    monkeypatch.setattr(ranking_pass, "score", counted)
    return calls


def test_what_a_deadline_leaves_of_the_second_pass_is_below_in_the_order_of_the_first(index, cascade, monkeypatch):
    searcher = search_of_documents_alone(index, cascade, first_pass=FirstPass(0, 20))
    text = QUERIES[3].text
    whole = searcher.search(text, k=80)
    first = searcher.search(text, k=80, deadline=time.monotonic() - 1)
    assert (whole.n_ranked, whole.n_kept, first.n_ranked, first.n_kept) == (20, 20, 0, 20)
    first_scores = searcher._first.score(
        searcher._first.hits([index.parse(text)], [whole.selected], [whole.selected.docs])
    )
    by_first = whole.selected.docs[np.argsort(-first_scores, kind="stable")].tolist()
    until = time.monotonic() + 3.0
    calls = end_after(monkeypatch, searcher._ranker, 2, until)
    early = searcher.search(text, k=80, deadline=until)
    assert calls == [4, 4]
    assert (early.n_ranked, early.n_kept) == (8, 20)
    # The best eight of the first pass, in the order and with the scores that they have in the whole answer.
    score_of = dict(zip(whole.docs.tolist(), whole.scores.tolist(), strict=True))
    assert set(early.docs[:8].tolist()) == set(by_first[:8])
    assert early.scores[:8].tolist() == [score_of[doc] for doc in early.docs[:8].tolist()]
    assert early.docs[:8].tolist() == [doc for doc in whole.docs.tolist() if doc in by_first[:8]]
    assert early.docs[8:].tolist() == by_first[8:]
    assert (np.diff(early.scores) <= 0).all()


def test_what_a_deadline_leaves_of_the_first_pass_is_below_in_the_order_of_selection(index, cascade, monkeypatch):
    searcher = search_of_documents_alone(index, cascade)
    text = QUERIES[3].text
    selected = searcher.search(text, k=80).selected.docs.tolist()
    until = time.monotonic() + 3.0
    calls = end_after(monkeypatch, searcher._first, 3, until)
    early = searcher.search(text, k=80, deadline=until)
    assert calls == [4, 4, 4]
    assert (early.n_ranked, early.n_kept) == (0, KEEP)
    assert set(early.docs[:12].tolist()) == set(selected[:12])
    assert early.docs[12:].tolist() == selected[12:]


def test_blocks_score_to_the_last_bit_as_one_call(index, cascade, monkeypatch, tmp_path):
    """And the log has the rows of what was ranked, once."""
    searcher = search_of_documents_alone(index, cascade, first_pass=FirstPass(0, 40))
    queries = [query.text for query in QUERIES]
    whole = searcher.search_many(queries, k=80)
    with FeatureLog(tmp_path / "log", searcher.feature_set) as log:
        logged = RankedSearch(index, searcher.description, n_candidates=80, log=log)
        logged.search_many(queries, k=80, query_ids=[query.id for query in QUERIES])
    with FeatureLog(tmp_path / "blocks", searcher.feature_set) as log:
        logged = RankedSearch(index, searcher.description, n_candidates=80, log=log)
        calls = end_after(monkeypatch, searcher._ranker, math.inf, 0.0)
        until = time.monotonic() + 60
        logged.search_many(queries, k=80, query_ids=[query.id for query in QUERIES], deadline=until)
        blocks = searcher.search_many(queries, k=80, deadline=until)
    assert len(calls) > 5
    for one, other in zip(whole, blocks, strict=True):
        assert one.docs.tolist() == other.docs.tolist()
        assert one.scores.tobytes() == other.scores.tobytes()
        assert other.n_ranked == other.n_kept
    read = [list(FeatureLogReader(tmp_path / name)) for name in ("log", "blocks")]
    assert len(read[0]) == len(QUERIES)
    for one, other in zip(*read, strict=True):
        assert (one.query_id, one.document_ids) == (other.query_id, other.document_ids)
        np.testing.assert_array_equal(one.features, other.features)


def test_the_log_has_the_kept_documents(index, train, cascade, tmp_path):
    with FeatureLog(tmp_path / "log", FEATURES) as log:
        searcher = RankedSearch(index, cascade, n_candidates=DEPTH, log=log)
        result = searcher.search(QUERIES[3].text, k=KEEP, query_id="3")
    (logged,) = list(FeatureLogReader(tmp_path / "log"))
    assert sorted(logged.document_ids) == sorted(result.ids)


def test_a_boost_over_a_learned_score_is_searched_with(index, train, tmp_path):
    RankBoost(n_rounds=10).fit(train).save(tmp_path / "learned.rank")
    (tmp_path / "boost.yaml").write_text(
        "rankers: {learned: {file: learned.rank}}\ninputs:\n  - expression: learned + 0.1 * bm25.body\n"
    )
    ranker = MadeRanker.from_yaml(tmp_path / "boost.yaml")
    result = RankedSearch(index, ranker, n_candidates=DEPTH).search(QUERIES[2].text, k=DEPTH)
    assert dict(zip(result.ids, result.scores.tolist(), strict=True)) == expected(index, ranker.description_, 2)


def test_expressions_over_other_names_than_the_feature_set_s(index, train):
    named = ("f1", "f2")
    group = ExpressionInputs(("f1 * 2 - f2",), np.zeros(1))
    description = RankerDescription(named, Normaliser("none"), (group,), ())
    features = FeatureSet(["bm25.body", "length.title"])
    result = RankedSearch(index, description, feature_set=features, n_candidates=DEPTH).search(QUERIES[1].text, k=4)
    query = parse_query(QUERIES[1].text, index.analysis)
    rows = extract(collect_hits(index, [query], [result.docs]), features)
    np.testing.assert_allclose(result.scores, rows[:, 0] * 2.0 - rows[:, 1], rtol=1e-12)


def test_hits_without_places_are_refused_where_places_are_read(index):
    query = parse_query("w1 w2", index.analysis)
    docs = [np.arange(20)]
    frequencies = collect_hits(index, [query], docs, places=False)
    whole = collect_hits(index, [query], docs)
    plain = FeatureSet(["bm25.title", "lm_dirichlet.whole", "tf_sum.body"])
    np.testing.assert_array_equal(extract(frequencies, plain), extract(whole, plain))
    with pytest.raises(Exception, match="only frequencies"):
        extract(frequencies, FeatureSet(["window_all.body"]))


def test_importances_of_a_ranker_of_rankers(train, tmp_path):
    learned = RankBoost(n_rounds=10).fit(train)
    learned.save(tmp_path / "learned.rank")
    (tmp_path / "boost.yaml").write_text(
        "rankers: {learned: {file: learned.rank}}\ninputs:\n  - linear: {feature: learned, scale: 2}\n"
    )
    boosted = MadeRanker.from_yaml(tmp_path / "boost.yaml")
    own = learned.feature_importances_
    np.testing.assert_allclose(boosted.feature_importances_, 2 * own / own.sum())
    with pytest.raises(AttributeError, match="linear function"):
        _ = boosted.coef_


def test_a_ranker_over_other_features_scores_the_same(train, cascade):
    names = read_features(cascade)
    narrow = over_features(cascade, names)
    columns = [FEATURES.names.index(name) for name in names]
    few = RankingDataset(train.features[:, columns], group=train.query_sizes, feature_names=names)
    whole = MadeRanker.from_description(cascade).predict(train)
    np.testing.assert_array_equal(MadeRanker.from_description(narrow).predict(few), whole)
    wide = over_features(narrow, ("other", *reversed(FEATURES.names)))
    more = np.column_stack((np.zeros(train.n_docs, np.float32), train.features[:, ::-1]))
    data = RankingDataset(more, group=train.query_sizes)
    np.testing.assert_array_equal(MadeRanker.from_description(wide).predict(data), whole)
