"""What each feature of an index costs on this machine, measured: `rankwell info INDEX`, and cascades.

Queries are words of the index's own documents. Each is answered alone on one thread, as a server does, with few
candidates and with many: the difference is the cost of a document, the rest that of a query. What extraction computes
together (`kernels/extraction/cpu/features.py`) is one shared cost, measured with the cheapest feature that needs it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankwell.errors import DataError, FileFormatError
from rankwell.features.catalogue import KINDS, RELEVANCE_MODEL, VERSION
from rankwell.features.extraction import extract
from rankwell.features.feature_set import FeatureSet, make_feature_set
from rankwell.features.feedback import with_feedback
from rankwell.features.hit_reading import collect_hits
from rankwell.features.hits import WHOLE, Hits
from rankwell.features.names import Feature
from rankwell.features.selected import is_selected, selected_features
from rankwell.index.query.query import Query, parse_query
from rankwell.index.reader import Index
from rankwell.index.search.selection import SearchResult, search
from rankwell.kernels.cpu.kernel_cache import cache_folder, source_digest
from rankwell.kernels.extraction.rules import N_WHOLE_KINDS, Kind
from rankwell.scoring.costs import LOOKUP, Cost, FeatureCost, FeatureCosts, cost_through, processor_seconds, read_costs
from rankwell.scoring.expression import names_in
from rankwell.streams.whole_files import replace_file

logger = logging.getLogger("rankwell")

HITS, POSITIONS, EXTRACTION, EXPRESSIONS = "hits", "positions", "extraction", "expressions"
_N_QUERIES, _MOST_QUERIES, _N_WORDS, _FEW, _MANY = 12, 40, 3, 50, 1000
_REPEATS = 5

# What a family of kinds is measured with, and the kinds in it.
_FAMILIES: Mapping[str, tuple[str, range]] = {
    "figures": ("tf_sum", range(Kind.TF_SUM, Kind.BOOLEAN)),
    "models": ("lm_dirichlet", range(Kind.LM_ABSOLUTE, N_WHOLE_KINDS)),
    "places": ("first_place", range(N_WHOLE_KINDS, Kind.LONGEST_SEQUENCE)),
    "sequences": ("longest_sequence", range(Kind.LONGEST_SEQUENCE, len(Kind))),
}
_PLAIN = ("length", "idf")


def index_costs(
    index: Index,
    feature_set: FeatureSet | None = None,
    *,
    queries: Sequence[Query] | None = None,
    measure_again: bool = False,
) -> FeatureCosts:
    """The costs of a feature set (by default, all features) of an index on this machine.

    queries : what to measure with, at most a few dozen; by default, words of documents

    The first call measures them, which takes seconds; they are kept beside the compiled kernels, until the index, the
    machine or the extraction changes.
    """
    chosen = feature_set or make_feature_set("full", tuple(index.schema.streams), tuple(index.schema.statics))
    path = None if queries is not None else _kept_at(index, chosen)
    if path is not None and path.exists() and not measure_again:
        try:
            return read_costs(path)
        except FileFormatError as cause:
            logger.info("the kept costs of features are damaged, and measured again (%s)", cause)
    costs = measure_costs(index, chosen, queries=queries)
    if path is not None:
        try:
            replace_file(path, json.dumps(costs.to_json()).encode())
        except OSError as cause:
            logger.info("the costs of features are not kept: %s", cause)
    return costs


def measure_costs(index: Index, feature_set: FeatureSet, *, queries: Sequence[Query] | None = None) -> FeatureCosts:
    """Measure the costs of a feature set of an index on this machine; see `index_costs`."""
    feature_set.check(index.schema.streams, index.schema.statics)
    sample = _Sample(index, _sample_queries(index) if queries is None else queries[:_MOST_QUERIES])
    shared = sample.reading()
    base = shared[EXTRACTION] = sample.extraction([f"length.{WHOLE}"])
    streams = sorted({feature.stream for feature in feature_set.features if feature.kind in KINDS})
    for stream in streams:
        shared |= sample.families(stream, base)
    own = sample.own_cost(feature_set, shared)
    for feature in feature_set.feedback:
        shared[_feedback(feature)] = sample.feedback(feature)
    if any(feature.expression is not None for feature in feature_set.features):
        shared[EXPRESSIONS] = sample.expressions(streams)
    name_of = {feature.label: feature.name for feature in feature_set.features}
    features = {feature.name: _feature_cost(feature, own, name_of) for feature in feature_set.features}
    needed = {group for cost in features.values() for group in cost.shared} | {LOOKUP}
    selected = [name for name in feature_set.names if is_selected(feature_set.containing([name]), None)]
    return FeatureCosts(
        features,
        {name: _rounded(cost) for name, cost in shared.items() if name in needed},
        frozenset(selected),
        own,
        f"measured on one core of {platform.processor() or platform.machine()}: {len(sample.queries)} queries of "
        f"{sample.mean_terms:.1f} terms, {sample.many.mean_size:.0f} candidates each",
    )


@dataclass(frozen=True, eq=False)
class _Batch:
    """Queries with the first of their candidates."""

    queries: Sequence[Query]
    found: Sequence[SearchResult]

    @property
    def docs(self) -> list[np.ndarray]:
        return [result.docs for result in self.found]

    @property
    def mean_size(self) -> float:
        return float(np.mean([len(result) for result in self.found]))


class _Sample:
    """What costs are measured with: queries with few and with many candidates."""

    def __init__(self, index: Index, queries: Sequence[Query]) -> None:
        self.index, self.queries = index, queries
        batches = [_Batch(queries, [search(index, query, k=k) for query in queries]) for k in (_FEW, _MANY)]
        self.few, self.many = batches
        self._hits = {
            id(batch): [self._read(batch, number, places=True) for number in range(len(queries))] for batch in batches
        }

    @property
    def mean_terms(self) -> float:
        return float(np.mean([len(query.terms) for query in self.queries]))

    def reading(self) -> dict[str, Cost]:
        """The costs of reading: frequencies, positions, and documents alone."""
        known = FeatureSet([f"bm25.{WHOLE}", f"length.{WHOLE}"])
        frequencies = self._measure(lambda batch, number: self._read(batch, number, places=False))
        places = self._measure(lambda batch, number: self._read(batch, number, places=True))
        lookup = self._measure(
            lambda batch, number: selected_features(
                self.index, known, batch.found[number : number + 1], batch.docs[number : number + 1]
            )
        )
        return {HITS: frequencies, POSITIONS: _difference(places, frequencies), LOOKUP: lookup}

    def extraction(self, names: Sequence[str]) -> Cost:
        """The cost of extraction from hits that were read."""
        feature_set = FeatureSet(names)
        return self._measure(lambda batch, number: extract(self._hits[id(batch)][number], feature_set, n_jobs=1))

    def families(self, stream: str, base: Cost) -> dict[str, Cost]:
        """The shared costs of a stream."""
        matched = self.extraction([f"covered_terms.{stream}"])
        costs = {_group("matched", stream): _difference(matched, base)}
        for family, (kind, _) in _FAMILIES.items():
            if stream == WHOLE and not KINDS[kind].of_whole:
                continue
            before = {"places": matched, "sequences": base}.get(family, base)
            costs[_group(family, stream)] = _difference(self.extraction([f"{kind}.{stream}"]), before)
        if stream != WHOLE:
            sequences, places = costs[_group("sequences", stream)], costs[_group("places", stream)]
            with_places = Cost(
                places.query + costs[_group("matched", stream)].query,
                places.document + costs[_group("matched", stream)].document,
            )
            costs[_group("sequences", stream)] = _difference(sequences, with_places)
        return costs

    def own_cost(self, feature_set: FeatureSet, shared: Mapping[str, Cost]) -> float:
        """What one more column costs, per document: what all of them take beyond the shared costs."""
        names = [feature.name for feature in feature_set.features if feature.kind in KINDS]
        if not names:
            return 0.0
        groups = {group for name in names for group in _groups(FeatureSet([name]).features[0])} - {HITS, POSITIONS}
        n_docs = self.many.mean_size
        beyond = self.extraction(names).of(n_docs) - sum(shared[group].of(n_docs) for group in groups)
        return round(max(0.0, beyond) / (n_docs * len(names)), 6)

    def expressions(self, streams: Sequence[str]) -> Cost:
        """The cost of the first expression of a set; further ones add little."""
        stream = next(stream for stream in (*streams, *self.index.schema.streams) if stream != WHOLE)
        read = [f"query_completeness.{stream}", f"field_completeness.{stream}"]
        return _difference(self.extraction([*read, f"completeness.{stream}"]), self.extraction(read))

    def feedback(self, feature: Feature) -> Cost:
        feature_set = FeatureSet([feature.name])

        def measured(batch: _Batch, number: int) -> object:
            part = slice(number, number + 1)
            hits = self._hits[id(batch)][number]
            return with_feedback(hits, feature_set, self.index, batch.found[part], batch.docs[part], n_jobs=1)

        return self._measure(measured)

    def _read(self, batch: _Batch, number: int, *, places: bool) -> Hits:
        part = slice(number, number + 1)
        return collect_hits(self.index, batch.queries[part], batch.docs[part], places=places, n_jobs=1)

    def _measure(self, work: Callable[[_Batch, int], object]) -> Cost:
        """The cost of answering one query after another."""
        points = []
        for batch in (self.few, self.many):

            def answer(batch: _Batch = batch) -> None:
                for number in range(len(batch.queries)):
                    work(batch, number)

            seconds = processor_seconds(answer, _REPEATS) / len(batch.queries)
            points.append((batch.mean_size, 1e6 * seconds))
        return cost_through(points[0], points[1])


def _sample_queries(index: Index) -> list[Query]:
    """Queries of a few words each, from documents drawn at random."""
    rng = np.random.default_rng(0)
    queries: list[Query] = []
    for doc in rng.permutation(int(index.bases[-1]))[: 20 * _N_QUERIES].tolist():
        if len(queries) == _N_QUERIES:
            break
        fields = index.stored(doc)
        texts = [fields.get(stream) for stream in index.schema.streams]
        words = " ".join(text for text in texts if isinstance(text, str))[:2000].split()
        if len(words) >= _N_WORDS:
            chosen = " ".join(rng.choice(words, _N_WORDS, replace=False).tolist())
            query = parse_query("".join(c if c.isalnum() else " " for c in chosen), index.analysis)
            if query.terms:
                queries.append(query)
    if not queries:
        raise DataError("no costs can be measured: the documents of this index have no words.")
    return queries


def _feature_cost(feature: Feature, own: float, name_of: Mapping[str, str]) -> FeatureCost:
    reads = () if feature.expression is None else tuple(name_of[label] for label in names_in(feature.expression))
    return FeatureCost(own, _groups(feature), reads)


def _groups(feature: Feature) -> tuple[str, ...]:
    """The shared costs that a feature needs."""
    if feature.expression is not None:
        return (HITS, EXTRACTION, EXPRESSIONS)
    if feature.kind == RELEVANCE_MODEL.name:
        return (HITS, EXTRACTION, _feedback(feature))
    if feature.kind not in KINDS or feature.kind in _PLAIN:
        return (HITS, EXTRACTION)
    number = Kind[feature.kind.upper()]
    families = [family for family, (_, kinds) in _FAMILIES.items() if number in kinds]
    if families == ["sequences"]:
        families = ["places", "sequences"]
    if "places" in families:
        families = ["matched", *families]
    families = families or ["matched"]
    reading = (HITS, POSITIONS) if "places" in families else (HITS,)
    return (*reading, EXTRACTION, *(_group(family, feature.stream) for family in families))


def _group(family: str, stream: str) -> str:
    return f"{family}.{stream}"


def _feedback(feature: Feature) -> str:
    settings = ";".join(f"{name}={feature.settings[name]:g}" for name in ("documents", "terms", "original"))
    return f"feedback({settings})"


def _difference(larger: Cost, smaller: Cost) -> Cost:
    return Cost(max(0.0, larger.query - smaller.query), max(0.0, larger.document - smaller.document))


def _rounded(cost: Cost) -> Cost:
    return Cost(round(cost.query, 2), round(cost.document, 4))


def _kept_at(index: Index, feature_set: FeatureSet) -> Path | None:
    """Where the costs of this set of this index on this machine are kept."""
    folder = cache_folder()
    if folder is None or index.path is None:
        return None
    parts = (
        str(index.path.resolve()),
        str(index.generation),
        str(index.n_docs),
        feature_set.fingerprint,
        str(VERSION),
        platform.node(),
        platform.processor(),
        source_digest("rankwell.kernels.extraction.cpu.features"),
    )
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=12).hexdigest()
    return folder / "feature-costs" / f"{digest}.json"
