"""The forward index: a document's terms in order, as one record of bytes.

A record is, in numbers of seven bits a byte (the eighth says that another byte follows),

    the number of different terms, and the terms ascending: each as its distance to the one before, less one;
    the number of streams that have words, and for each of them: its number, how many words, how many jumps,
        the words, each as the place of its term among the document's terms, with as few bits as the places need,
        the jumps: how many words after the jump before, and how many positions are skipped before this word.

A document without words is a record of no bytes. Terms come first, because that is what a merge changes, and what
says that a document has none of the terms that are looked for.

Records come from files that may be forged, so every number is checked as it is read: nothing is read outside the
record, a term is below `n_terms`, and a stream below `n_streams`. Kernels return the place of the first record that is
wrong, -1 if none is.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import inlined_kernel, inner_kernel, kernel
from rankwell.kernels.cpu.sorting import sort_keys
from rankwell.kernels.postings.inversion import first_position

LARGEST = 2**31 - 1
# The longest number: 5 · 7 bits hold 32.
LONGEST_NUMBER = 5
# A word is at least this many bits, even if its document has only one term: a record then bounds its words.
LEAST_BITS = 1


@kernel
def place_words(tokens, term_of_word, is_kept, stream_state, docs, streams, terms, positions):
    """The indexed words of the streams that are kept, one after another; returns how many there are.

    tokens : `rankwell.kernels.postings.inversion.Tokens`
    is_kept : uint8 (n_streams,)
    stream_state : as `place_occurrences` has it
    docs, streams, terms, positions : int32, filled
    """
    n_words = 0
    for field in range(len(tokens.doc_of_field)):
        stream = tokens.stream_of_field[field]
        start, stop = tokens.field_ptr[field], tokens.field_ptr[field + 1]
        before = first_position(stream_state, tokens.gap_of_field[field], stop - start) - start
        if is_kept[stream] == 0:
            continue
        for place in range(start, stop):
            word = tokens.words[place]
            if word >= 0 and term_of_word[word] >= 0:
                docs[n_words] = tokens.doc_of_field[field]
                streams[n_words] = stream
                terms[n_words] = term_of_word[word]
                positions[n_words] = before + place
                n_words += 1
    return n_words


@kernel(inline="always")
def _write_number(out, place, value):
    while value >= 128:
        out[place] = value & 127 | 128
        value >>= 7
        place += 1
    out[place] = value
    return place + 1


@kernel(inline="always")
def _bits_of(n_terms):
    bits = LEAST_BITS
    while (n_terms - 1) >> bits:
        bits += 1
    return bits


@inner_kernel
def _write_stream(streams, terms, positions, start, stop, bits, local, out, place):
    """One stream's words, start to stop; returns the place after them."""
    n_jumps, expected = 0, 0
    for word in range(start, stop):
        n_jumps += positions[word] != expected
        expected = positions[word] + 1
    place = _write_number(out, place, np.int64(streams[start]))
    place = _write_number(out, place, stop - start)
    place = _write_number(out, place, n_jumps)
    waiting, n_waiting = np.int64(0), 0
    for word in range(start, stop):
        waiting |= np.int64(local[terms[word]]) << n_waiting
        n_waiting += bits
        while n_waiting >= 8:
            out[place] = waiting & 255
            place += 1
            waiting >>= 8
            n_waiting -= 8
    if n_waiting > 0:
        out[place] = waiting
        place += 1
    last, expected = start, 0
    for word in range(start, stop):
        if positions[word] != expected:
            place = _write_number(out, place, word - last)
            place = _write_number(out, place, np.int64(positions[word]) - expected)
            last = word
        expected = positions[word] + 1
    return place


@inner_kernel
def _write_terms(terms, n_terms, out, place):
    place = _write_number(out, place, n_terms)
    before = np.int64(-1)
    for i in range(n_terms):
        place = _write_number(out, place, terms[i] - before - 1)
        before = np.int64(terms[i])
    return place


