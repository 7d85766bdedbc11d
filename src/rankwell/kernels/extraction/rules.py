"""The rules of feature extraction that every backend follows, and the arrays it reads, in the form that kernels take.

Importing this compiles nothing. The formulas are in docs/features.md.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

# Two query words are near each other if their places differ by less than this (Metzler and Croft's window).
PAIR_WINDOW = 8
# Features of pairs and sequences read only this many words of a query, so that long queries do not cost quadratic time.
SEQUENCE_WORDS = 64


class Kind(IntEnum):
    """What is computed for a stream. The first 25, in MSLR's order, exist for the whole document too."""

    COVERED_TERMS = 0
    COVERED_RATIO = 1
    LENGTH = 2
    IDF = 3
    TF_SUM = 4
    TF_MIN = 5
    TF_MAX = 6
    TF_MEAN = 7
    TF_VARIANCE = 8
    NORMALISED_TF_SUM = 9
    NORMALISED_TF_MIN = 10
    NORMALISED_TF_MAX = 11
    NORMALISED_TF_MEAN = 12
    NORMALISED_TF_VARIANCE = 13
    TFIDF_SUM = 14
    TFIDF_MIN = 15
    TFIDF_MAX = 16
    TFIDF_MEAN = 17
    TFIDF_VARIANCE = 18
    BOOLEAN = 19
    VECTOR_SPACE = 20
    BM25 = 21
    LM_ABSOLUTE = 22
    LM_DIRICHLET = 23
    LM_JELINEK_MERCER = 24
    QUERY_COMPLETENESS = 25
    FIELD_COMPLETENESS = 26
    FIRST_PLACE = 27
    LAST_PLACE = 28
    EARLINESS = 29
    WINDOW_ALL = 30
    WINDOW_MATCHED = 31
    WINDOW_DENSITY = 32
    WINDOW_ORDER = 33
    PAIR_DISTANCE = 34
    BM25_PROXIMITY = 35
    LONGEST_SEQUENCE = 36
    SEQUENCE_RATIO = 37
    PHRASE_COUNT = 38
    EXACT_MATCH = 39
    ORDERED_PAIRS = 40
    UNORDERED_PAIRS = 41
    FORWARD_DISTANCE = 42
    REVERSE_DISTANCE = 43
    FORWARD_PROXIMITY = 44
    REVERSE_PROXIMITY = 45


N_WHOLE_KINDS = 25
N_KINDS = len(Kind)

# The columns of `FeatureColumns.parameters`.
K1, B, MU, LAMBDA, DELTA = range(5)


class HitArrays(NamedTuple):
    """The arrays of `rankwell.features.hits.Hits`, by the same names."""

    stream_tokens: np.ndarray
    query_ptr: np.ndarray
    term_ptr: np.ndarray
    query_frequency: np.ndarray
    word_ptr: np.ndarray
    words: np.ndarray
    word_places: np.ndarray
    doc_freq: np.ndarray
    occurrences: np.ndarray
    lengths: np.ndarray
    distinct: np.ndarray
    statics: np.ndarray
    cell_base: np.ndarray
    cell_ptr: np.ndarray
    positions: np.ndarray


class HitQueries(NamedTuple):
    """The arrays of `HitArrays` that do not grow with the candidates."""

    stream_tokens: np.ndarray
    query_ptr: np.ndarray
    term_ptr: np.ndarray
    query_frequency: np.ndarray
    word_ptr: np.ndarray
    words: np.ndarray
    word_places: np.ndarray
    doc_freq: np.ndarray
    occurrences: np.ndarray
    cell_base: np.ndarray


class FeatureColumns(NamedTuple):
    """Which features are wanted and where they go; streams in the order of the hits, the whole document last.

    column_of : int32 (S + 1, N_KINDS), the column of each kind of each stream; -1 if it is not requested
    parameters : float64 (S + 1, 5), k1, b, mu, lambda and delta of each stream
    static_column : int32 (n_statics,), the column of each static feature, -1 if it is not requested
    bm25f_column : int32 (1,), -1 if it is not requested
    bm25f : float64 (1 + 2 · S,), k1, then b of each stream, then the weight of each stream
    """

    column_of: np.ndarray
    parameters: np.ndarray
    static_column: np.ndarray
    bm25f_column: np.ndarray
    bm25f: np.ndarray
