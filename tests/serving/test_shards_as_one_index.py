"""Shards answer as one index with all their documents, to the last bit."""

from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="the server needs the extra 'serve'")

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.features.random_hits import random_documents
from tests.features.small_index import ANALYSIS, text_of
from tests.serving.in_process_shards import InProcessLink, in_time, run_with

from rankwell import Index, LeastSquares, MadeRanker, RankBoost, RankedSearch
from rankwell.corpus.document import Place, document_of
from rankwell.errors import DataError, DeviceError, ParameterError
from rankwell.features.feature_set import FeatureSet, make_feature_set
from rankwell.index.schema import Schema
from rankwell.index.segments.builder import SegmentBuilder
from rankwell.index.segments.sink import MemorySink
from rankwell.index.text.synonyms import Synonyms
from rankwell.scoring.composition import FirstPass, RankerPart
from rankwell.serving.answer import SearchRequest
from rankwell.serving.node import Node
from rankwell.serving.ranking import ranker_passes
from rankwell.serving.ranking.feature_log import FeatureLogReader
from rankwell.serving.shards.aggregator import Aggregator
from rankwell.serving.shards.messages import AskedQuery
from rankwell.serving.shards.shard import Shard
from rankwell.serving.shards.shard_node import ShardNode

STREAMS, STATICS, KEYWORDS, DATES = ("title", "body"), ("year", "visits"), ("kind",), ("day",)
N_CANDIDATES, KEEP = 12, 5
FEATURES = FeatureSet([*make_feature_set("full", STREAMS, STATICS).names, "relevance_model.title(documents=4;terms=3)"])
# An example takes a second: a failure is told as it is.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
QUERIES = [
    "w1 w2 w1",
    "w7 w8 w9 w10",
    "",
    "w99 w3",
    "title:w3 w4",
    "w1*",
    "body:w1* w2",
    "w11~1 w5",
    "wx5~ w3",
    "w3 -w11~1 w5",
    "w2 AND NOT (wx5~ OR title:w12~1)",
    '"w1 w2"~6 w3',
    '"w1 w2"',
    'w3 OR "w2 w1" OR "w1 w2" OR title:"w1 w1"',
    "+w3 -w4 w5",
    "year:>5 w2",
    "year:>3",
    "(w1 OR w2) AND visits:[1 TO 6]",
    "w4^3 w5",
]


@pytest.fixture(scope="module")
def rankers(tmp_path_factory):
    """Rankers of every kind that shards treat differently: those that score documents alone, those that compare the
    documents of a query, cascades of both."""
    folder, rng = tmp_path_factory.mktemp("rankers"), np.random.default_rng(3)
    rows, labels = rng.normal(size=(200, len(FEATURES))).astype(np.float32), rng.integers(0, 3, 200).astype(float)

    def named(ranker):
        return replace(ranker.description_, feature_names=FEATURES.names)

    boosted = named(RankBoost(n_rounds=8, normalize="none").fit(rows, labels, group=[20] * 10))
    compared = named(LeastSquares(normalize="query-minmax").fit(rows, labels, group=[20] * 10))
    everything = tuple(range(len(FEATURES)))
    descriptions = {
        "boosted": boosted,
        "compared": compared,
        "cascade": replace(boosted, parts=(RankerPart("first", everything, compared),), first_pass=FirstPass(0, KEEP)),
        "quick": replace(compared, parts=(_quick(),), first_pass=FirstPass(0, KEEP)),
    }
    for name, description in descriptions.items():
        MadeRanker.from_description(description).save(folder / f"{name}.rank")
    return {name: folder / f"{name}.rank" for name in descriptions}


def _quick():
    """A first pass that reads nothing but what selection knows."""
    names = ("bm25.whole", "static.year")
    rng = np.random.default_rng(5)
    rows, labels = rng.normal(size=(60, 2)).astype(np.float32), rng.integers(0, 2, 60).astype(float)
    fitted = LeastSquares(normalize="none").fit(rows, labels, group=[20] * 3)
    places = tuple(FEATURES.names.index(name) for name in names)
    return RankerPart("first", places, replace(fitted.description_, feature_names=names))


SORTS = [(), ("year",), ("kind:desc", "visits"), ("day:desc",), ("kind", "year:desc")]
FACETS = [{}, {"kind": None}, {"year": ["0", "3", "6.5"], "kind": None}, {"day": ["2020-01-01", "2020-06-01", "2021"]}]
SYNONYMS = [None, Synonyms.of(["w1, w4, w2 w3", "w7 w8 => w9", "w5 => nothing, w6", "w11, w12"])]
FILTERS = [None, "year:>2", "kind:(k0 OR k1)", "-kind:k2 day:>2020-03", "-w12~1", "body:w2~1 OR year:>4"]