@kernel
def encode_documents(word_ptr, streams, terms, positions, local, distinct, ordered, order, scratch, out, ends):
    """Write the records of some documents.

    word_ptr : int64 (n_docs + 1,), the words of each document
    streams, terms, positions : int32, of each word; those of a stream follow each other
    local : int32 (n_terms of the segment,), all -1, and again afterwards
    distinct, ordered, order, scratch : int32, room for the words of the longest document
    out : uint8, room for the records; ends : int64 (n_docs,), filled: where each record ends
    """
    place = 0
    for doc in range(len(word_ptr) - 1):
        start, stop = word_ptr[doc], word_ptr[doc + 1]
        if start < stop:
            n_terms, n_streams = 0, 1
            for word in range(start, stop):
                n_streams += word > start and streams[word] != streams[word - 1]
                if local[terms[word]] < 0:
                    local[terms[word]] = 0
                    distinct[n_terms] = terms[word]
                    n_terms += 1
            sort_keys(distinct[:n_terms], order, scratch)
            for i in range(n_terms):
                ordered[i] = distinct[order[i]]
                local[ordered[i]] = i
            place = _write_terms(ordered, n_terms, out, place)
            place = _write_number(out, place, n_streams)
            bits, first = _bits_of(n_terms), start
            for word in range(start + 1, stop + 1):
                if word == stop or streams[word] != streams[first]:
                    place = _write_stream(streams, terms, positions, first, word, bits, local, out, place)
                    first = word
            for i in range(n_terms):
                local[ordered[i]] = -1
        ends[doc] = place


@kernel(inline="always")
def _read_number(data, place, stop):
    """A number, -1 if there is none or it is too large, and the place after it."""
    value, shift = np.int64(0), 0
    while True:
        if place >= stop or shift == 7 * LONGEST_NUMBER:
            return np.int64(-1), place
        byte = np.int64(data[place])
        place += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    return (value if value <= LARGEST else np.int64(-1)), place


@inner_kernel
def _read_terms(data, place, stop, n_terms, terms):
    """The document's terms; returns how many there are, -1 if they are wrong, and the place after them.

    terms : int32, room for as many terms as the record has bytes
    """
    count, place = _read_number(data, place, stop)
    if count <= 0 or count > stop - place:
        return np.int64(-1), place
    term = np.int64(-1)
    for i in range(count):
        distance, place = _read_number(data, place, stop)
        if distance < 0 or term + 1 + distance >= n_terms:
            return np.int64(-1), place
        term += 1 + distance
        terms[i] = term
    return count, place


@inner_kernel
def _read_stream(data, place, stop, n_streams, bits):
    """The stream's number, how many words and jumps, and where the words begin; -1 words if they are wrong."""
    stream, place = _read_number(data, place, stop)
    n_words, place = _read_number(data, place, stop)
    n_jumps, place = _read_number(data, place, stop)
    fits = 0 <= stream < n_streams and n_words > 0 and 0 <= n_jumps <= n_words
    if not fits or (n_words * bits + 7) >> 3 > stop - place:
        n_words = np.int64(-1)
    return stream, n_words, n_jumps, place


@inner_kernel
def _skip_numbers(data, place, stop, n_numbers):
    """The place after some numbers, -1 if they are wrong."""
    for _ in range(n_numbers):
        value, place = _read_number(data, place, stop)
        if value < 0:
            return np.int64(-1)
    return np.int64(place)


@inlined_kernel
def _next_word(data, place, waiting, n_waiting, bits):
    """The next of a stream's words, of `bits` bits each; waiting : bits that were read before, n_waiting of them

    Returns the word, the place after what was read, and what is waiting now.
    """
    while n_waiting < bits:
        waiting |= np.int64(data[place]) << n_waiting
        n_waiting += 8
        place += 1
    return waiting & ((np.int64(1) << bits) - 1), place, waiting >> bits, n_waiting - bits


@inner_kernel
def _count_words(data, place, stop, n_words, bits, n_terms, number, counts, step):
    """Add the words of a stream to `counts`; returns whether all of them are terms of the document.

    number : int32, for each of the document's terms the row of `counts` (whose rows are `step` apart), or -1
    """
    waiting, n_waiting = np.int64(0), 0
    for _ in range(n_words):
        local, place, waiting, n_waiting = _next_word(data, place, waiting, n_waiting, bits)
        if local >= n_terms:
            return False
        if number[local] >= 0:
            counts[number[local] * step] += 1
    return True


@inner_kernel
def _wanted_places(terms, n_terms, wanted, number):
    """Fill `number`: for each term of a document its place in `wanted`, or -1; returns how many are wanted."""
    found, n_found = 0, 0
    for local in range(n_terms):
        while found < len(wanted) and wanted[found] < terms[local]:
            found += 1
        is_wanted = found < len(wanted) and wanted[found] == terms[local]
        number[local] = found if is_wanted else -1
        n_found += is_wanted
    return n_found


