"""Proximity of a query's terms in one stream of one candidate: windows, sequences, pairs.

A *key* is a hit as one number, place · 2^20 + term, so that sorted keys are hits in the order of the stream.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel
from rankwell.kernels.extraction.rules import K1, PAIR_WINDOW, SEQUENCE_WORDS, B, Kind

TERM_BITS = 20
_TERM = (1 << TERM_BITS) - 1

# Numba supports plain integers, not enumerations.
_WINDOW_ALL, _WINDOW_MATCHED = int(Kind.WINDOW_ALL), int(Kind.WINDOW_MATCHED)
_WINDOW_DENSITY, _WINDOW_ORDER = int(Kind.WINDOW_DENSITY), int(Kind.WINDOW_ORDER)
_PAIR_DISTANCE, _BM25_PROXIMITY = int(Kind.PAIR_DISTANCE), int(Kind.BM25_PROXIMITY)
_LONGEST_SEQUENCE, _SEQUENCE_RATIO = int(Kind.LONGEST_SEQUENCE), int(Kind.SEQUENCE_RATIO)
_PHRASE_COUNT, _EXACT_MATCH = int(Kind.PHRASE_COUNT), int(Kind.EXACT_MATCH)
_ORDERED_PAIRS, _UNORDERED_PAIRS = int(Kind.ORDERED_PAIRS), int(Kind.UNORDERED_PAIRS)
_FORWARD_DISTANCE, _REVERSE_DISTANCE = int(Kind.FORWARD_DISTANCE), int(Kind.REVERSE_DISTANCE)
_FORWARD_PROXIMITY, _REVERSE_PROXIMITY = int(Kind.FORWARD_PROXIMITY), int(Kind.REVERSE_PROXIMITY)
_FIRST_PLACE, _LAST_PLACE, _EARLINESS = int(Kind.FIRST_PLACE), int(Kind.LAST_PLACE), int(Kind.EARLINESS)


class ProximityScratch(NamedTuple):
    """Scratch for one stream of one candidate, reused by one worker.

    keys, spare : int64 (most hits of a stream,)
    run_ptr : int64 (most terms + 1,); in_window, last_place : int32 (most terms,); gathered : float64 (most terms,)
    """

    keys: np.ndarray
    spare: np.ndarray
    run_ptr: np.ndarray
    in_window: np.ndarray
    last_place: np.ndarray
    gathered: np.ndarray


@inner_kernel(for_any_constant=True)
def _merge_neighbours(keys, run_ptr, n_runs, spare):
    """Merge runs 0 and 1, 2 and 3, ... of `keys` into `spare`; returns how many runs are left."""
    left_over = 0
    for run in range(0, n_runs, 2):
        i, middle = run_ptr[run], run_ptr[min(run + 1, n_runs)]
        j, stop = middle, run_ptr[min(run + 2, n_runs)]
        for place in range(i, stop):
            if j >= stop or (i < middle and keys[i] < keys[j]):
                spare[place] = keys[i]
                i += 1
            else:
                spare[place] = keys[j]
                j += 1
        run_ptr[left_over] = run_ptr[run]
        left_over += 1
    run_ptr[left_over] = run_ptr[n_runs]
    return left_over


@inner_kernel(error_model="numpy")
def merged_hits(cell_ptr, positions, first_cell, n_terms, n_streams, scratch):
    """The keys of a stream's hits in ascending order, and how many terms are matched.

    first_cell : the cell of term 0 in this stream; the cells of the next terms follow at steps of n_streams
    """
    keys, spare, run_ptr = scratch.keys, scratch.spare, scratch.run_ptr
    n_hits, n_runs = 0, 0
    run_ptr[0] = 0
    for term in range(n_terms):
        cell = first_cell + term * n_streams
        if cell_ptr[cell] == cell_ptr[cell + 1]:
            continue
        for hit in range(cell_ptr[cell], cell_ptr[cell + 1]):
            keys[n_hits] = (np.int64(positions[hit]) << TERM_BITS) | term
            n_hits += 1
        n_runs += 1
        run_ptr[n_runs] = n_hits
    matched = n_runs
    while n_runs > 1:
        n_runs = _merge_neighbours(keys, run_ptr, n_runs, spare)
        keys, spare = spare, keys
    return keys[:n_hits], matched


@inner_kernel(error_model="numpy")
def place_features(keys, length, values):
    """First and last place, from 1, and earliness."""
    first, last = keys[0] >> TERM_BITS, keys[-1] >> TERM_BITS
    values[_FIRST_PLACE] = first + 1.0
    values[_LAST_PLACE] = last + 1.0
    values[_EARLINESS] = 1.0 - first / max(length, last + 1)


@inner_kernel(error_model="numpy")
def _smallest_window(keys, matched, count):
    """The first of the shortest windows that contain all matched terms: the index of its first key, its last place."""
    best, best_left, best_end = np.int64(1) << 62, 0, np.int64(0)
    left, seen = 0, 0
    for term in range(len(count)):
        count[term] = 0
    for right in range(len(keys)):
        term = keys[right] & _TERM
        seen += count[term] == 0
        count[term] += 1
        while seen == matched:
            size = (keys[right] >> TERM_BITS) - (keys[left] >> TERM_BITS)
            if size < best:
                best, best_left, best_end = size, left, keys[right] >> TERM_BITS
            leaving = keys[left] & _TERM
            count[leaving] -= 1
            seen -= count[leaving] == 0
            left += 1
    return best_left, best_end


@inner_kernel(error_model="numpy")
def _terms_in_order(keys, left, end, n_terms, matched, last_place):
    """The share of neighbouring matched terms whose last places in the window are in the query's order."""
    if matched < 2:
        return float(matched)
    for term in range(n_terms):
        last_place[term] = -1
    while left < len(keys) and keys[left] >> TERM_BITS <= end:
        last_place[keys[left] & _TERM] = keys[left] >> TERM_BITS
        left += 1
    in_order, before = 0, np.int32(-1)
    for term in range(n_terms):
        if last_place[term] >= 0:
            in_order += 0 <= before < last_place[term]
            before = last_place[term]
    return in_order / (matched - 1)