def index_of(documents, n_segments, deleted, *, forward, static_order=None):
    """An index in memory; documents : pairs of id and fields"""
    schema = Schema(STREAMS, STATICS, KEYWORDS, DATES, forward=forward, static_order=static_order)
    segments, live = [], []
    for part in np.array_split(np.arange(len(documents)), n_segments):
        if static_order is not None:
            part = np.array(sorted(part.tolist(), key=lambda one: -documents[one][1][static_order]), np.int64)
        builder = SegmentBuilder(schema, ANALYSIS)
        for number in part.tolist():
            name, fields = documents[number]
            builder.add([document_of({"id": name, **fields}, Place("test", number))])
        sink = MemorySink()
        builder.write(sink)
        segments.append(sink.segment())
        alive = np.array([documents[number][0] not in deleted for number in part.tolist()], np.uint8)
        live.append(None if alive.all() else alive)
    return Index(segments, live, schema, ANALYSIS)


def documents_of(seed, n_docs):
    rng = np.random.default_rng(seed)
    documents = []
    for number, words in enumerate(random_documents(rng, n_docs, streams=STREAMS, vocabulary=30, longest=12)):
        fields = {stream: text_of(own) for stream, own in words.items()}
        # Equal documents have equal scores: their order is part of the answer.
        if number % 5 == 4:
            fields = dict(documents[-1][1])
        fields |= {"year": float(rng.integers(0, 9))} if rng.random() < 0.8 else {}
        fields |= {"kind": [f"k{one}" for one in set(rng.integers(0, 4, rng.integers(1, 3)).tolist())]}
        fields |= {"day": f"2020-0{rng.integers(1, 8)}-11"} if rng.random() < 0.7 else {}
        documents.append((f"d{number}", fields | {"visits": float(rng.integers(0, 9))}))
    return documents


def hashed(name, salt):
    """The same in every process, which hash() is not."""
    return crc32(f"{salt} {name}".encode())


def shown_of(answer):
    facts = (answer.ranker, answer.n_matches, answer.n_candidates, answer.n_ranked, answer.is_partial, answer.missing)
    # The order of a field's values is part of the answer.
    facets = {field: list(counts.items()) for field, counts in answer.facets.items()}
    return facts, answer.results, facets, answer.n_examined, answer.words


@settings(max_examples=12, deadline=None, phases=PHASES)
@given(seed=st.integers(0, 10_000), n_shards=st.integers(1, 4), salt=st.integers(0, 5), data=st.data())
def test_shards_answer_as_one_index_to_the_last_bit(rankers, seed, n_shards, salt, data):
    documents = documents_of(seed, data.draw(st.integers(4, 60)))
    by_shard = [[one for one in documents if hashed(one[0], salt) % n_shards == shard] for shard in range(n_shards)]
    in_order = [one for own in by_shard for one in own]
    deleted = {name for name, _ in documents if hashed(name, seed) % 7 == 0}
    forward = data.draw(st.sampled_from(["all", ()]))
    whole = index_of(in_order, 2, deleted, forward=forward)
    cuts = [data.draw(st.integers(1, 2)) for _ in by_shard]
    parts = [index_of(own, n, deleted, forward=forward) for own, n in zip(by_shard, cuts, strict=True)]
    queries = data.draw(st.lists(st.sampled_from(QUERIES), min_size=3, max_size=3, unique=True))
    k, offset = data.draw(st.integers(1, 12)), data.draw(st.integers(0, 3))
    synonyms = data.draw(st.sampled_from(SYNONYMS))
    node = Node(whole, rankers, n_candidates=N_CANDIDATES, synonyms=synonyms)
    shards = [Shard([InProcessLink(ShardNode(part))]) for part in parts]
    aggregator = Aggregator(shards, rankers, n_candidates=N_CANDIDATES, synonyms=synonyms)

    async def ask(aggregator):
        return [await aggregator.answer(request) for request in requests]

    more = {"k": k, "offset": offset, "filter": data.draw(st.sampled_from(FILTERS))}
    more |= {"typos": data.draw(st.booleans()), "match": data.draw(st.sampled_from(["any", "all"]))}
    facets = data.draw(st.sampled_from(FACETS))
    requests = [
        SearchRequest(query, in_time(), ranker=ranker, facets=facets, **more)
        for query in queries
        for ranker in ("bm25", *rankers)
    ]
    sort = data.draw(st.sampled_from(SORTS))
    requests += [SearchRequest(query, in_time(), sort=sort, facets=facets, **more) for query in queries]
    living = [name for name, _ in documents if name not in deleted]
    requests += [SearchRequest("", in_time(), like=name, **more) for name in living[:2]]
    assert_same(requests, node.answer(requests), run_with(aggregator, ask))