@kernel
def count_terms(data, offsets, docs, n_terms, n_streams, wanted, terms, number, counts):
    """How often documents have each of some terms, stream by stream.

    docs : int64 (n,); wanted : int32, ascending terms; terms, number : int32, room for the longest record's bytes
    counts : int32 (n * n_wanted * n_streams,), added to
    """
    n_wanted = len(wanted)
    for i in range(len(docs)):
        place, stop = offsets[docs[i]], offsets[docs[i] + 1]
        if place == stop:
            continue
        count, place = _read_terms(data, place, stop, n_terms, terms)
        if count < 0:
            return i
        if _wanted_places(terms, count, wanted, number) == 0:
            continue
        bits = _bits_of(count)
        n_parts, place = _read_number(data, place, stop)
        for _ in range(n_parts):
            stream, n_words, n_jumps, place = _read_stream(data, place, stop, n_streams, bits)
            if n_words < 0:
                return i
            own = counts[i * n_wanted * n_streams + stream : (i + 1) * n_wanted * n_streams]
            if not _count_words(data, place, stop, n_words, bits, count, number, own, n_streams):
                return i
            place = _skip_numbers(data, place + ((n_words * bits + 7) >> 3), stop, 2 * n_jumps)
            if place < 0:
                return i
    return -1


@kernel
def read_counts(data, offsets, docs, n_terms, n_streams, number, term_ptr, terms, counts):
    """The different terms of documents and how often each has them, all streams together.

    number : int32, 0, 1, 2, ..., as many as the longest record has bytes
    term_ptr : int64 (n + 1,), filled; terms, counts : int32, room for as many as all records have bytes; counts zero
    """
    end = np.int64(0)
    term_ptr[0] = 0
    for i in range(len(docs)):
        place, stop = offsets[docs[i]], offsets[docs[i] + 1]
        if place < stop:
            count, place = _read_terms(data, place, stop, n_terms, terms[end:])
            if count < 0:
                return i
            bits = _bits_of(count)
            n_parts, place = _read_number(data, place, stop)
            for _ in range(n_parts):
                _, n_words, n_jumps, place = _read_stream(data, place, stop, n_streams, bits)
                if n_words < 0 or not _count_words(data, place, stop, n_words, bits, count, number, counts[end:], 1):
                    return i
                place = _skip_numbers(data, place + ((n_words * bits + 7) >> 3), stop, 2 * n_jumps)
                if place < 0:
                    return i
            end += count
        term_ptr[i + 1] = end
    return -1


@inner_kernel
def _read_positions(data, place, stop, n_words, n_jumps, positions):
    """The positions of a stream's words; returns the place after the jumps, -1 if they are wrong."""
    word, position = np.int64(0), np.int64(0)
    for jump in range(n_jumps + 1):
        distance, skipped = n_words - word, np.int64(0)
        if jump < n_jumps:
            distance, place = _read_number(data, place, stop)
            skipped, place = _read_number(data, place, stop)
            if distance < 0 or skipped <= 0 or word + distance >= n_words or (jump > 0 and distance == 0):
                return np.int64(-1)
        for _ in range(distance):
            positions[word] = position
            word += 1
            position += 1
        position += skipped
        if position > LARGEST:
            return np.int64(-1)
    return np.int64(place)


@inner_kernel
def _find_words(data, place, n_words, bits, n_terms, number, places, words):
    """Write the wanted words of a stream, their numbers in it and their places in `wanted`; returns how many, or -1."""
    waiting, n_waiting = np.int64(0), 0
    n_found = np.int64(0)
    for word in range(n_words):
        local, place, waiting, n_waiting = _next_word(data, place, waiting, n_waiting, bits)
        if local >= n_terms:
            return np.int64(-1)
        if number[local] >= 0:
            places[n_found] = number[local]
            words[n_found] = word
            n_found += 1
    return n_found


@inner_kernel
def _skip_positions(data, place, stop, n_words, n_jumps, words):
    """Turn the numbers of some words, ascending, into positions; returns the place after the jumps, -1 if wrong."""
    word, skipped_before, done = np.int64(0), np.int64(0), 0
    for jump in range(n_jumps):
        distance, place = _read_number(data, place, stop)
        skipped, place = _read_number(data, place, stop)
        word += distance
        if distance < 0 or skipped <= 0 or word >= n_words or (jump > 0 and distance == 0):
            return np.int64(-1)
        while done < len(words) and words[done] < word:
            words[done] += skipped_before
            done += 1
        skipped_before += skipped
        if n_words + skipped_before > LARGEST:
            return np.int64(-1)
    for rest in range(done, len(words)):
        words[rest] += skipped_before
    return np.int64(place)


