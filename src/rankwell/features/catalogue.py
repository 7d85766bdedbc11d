"""The catalogue: every feature by name, with its formula.

Symbols. Over the query's m distinct terms t, words and phrases: tf, the hits of t in the stream; qtf, how often t
occurs in the query; len, the stream's words; u, its different terms; covered, the terms with tf > 0;
idf = ln(1 + (N − df + ½) / (df + ½)), df counted in this stream; p, the term's share of all words of the collection's
stream; avg, the stream's mean length.
A stream without a hit has 0 for everything that is not a length, an idf or a language model. Where a formula divides by
a length of 0, the value is 0; an empty stream's language model is the collection's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rankwell.features.hits import WHOLE
from rankwell.kernels.extraction.rules import N_WHOLE_KINDS, Kind

VERSION = 1
"""Counts changes of any formula: features of different versions must not be mixed."""


@dataclass(frozen=True)
class FeatureKind:
    """One kind of feature that streams have.

    name : the first part of a feature's name; formula : what it is, in the catalogue's symbols
    parameters : the parameters that the formula reads
    of_whole : whether the whole document has it too
    expression : for a kind made of others, the expression, with {stream} for the stream's name
    """

    name: str
    formula: str
    parameters: tuple[str, ...] = ()
    of_whole: bool = False
    expression: str | None = None


PARAMETERS: Mapping[str, float] = {"k1": 1.2, "b": 0.75, "mu": 1000.0, "lambda": 0.5, "delta": 0.7, "weight": 1.0}
"""The parameters of formulas and their defaults; weight is a stream's weight in BM25F."""

_FORMULAS: Mapping[Kind, tuple[str, ...]] = {
    Kind.COVERED_TERMS: ("the number of terms with tf > 0",),
    Kind.COVERED_RATIO: ("covered / m",),
    Kind.LENGTH: ("len",),
    Kind.IDF: ("Σ idf",),
    Kind.TF_SUM: ("Σ tf",),
    Kind.TF_MIN: ("min tf",),
    Kind.TF_MAX: ("max tf",),
    Kind.TF_MEAN: ("Σ tf / m",),
    Kind.TF_VARIANCE: ("Σ (tf − mean)² / m",),
    Kind.NORMALISED_TF_SUM: ("Σ tf / len",),
    Kind.NORMALISED_TF_MIN: ("min tf / len",),
    Kind.NORMALISED_TF_MAX: ("max tf / len",),
    Kind.NORMALISED_TF_MEAN: ("Σ (tf / len) / m",),
    Kind.NORMALISED_TF_VARIANCE: ("Σ (tf / len − mean)² / m",),
    Kind.TFIDF_SUM: ("Σ tf · idf",),
    Kind.TFIDF_MIN: ("min tf · idf",),
    Kind.TFIDF_MAX: ("max tf · idf",),
    Kind.TFIDF_MEAN: ("Σ tf · idf / m",),
    Kind.TFIDF_VARIANCE: ("Σ (tf · idf − mean)² / m",),
    Kind.BOOLEAN: ("1 if every term has tf > 0, else 0",),
    Kind.VECTOR_SPACE: ("Σ (qtf · idf)(tf · idf) / √(Σ (qtf · idf)² · Σ (tf · idf)²)",),
    Kind.BM25: ("Σ qtf · idf · tf · (k1 + 1) / (tf + k1 · (1 − b + b · len / avg))", "k1", "b"),
    Kind.LM_ABSOLUTE: ("Σ qtf · ln((max(tf − δ, 0) + δ · u · p) / len), over terms with p > 0", "delta"),
    Kind.LM_DIRICHLET: ("Σ qtf · ln((tf + μ · p) / (len + μ)), over terms with p > 0", "mu"),
    Kind.LM_JELINEK_MERCER: ("Σ qtf · ln((1 − λ) · tf / len + λ · p), over terms with p > 0", "lambda"),
    Kind.QUERY_COMPLETENESS: ("Σ of covered terms qtf · idf / Σ qtf · idf",),
    Kind.FIELD_COMPLETENESS: ("min(1, covered / len)",),
    Kind.FIRST_PLACE: ("the first hit's place, counted from 1",),
    Kind.LAST_PLACE: ("the last hit's place, counted from 1",),
    Kind.EARLINESS: ("1 − (first_place − 1) / max(len, last_place)",),
    Kind.WINDOW_ALL: ("the places in the smallest window that holds every term; 0 if one is absent",),
    Kind.WINDOW_MATCHED: ("the places in the smallest window that holds every covered term",),
    Kind.WINDOW_DENSITY: ("min(1, covered / window_matched)",),
    Kind.WINDOW_ORDER: (
        "of neighbouring covered terms in the query's order, the share that occur in this order in the first smallest "
        "window, by their last places there; 1 for one covered term",
    ),
    Kind.PAIR_DISTANCE: ("the smallest distance between hits of two terms, at least 1; 0 if there are not two",),
    Kind.BM25_PROXIMITY: (
        "Σ min(1, idf) · a · (k1 + 1) / (a + k1 · (1 − b + b · len / avg)); a: each two neighbouring hits of "
        "different terms add the other's idf / distance² (Büttcher, Clarke and Lushman, 2006)",
        "k1",
        "b",
    ),
    Kind.LONGEST_SEQUENCE: ("the longest run of neighbouring query words that occurs here as in the query",),
    Kind.SEQUENCE_RATIO: ("longest_sequence / the query's words (its first 64)",),
    Kind.PHRASE_COUNT: ("how often the whole query occurs here as a phrase; 0 for a query of more than 64 words",),
    Kind.EXACT_MATCH: ("1 if the stream is the query and nothing else, else 0",),
    Kind.ORDERED_PAIRS: ("how often two neighbouring query words occur here as in the query",),
    Kind.UNORDERED_PAIRS: (
        "of neighbouring query words that are different terms, how many pairs of hits are less than 8 places apart",
    ),
    Kind.FORWARD_DISTANCE: (
        "the smallest distance from a query word's hit to a later hit of the next query word; 0 if there is none",
    ),
    Kind.REVERSE_DISTANCE: (
        "the smallest distance from a query word's hit back to an earlier hit of the next query word; 0 if there is "
        "none",
    ),
    Kind.FORWARD_PROXIMITY: ("the mean over neighbouring query words of 1 / their smallest forward distance, or 0",),
    Kind.REVERSE_PROXIMITY: ("the mean over neighbouring query words of 1 / their smallest reverse distance, or 0",),
}