def assert_same(requests, expected, answers):
    for request, one, other in zip(requests, answers, expected, strict=True):
        assert not isinstance(other, Exception), other
        assert shown_of(one) == shown_of(other), request


@pytest.mark.parametrize(
    ("query", "filter"),
    [("* -wx5~", None), ("* NOT (x12~1 OR wx5~)", None), ("*", "wx5~"), ("*", "-title:wx5~"), ("* -x12~1", "wx5~")],
)
def test_near_words_that_exclude_or_filter_are_those_of_all_shards(rankers, query, filter):
    documents = documents_of(11, 50)
    parts = [documents[:20], documents[20:23], documents[23:]]
    node = Node(index_of(documents, 2, (), forward="all"), rankers, n_candidates=N_CANDIDATES)
    shards = [Shard([InProcessLink(ShardNode(index_of(part, 1, (), forward="all")))]) for part in parts]
    aggregator = Aggregator(shards, rankers, n_candidates=N_CANDIDATES)
    requests = [
        SearchRequest(query, in_time(), ranker=ranker, filter=filter, facets={"kind": None})
        for ranker in ("bm25", *rankers)
    ]
    requests.append(SearchRequest("", in_time(), like="d3", filter=filter))

    async def ask(aggregator):
        return [await aggregator.answer(request) for request in requests]

    expected = node.answer(requests)
    assert_same(requests, expected, run_with(aggregator, ask))
    assert 0 < expected[0].n_matches < len(documents)


@settings(max_examples=10, deadline=None, phases=PHASES)
@given(seed=st.integers(0, 10_000), n_shards=st.integers(1, 4), data=st.data())
def test_shards_stop_early_where_one_index_would(rankers, seed, n_shards, data):
    documents = documents_of(seed, data.draw(st.integers(4, 60)))
    deleted = {name for name, _ in documents if hashed(name, seed) % 7 == 0}
    by_shard = [[one for one in documents if hashed(one[0], seed) % n_shards == shard] for shard in range(n_shards)]
    cuts = [data.draw(st.integers(1, 2)) for _ in by_shard]
    parts = [
        index_of(own, n, deleted, forward=(), static_order="visits") for own, n in zip(by_shard, cuts, strict=True)
    ]
    segments, live = ([one for part in parts for one in getattr(part, name)] for name in ("segments", "live"))
    node = Node(Index(segments, live, parts[0].schema, ANALYSIS), rankers, n_candidates=N_CANDIDATES)
    aggregator = Aggregator(
        [Shard([InProcessLink(ShardNode(part))]) for part in parts], rankers, n_candidates=N_CANDIDATES
    )
    queries = data.draw(st.lists(st.sampled_from(QUERIES), min_size=3, max_size=3, unique=True))
    more = {"k": data.draw(st.integers(1, 5)), "stop_after": data.draw(st.integers(1, 20))}
    requests = [
        SearchRequest(query, in_time(), ranker=ranker, **more) for query in queries for ranker in ("bm25", *rankers)
    ]

    async def ask(aggregator):
        return [await aggregator.answer(request) for request in requests]

    assert_same(requests, node.answer(requests), run_with(aggregator, ask))


