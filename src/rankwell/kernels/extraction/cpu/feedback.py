"""Relevance models: the weights of terms, and BM25 with them, term by term."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.sorting import sort_keys


@kernel
def add_bm25(frequencies, first_stream, last_stream, weights, k1, saturation, values):
    """Add each candidate's value, the terms in their order: it does not depend on the candidates beside it.

    frequencies : int32 (n, n_terms, n_streams); streams first to last are counted together
    weights : float64 (n_terms,), with idf; saturation : float64 (n,), k1 · (1 − b + b · len / avg)
    values : float64 (n,), added to
    """
    tiny = 2.2250738585072014e-308
    for candidate in range(frequencies.shape[0]):
        total = values[candidate]
        for term in range(frequencies.shape[1]):
            count = 0
            for stream in range(first_stream, last_stream):
                count += frequencies[candidate, term, stream]
            tf = np.float64(count)
            there = max(tf + saturation[candidate], tiny)
            total += weights[term] * (tf * (k1 + 1.0) / there)
        values[candidate] = total


@kernel
def weigh_terms(doc, number, count, scores, lengths, order, scratch, numbers, weights):
    """Σ over documents of score · count / words of the document, for each term; returns how many terms there are.

    doc, number, count : int64 (n,), each term of each document once, documents in order: so are the sums
    scores : float64 (n_docs,); lengths : int64 (n_docs,), zeros; order, scratch : int64 (n,)
    numbers : int64 (n,), filled: the terms, ascending; weights : float64 (n,), filled
    """
    for i in range(len(doc)):
        lengths[doc[i]] += count[i]
    sort_keys(number, order, scratch)
    n_terms = 0
    for place in range(len(order)):
        i = order[place]
        if n_terms == 0 or numbers[n_terms - 1] != number[i]:
            numbers[n_terms] = number[i]
            weights[n_terms] = 0.0
            n_terms += 1
        # A forged document may count its words as none.
        weights[n_terms - 1] += scores[doc[i]] * count[i] / max(lengths[doc[i]], 1)
    return n_terms