KINDS: Mapping[str, FeatureKind] = {
    kind.name.lower(): FeatureKind(kind.name.lower(), formula, tuple(parameters), of_whole=kind < N_WHOLE_KINDS)
    for kind, (formula, *parameters) in _FORMULAS.items()
}
"""What the kernels compute for a stream, in the order of `Kind`."""

COMBINED: Mapping[str, FeatureKind] = {
    "completeness": FeatureKind(
        "completeness",
        "0.95 · query_completeness + 0.05 · field_completeness",
        expression='0.95 * "query_completeness.{stream}" + 0.05 * "field_completeness.{stream}"',
    ),
}
"""Kinds that are expressions of others of the same stream."""

BM25F = FeatureKind(
    "bm25f",
    "Σ qtf · idf · f · (k1 + 1) / (f + k1), f = Σ over streams weight · tf / (1 − b + b · len / avg), idf of the whole "
    "document",
    ("k1", "b", "weight"),
)

RELEVANCE_MODEL = FeatureKind(
    "relevance_model",
    "Σ w · idf · tf · (k1 + 1) / (tf + k1 · (1 − b + b · len / avg)), over the terms of the query and of the relevance "
    "model; w = original · qtf / Σ qtf + (1 − original) · r",
    ("k1", "b", "documents", "terms", "original"),
    of_whole=True,
)
"""Features from the first documents of the first pass: `rankwell.features.feedback`."""

FEEDBACK_PARAMETERS: Mapping[str, float] = {"documents": 10, "terms": 10, "original": 0.5}
"""How many of the first pass's documents and how many of their terms a relevance model reads; the query's share."""

STATIC = "static"
"""The first part of the name of a static feature."""

OWN = "own"
"""The first part of the name of a feature whose values are given: `rankwell.features.own_features`."""

DOT, COSINE = "dot", "cosine"
"""The first parts of the names of products of a query's vector and a document's: `rankwell.features.own_vectors`."""

GIVEN = (OWN, DOT, COSINE)
"""Features that need more than the index and the query's text."""

MSLR_STREAMS = ("body", "anchor", "title", "url")


def in_mslr_order(streams: tuple[str, ...]) -> tuple[str, ...]:
    """Streams as in MSLR: body, anchor, title, url; then the others in their order; the whole document last."""
    known = [stream for stream in MSLR_STREAMS if stream in streams]
    return (*known, *(stream for stream in streams if stream not in MSLR_STREAMS), WHOLE)