@settings(max_examples=6, deadline=None, phases=PHASES)
@given(seed=st.integers(0, 1000), n_shards=st.integers(1, 4))
def test_features_scores_and_explanations_are_those_of_one_index(rankers, seed, n_shards):
    documents = documents_of(seed, 40)
    by_shard = [[one for one in documents if hashed(one[0], seed) % n_shards == shard] for shard in range(n_shards)]
    whole = index_of([one for own in by_shard for one in own], 1, (), forward=())
    parts = [index_of(own, 1, (), forward=()) for own in by_shard]
    aggregator = Aggregator([Shard([InProcessLink(ShardNode(part))]) for part in parts], rankers, n_candidates=12)

    async def ask(aggregator):
        for name, path in rankers.items():
            search = RankedSearch(whole, path, n_candidates=12)
            found = search.search("w1 w2 w3", 12)
            ids = [*found.ids[:3], "d0", "d1"]
            rows, expected = (
                await aggregator.features(AskedQuery("w1 w2 w3"), ids, name),
                search.features("w1 w2 w3", ids),
            )
            np.testing.assert_array_equal(rows, expected)
            np.testing.assert_array_equal(await aggregator.score(rows, name), search.score(expected))
            # The last ones were not kept by the first pass of a cascade.
            for document in (*found.ids[:2], *found.ids[-2:]):
                (other,) = search.explain("w1 w2 w3", document=document)
                one = await aggregator.explain(AskedQuery("w1 w2 w3"), document, name)
                assert (one.rank, one.id, one.first_score) == (other.rank, other.id, other.first_score)
                assert one.ranking_pass == other.ranking_pass
                # As text: NaN is not equal to itself.
                assert repr(one.explanation) == repr(other.explanation)
                np.testing.assert_array_equal(list(one.values.values()), list(other.values.values()))
            assert await aggregator.has_document("d0")
            assert not await aggregator.has_document("nothing")
            with pytest.raises(DataError, match="there is no document 'nothing'"):
                await aggregator.explain(AskedQuery("w1"), "nothing", name)

    run_with(aggregator, ask)


def test_mistakes_are_told_as_by_one_index(rankers):
    aggregator = Aggregator(
        [Shard([InProcessLink(ShardNode(index_of(documents_of(1, 8), 1, (), forward=())))])], rankers, n_candidates=12
    )

    async def ask(aggregator):
        with pytest.raises(ParameterError, match="nosuch"):
            await aggregator.answer(SearchRequest("nosuch:[1 TO 2]", in_time()))
        with pytest.raises(ParameterError, match="must be one of bm25"):
            await aggregator.answer(SearchRequest("w1", in_time(), ranker="other"))
        with pytest.raises(ParameterError, match="sort cannot be used with the ranker 'boosted'"):
            await aggregator.answer(SearchRequest("w1", in_time(), ranker="boosted", sort=("year",)))
        with pytest.raises(ParameterError, match="sort must be fields as year or year:desc; 'body' holds text"):
            await aggregator.answer(SearchRequest("w1", in_time(), sort=("body",)))
        with pytest.raises(ParameterError, match="facets must be of year, visits, day, kind; 'no' does not exist"):
            await aggregator.answer(SearchRequest("w1", in_time(), facets={"no": None}))
        with pytest.raises(ParameterError, match="stop_after needs an index whose documents have a static order"):
            await aggregator.answer(SearchRequest("w1", in_time(), stop_after=5))
        with pytest.raises(DataError, match="there is no document 'nothing' in the index"):
            await aggregator.answer(SearchRequest("", in_time(), like="nothing"))

    run_with(aggregator, ask)


def test_words_are_counted_once_for_a_commit(rankers):
    """A second query with the same words goes to the shards without asking for counts."""
    documents = documents_of(2, 30)
    links = [InProcessLink(ShardNode(index_of(documents[start::2], 1, (), forward=()))) for start in (0, 1)]
    aggregator = Aggregator([Shard([link]) for link in links], rankers, n_candidates=12)

    async def ask(aggregator):
        links[0].asked.clear()
        for _ in range(2):
            await aggregator.answer(SearchRequest("w1 w2", in_time(), ranker="boosted"))

    run_with(aggregator, ask)
    kinds = [type(body).__name__ for body in links[0].asked]
    assert kinds.count("Select") == 2
    # The query's own words, then those of the relevance models.
    assert kinds.count("Count") <= 3
    second = kinds[len(kinds) - kinds[::-1].index("Select") - 1 :]
    assert "Count" not in second