@inner_kernel(error_model="numpy")
def window_features(keys, matched, n_terms, scratch, values):
    """The smallest window that covers the matched terms."""
    left, end = _smallest_window(keys, matched, scratch.in_window[:n_terms])
    size = end - (keys[left] >> TERM_BITS) + 1.0
    values[_WINDOW_MATCHED] = size
    values[_WINDOW_ALL] = size if matched == n_terms else 0.0
    values[_WINDOW_DENSITY] = min(1.0, matched / size)
    values[_WINDOW_ORDER] = _terms_in_order(keys, left, end, n_terms, matched, scratch.last_place)


@inner_kernel(error_model="numpy")
def neighbour_features(keys, idf, n_terms, relative_length, parameters, scratch, values):
    """Neighbouring hits of different terms: their smallest distance, and BM25 over their proximity weights.

    idf : float64 (n_terms,), of this stream
    """
    nearest, gathered = np.int64(0), scratch.gathered
    for term in range(n_terms):
        gathered[term] = 0.0
    for right in range(1, len(keys)):
        a, b = keys[right - 1] & _TERM, keys[right] & _TERM
        if a != b:
            distance = max(np.int64(1), (keys[right] >> TERM_BITS) - (keys[right - 1] >> TERM_BITS))
            nearest = distance if nearest == 0 else min(nearest, distance)
            closeness = 1.0 / (float(distance) * float(distance))
            gathered[a] += idf[b] * closeness
            gathered[b] += idf[a] * closeness
    k1 = parameters[K1]
    normaliser = k1 * (1.0 - parameters[B] + parameters[B] * relative_length)
    total = 0.0
    for term in range(n_terms):
        if gathered[term] > 0.0:
            total += min(1.0, idf[term]) * gathered[term] * (k1 + 1.0) / (gathered[term] + normaliser)
    values[_PAIR_DISTANCE] = nearest
    values[_BM25_PROXIMITY] = total


