"""From words in the order of the documents to words in the order of the terms: a counting sort.

Tokens are word numbers, field after field; a field is one stream of one document, or continues the stream of the
field before it, and a token's position is the number of tokens and gaps before it in the stream. An *occurrence* is
document << 32 | position. Sorting is stable, so the occurrences of a term in a stream are in ascending order, for
any parts that were sorted in parallel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import kernel

# The gap of a field that is the first of its stream in a document.
NEW_FIELD = -1

# The state of the current stream, slots of an int64 array: the place after its last token, and the gap before the next
# one, which may be a few fields away.
STREAM_END, PENDING_GAP = 0, 1
STREAM_SIZE = 2


class Tokens(NamedTuple):
    """The words of some fields."""

    words: np.ndarray  # int32: word numbers, negative for words without a number
    field_ptr: np.ndarray  # int64 (n_fields + 1,)
    doc_of_field: np.ndarray  # int32
    stream_of_field: np.ndarray  # int32
    gap_of_field: np.ndarray  # int8: positions between the last token of the stream and the field, or NEW_FIELD


@kernel
def count_occurrences(tokens, term_of_word, n_streams, counts, last_seen, lengths, distinct, n_lists):
    """Add the occurrences of each term in each stream to `counts`, and the indexed words to `lengths` and `distinct`.

    term_of_word : int32, negative for words that are not indexed
    counts : int64 (n_terms * n_streams,)
    last_seen : int64 (n_terms,), document * n_streams + stream where a term was seen last, -1 if it was not; kept from
        batch to batch, whose documents ascend
    lengths, distinct : int32 (n_docs * n_lists,), words and different terms; the last column is the whole document
    """
    for field in range(len(tokens.doc_of_field)):
        stream = tokens.stream_of_field[field]
        doc = np.int64(tokens.doc_of_field[field])
        here = doc * n_streams + stream
        length, new_in_stream, new_in_document = 0, 0, 0
        for place in range(tokens.field_ptr[field], tokens.field_ptr[field + 1]):
            word = tokens.words[place]
            if word >= 0 and term_of_word[word] >= 0:
                term = np.int64(term_of_word[word])
                counts[term * n_streams + stream] += 1
                length += 1
                new_in_stream += last_seen[term] != here
                new_in_document += last_seen[term] < doc * n_streams
                last_seen[term] = here
        lengths[doc * n_lists + stream] += length
        distinct[doc * n_lists + stream] += new_in_stream
        if n_lists > 1:
            lengths[doc * n_lists + n_lists - 1] += length
            distinct[doc * n_lists + n_lists - 1] += new_in_document


@kernel
def first_position(stream, gap, n_tokens):
    """The position of a field's first token; advances `stream`, int64 (STREAM_SIZE,), past the field's tokens.

    A gap counts once there are tokens on both sides of it.
    """
    if gap == NEW_FIELD:
        stream[STREAM_END] = stream[PENDING_GAP] = 0
    else:
        stream[PENDING_GAP] = max(stream[PENDING_GAP], gap)
    first = stream[STREAM_END]
    if n_tokens > 0:
        if first > 0:
            first += stream[PENDING_GAP]
        stream[STREAM_END] = first + n_tokens
        stream[PENDING_GAP] = 0
    return first


@kernel
def place_occurrences(tokens, term_of_word, n_streams, next_place, occurrences, stream_state):
    """Write every occurrence to the list of its term and stream.

    next_place : int64 (n_terms * n_streams,): where the next occurrence of a list goes; advanced
    occurrences : int64
    stream_state : int64 (STREAM_SIZE,), kept from batch to batch
    """
    for field in range(len(tokens.doc_of_field)):
        stream = tokens.stream_of_field[field]
        doc = np.int64(tokens.doc_of_field[field]) << 32
        start, stop = tokens.field_ptr[field], tokens.field_ptr[field + 1]
        before = first_position(stream_state, tokens.gap_of_field[field], stop - start) - start
        for place in range(start, stop):
            word = tokens.words[place]
            if word >= 0 and term_of_word[word] >= 0:
                list_number = np.int64(term_of_word[word]) * n_streams + stream
                occurrences[next_place[list_number]] = doc | (before + place)
                next_place[list_number] += 1