def test_the_second_pass_is_counted_over_all_shards(rankers):
    documents = documents_of(4, 60)
    links = [InProcessLink(ShardNode(index_of(documents[start::4], 1, (), forward=()))) for start in range(4)]
    aggregator = Aggregator([Shard([link]) for link in links], rankers, n_candidates=N_CANDIDATES)

    async def ask(aggregator):
        for link in links:
            link.asked.clear()
        return await aggregator.answer(SearchRequest("w1 w2 w3 w4", in_time(), ranker="cascade"))

    answer = run_with(aggregator, ask)
    scored = {
        stage: sum(len(body.docs) // 8 for link in links for body in link.asked if getattr(body, "stage", "") == stage)
        for stage in ("first", "second")
    }
    assert (answer.n_candidates, answer.n_ranked) == (N_CANDIDATES, KEEP)
    assert scored == {"first": N_CANDIDATES, "second": KEEP}


def test_a_first_pass_over_what_selection_knows_takes_no_round_of_its_own(rankers):
    documents = documents_of(4, 60)
    links = [InProcessLink(ShardNode(index_of(documents[start::2], 1, (), forward=()))) for start in range(2)]
    aggregator = Aggregator([Shard([link]) for link in links], rankers, n_candidates=N_CANDIDATES)

    async def ask(aggregator):
        for link in links:
            link.asked.clear()
        return await aggregator.answer(SearchRequest("w1 w2 w3 w4", in_time(), ranker="quick"))

    answer = run_with(aggregator, ask)
    assert answer.n_ranked == KEEP
    stages = [body.stage for link in links for body in link.asked if hasattr(body, "stage")]
    assert set(stages) == {"second"}


def test_scoring_that_needs_all_documents_counts_as_ranking(rankers):
    """Nodes in this process say that they took no time: what is left is scored where answers are put together."""
    documents = documents_of(4, 60)
    links = [InProcessLink(ShardNode(index_of(documents[start::2], 1, (), forward=()))) for start in range(2)]
    aggregator = Aggregator([Shard([link]) for link in links], rankers, n_candidates=N_CANDIDATES)

    async def ask(aggregator):
        names = ("boosted", "compared", "cascade", "quick")
        return {
            name: await aggregator.answer(SearchRequest("w1 w2 w3 w4", in_time(), ranker=name, plain=True))
            for name in names
        }

    seconds = {name: answer.seconds for name, answer in run_with(aggregator, ask).items()}
    assert {name for name, own in seconds.items() if own["rank"] > 0} == {"compared", "cascade", "quick"}
    assert all(own["select"] == own["captions"] == 0 < own["merge"] for own in seconds.values())


def test_a_device_that_fails_is_replaced_by_the_cpu_with_the_same_answer(rankers, monkeypatch):
    def no_device(description, device):
        if device == "cuda":
            raise DeviceError("it fell off the bus")
        return device

    monkeypatch.setattr(ranker_passes, "scoring_device", no_device)
    part, request = (
        index_of(documents_of(4, 60), 1, (), forward=()),
        SearchRequest("w1 w2", in_time(), ranker="cascade"),
    )

    async def ask(aggregator):
        # What nodes say about themselves is known when they are asked the next time.
        answer = await aggregator.answer(request)
        aggregator.links[0].facts = aggregator.links[0].node.describe()
        return answer, await aggregator.answer(request)

    answers = {}
    for device in ("cpu", "cuda"):
        link = InProcessLink(ShardNode(part, device=device))
        answers[device] = run_with(Aggregator([Shard([link])], rankers, n_candidates=N_CANDIDATES), ask)
    assert [one.results for one in answers["cuda"]] == [one.results for one in answers["cpu"]]
    assert answers["cpu"][1].fallback is None
    assert "it fell off the bus" in answers["cuda"][1].fallback


def test_the_features_that_shards_log_are_those_of_one_index(rankers, tmp_path):
    documents = documents_of(6, 40)
    parts = [index_of(documents[start::3], 1, (), forward=()) for start in range(3)]
    whole = index_of([one for start in range(3) for one in documents[start::3]], 1, (), forward=())
    for default in rankers:
        files = {default: rankers[default], **rankers}
        node = Node(whole, files, n_candidates=N_CANDIDATES, feature_log=tmp_path / f"{default}-whole")
        aggregator = Aggregator(
            [Shard([InProcessLink(ShardNode(part))]) for part in parts],
            files,
            n_candidates=N_CANDIDATES,
            feature_log=tmp_path / f"{default}-shards",
        )
        requests = [SearchRequest(query, in_time(), query_id=f"q{n}") for n, query in enumerate(QUERIES)]
        requests.append(SearchRequest("w1 w2", in_time(), ranker="bm25", query_id="not this"))

        async def ask(aggregator, requests=requests):
            return [await aggregator.answer(request) for request in requests]

        assert_same(requests, node.answer(requests), run_with(aggregator, ask))
        node.close()
        one, other = ([*FeatureLogReader(tmp_path / f"{default}-{name}")] for name in ("whole", "shards"))
        assert [logged.query_id for logged in one] == [logged.query_id for logged in other]
        assert len(one) > 10
        for first, second in zip(one, other, strict=True):
            assert first.document_ids == second.document_ids
            np.testing.assert_array_equal(first.features, second.features)