@inner_kernel(error_model="numpy")
def _stands_at(positions, low, high, place):
    """Whether `place` is among the ascending positions[low:high]."""
    while low < high:
        middle = (low + high) >> 1
        if positions[middle] < place:
            low = middle + 1
        else:
            stop = positions[middle] == place
            high = middle
            if stop:
                return True
    return False


@inner_kernel(error_model="numpy")
def sequence_features(cell_ptr, positions, first_cell, n_streams, words, places, length, values):
    """Runs of neighbouring query words that occur in the stream as in the query.

    Each hit of each word is in one run, which is followed once, from its first word.
    """
    n_words = min(len(words), SEQUENCE_WORDS)
    longest, phrases, pairs = 0, 0, 0
    for j in range(n_words):
        cell = first_cell + words[j] * n_streams
        for hit in range(cell_ptr[cell], cell_ptr[cell + 1]):
            begin = positions[hit] - places[j]
            if j > 0:
                before = first_cell + words[j - 1] * n_streams
                if _stands_at(positions, cell_ptr[before], cell_ptr[before + 1], begin + places[j - 1]):
                    continue
            stop = j + 1
            while stop < n_words:
                after = first_cell + words[stop] * n_streams
                if not _stands_at(positions, cell_ptr[after], cell_ptr[after + 1], begin + places[stop]):
                    break
                stop += 1
            longest = max(longest, stop - j)
            phrases += stop - j == len(words)
            pairs += stop - j - 1
    values[_LONGEST_SEQUENCE] = longest
    values[_SEQUENCE_RATIO] = longest / n_words
    values[_PHRASE_COUNT] = phrases
    values[_EXACT_MATCH] = 1.0 if phrases > 0 and length == len(words) else 0.0
    values[_ORDERED_PAIRS] = pairs


@inner_kernel(error_model="numpy")
def _pair(a, b):
    """Of two ascending lists of places: how often they are near, and the smallest distances to b after and before a."""
    near, forward, reverse = 0, np.int64(0), np.int64(0)
    low, after = 0, 0
    for place in a:
        while low < len(b) and b[low] <= place - PAIR_WINDOW:
            low += 1
        while after < len(b) and b[after] <= place:
            after += 1
        before = after - 1
        if before >= 0 and b[before] == place:
            before -= 1
        k = low
        while k < len(b) and b[k] < place + PAIR_WINDOW:
            near += b[k] != place
            k += 1
        if after < len(b) and (forward == 0 or b[after] - place < forward):
            forward = np.int64(b[after] - place)
        if before >= 0 and (reverse == 0 or place - b[before] < reverse):
            reverse = np.int64(place - b[before])
    return near, forward, reverse


@inner_kernel(error_model="numpy")
def pair_features(cell_ptr, positions, first_cell, n_streams, words, values):
    """Neighbouring words of the query that are different terms."""
    n_pairs, near, forward, reverse = 0, 0, np.int64(0), np.int64(0)
    forward_sum, reverse_sum = 0.0, 0.0
    for j in range(min(len(words), SEQUENCE_WORDS) - 1):
        if words[j] == words[j + 1]:
            continue
        n_pairs += 1
        a, b = first_cell + words[j] * n_streams, first_cell + words[j + 1] * n_streams
        of_a, of_b = positions[cell_ptr[a] : cell_ptr[a + 1]], positions[cell_ptr[b] : cell_ptr[b + 1]]
        if len(of_a) == 0 or len(of_b) == 0:
            continue
        near_here, forward_here, reverse_here = _pair(of_a, of_b)
        near += near_here
        if forward_here > 0:
            forward = forward_here if forward == 0 else min(forward, forward_here)
            forward_sum += 1.0 / forward_here
        if reverse_here > 0:
            reverse = reverse_here if reverse == 0 else min(reverse, reverse_here)
            reverse_sum += 1.0 / reverse_here
    values[_UNORDERED_PAIRS] = near
    values[_FORWARD_DISTANCE] = forward
    values[_REVERSE_DISTANCE] = reverse
    values[_FORWARD_PROXIMITY] = forward_sum / n_pairs if n_pairs else 0.0
    values[_REVERSE_PROXIMITY] = reverse_sum / n_pairs if n_pairs else 0.0