@kernel
def find_terms(data, start, stop, n_terms, n_streams, wanted, terms, number, bounds, places, positions):
    """Where one document has each of some terms; returns how many places there are, -1 if the record is wrong.

    wanted : int32, ascending terms; terms, number : int32, room for as many as the record has bytes
    bounds : int64 (2 * n_streams,), zero; filled: what was found in stream s is from bounds[2 * s] to bounds[2 * s + 1]
    places, positions : int32, room for eight times the record's bytes: places in `wanted`, positions ascending
    """
    if start == stop:
        return np.int64(0)
    count, place = _read_terms(data, start, stop, n_terms, terms)
    if count < 0:
        return np.int64(-1)
    if _wanted_places(terms, count, wanted, number) == 0:
        return np.int64(0)
    bits, end = _bits_of(count), np.int64(0)
    n_parts, place = _read_number(data, place, stop)
    for _ in range(n_parts):
        stream, n_words, n_jumps, place = _read_stream(data, place, stop, n_streams, bits)
        if n_words < 0:
            return np.int64(-1)
        n_found = _find_words(data, place, n_words, bits, count, number, places[end:], positions[end:])
        if n_found < 0:
            return np.int64(-1)
        place += (n_words * bits + 7) >> 3
        place = _skip_positions(data, place, stop, n_words, n_jumps, positions[end : end + n_found])
        if place < 0:
            return np.int64(-1)
        bounds[2 * stream], bounds[2 * stream + 1] = end, end + n_found
        end += n_found
    return end if place == stop else np.int64(-1)


@kernel
def read_document(data, start, stop, n_terms, n_streams, distinct, streams, terms, positions):
    """All words of one document in the order of its record; returns how many, -1 if the record is wrong.

    distinct : int32, room for as many as the record has bytes; streams, terms, positions : int32, for eight times that
    """
    if start == stop:
        return np.int64(0)
    count, place = _read_terms(data, start, stop, n_terms, distinct)
    if count < 0:
        return np.int64(-1)
    bits, end = _bits_of(count), np.int64(0)
    n_parts, place = _read_number(data, place, stop)
    for _ in range(n_parts):
        stream, n_words, n_jumps, place = _read_stream(data, place, stop, n_streams, bits)
        if n_words < 0:
            return np.int64(-1)
        for word in range(n_words):
            bit = word * bits
            byte, local = place + (bit >> 3), np.int64(0)
            for i in range(((bit & 7) + bits + 7) >> 3):
                local |= np.int64(data[byte + i]) << (8 * i)
            local = (local >> (bit & 7)) & ((np.int64(1) << bits) - 1)
            if local >= count:
                return np.int64(-1)
            streams[end + word] = stream
            terms[end + word] = distinct[local]
        place += (n_words * bits + 7) >> 3
        place = _read_positions(data, place, stop, n_words, n_jumps, positions[end : end + n_words])
        if place < 0:
            return np.int64(-1)
        end += n_words
    return end if place == stop else np.int64(-1)


@kernel
def renumber_documents(data, offsets, first, is_live, n_terms, new_number, terms, out, ends):
    """Copy the records of live documents with other numbers of terms, in the same order.

    offsets : int64 (n + 1,), where the records are in `data`, which begins at byte `first` of the segment's
    is_live : uint8 (n,); new_number : int32 (n_terms,), ascending, -1 for terms that are dropped
    terms : int32, room for the longest record's bytes; out : uint8, room; ends : int64 (n live,), filled
    """
    end, n_written = np.int64(0), 0
    for doc in range(len(offsets) - 1):
        if is_live[doc] == 0:
            continue
        place, stop = offsets[doc] - first, offsets[doc + 1] - first
        if place < stop:
            count, place = _read_terms(data, place, stop, n_terms, terms)
            if count < 0:
                return doc
            for i in range(count):
                terms[i] = new_number[terms[i]]
                if terms[i] < 0:
                    return doc
            end = _write_terms(terms, count, out, end)
            for byte in range(place, stop):
                out[end] = data[byte]
                end += 1
        ends[n_written] = end
        n_written += 1
    return -1


@kernel
def count_all(data, offsets, n_terms, n_streams, room, lengths, occurrences):
    """Read every record whole, and count: words of each document's streams, and of each term's.

    room : int32 (4, eight times the longest record's bytes)
    lengths : int64 (n_docs * n_streams,); occurrences : int64 (n_terms * n_streams,); both added to
    """
    distinct, streams, terms, positions = room[0], room[1], room[2], room[3]
    for doc in range(len(offsets) - 1):
        n_words = read_document(
            data, offsets[doc], offsets[doc + 1], n_terms, n_streams, distinct, streams, terms, positions
        )
        if n_words < 0:
            return doc
        for word in range(n_words):
            lengths[doc * n_streams + streams[word]] += 1
            occurrences[np.int64(terms[word]) * n_streams + streams[word]] += 1
    return -1
