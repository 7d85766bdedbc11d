"""Words numbered by their bytes: a hash table for whole batches of text.

A word's key is its UTF-8 with ASCII letters in lower case. Keys are stored one after another in one buffer, numbered in
the order of their first appearance; the slots of an open-addressing table hold a number + 1 in the low half and the
upper half of the key's hash above it, so that few unequal keys are compared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.words.character_kinds import LONGEST_WORD
from rankwell.kernels.words.finding import next_word

# The number of a word that is longer.
TOO_LONG = -1

FNV_OFFSET, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
MIX_1, MIX_2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
LOW_HALF, HALF, MIX_SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(33)
ONE, FREE = np.uint64(1), np.uint64(0)

# The state of a batch, slots of an int64 array: the field and the byte to continue with, and the counts so far.
FIELD, PLACE, N_TOKENS, N_WORDS = 0, 1, 2, 3
STATE_SIZE = 4


class WordKeys(NamedTuple):
    """The table's arrays."""

    slots: np.ndarray  # uint64, a power of two of them, more than twice the words; 0 is a free one
    text: np.ndarray  # uint8, keys one after another
    offsets: np.ndarray  # int64 (n_words + 1,): where a key starts
    hashes: np.ndarray  # uint64 (n_words,)


@kernel
def mix(value):
    """The last step of MurmurHash3: spreads a hash over all bits."""
    value = (value ^ (value >> MIX_SHIFT)) * MIX_1
    value = (value ^ (value >> MIX_SHIFT)) * MIX_2
    return value ^ (value >> MIX_SHIFT)


@kernel
def hash_strings(text, offsets, hashes):
    """The 64-bit hash of each string text[offsets[i] : offsets[i + 1]]: FNV-1a, then `mix`; stable, kept in files."""
    for number in range(len(offsets) - 1):
        value = FNV_OFFSET
        for place in range(offsets[number], offsets[number + 1]):
            value = (value ^ np.uint64(text[place])) * FNV_PRIME
        hashes[number] = mix(value)


@kernel
def number_of_key(keys, length, value, n_words):
    """The number of the key of `length` bytes that is stored after the last one; it is added if it is new.

    value : its hash, uint64
    """
    candidate = keys.offsets[n_words]
    mask = np.uint64(len(keys.slots) - 1)
    slot = value & mask
    while True:
        entry = keys.slots[slot]
        if entry == FREE:
            keys.slots[slot] = (value >> HALF) << HALF | np.uint64(n_words + 1)
            keys.offsets[n_words + 1] = candidate + length
            keys.hashes[n_words] = value
            return n_words
        if entry >> HALF == value >> HALF:
            number = np.int64(entry & LOW_HALF) - 1
            start = keys.offsets[number]
            if keys.offsets[number + 1] - start == length:
                same = True
                for i in range(length):
                    if keys.text[start + i] != keys.text[candidate + i]:
                        same = False
                        break
                if same:
                    return number
        slot = (slot + ONE) & mask


@kernel
def number_words(text, field_ptr, kinds, lower, keys, tokens, token_ptr, state):
    """Cut fields into words and number them; returns whether all fields are done, or the table must grow first.

    Called again with the same arguments and larger `keys`, it continues where it stopped.

    Parameters
    ----------
    text : uint8; field_ptr : int64 (n_fields + 1,); field f is text[field_ptr[f] : field_ptr[f + 1]]
    lower : uint8 (256,), a byte as it is written in a key
    tokens : int32, at least (field bytes + 1) // 2 per field: the word numbers, `TOO_LONG` for words without a number
    token_ptr : int64 (n_fields + 1,): the tokens of each field
    state : int64 (STATE_SIZE,)
    """
    most_words = min(len(keys.slots) // 2, len(keys.hashes))
    n_tokens, n_words = state[N_TOKENS], state[N_WORDS]
    place = state[PLACE]
    for field in range(state[FIELD], len(field_ptr) - 1):
        end = field_ptr[field + 1]
        start, stop, place = next_word(text, place, end, kinds)
        while start < stop:
            length = stop - start
            if length > LONGEST_WORD:
                tokens[n_tokens] = TOO_LONG
            else:
                candidate = keys.offsets[n_words]
                if n_words >= most_words or candidate + length > len(keys.text):
                    state[FIELD], state[PLACE], state[N_TOKENS], state[N_WORDS] = field, start, n_tokens, n_words
                    return False
                value = FNV_OFFSET
                for i in range(length):
                    byte = lower[text[start + i]]
                    keys.text[candidate + i] = byte
                    value = (value ^ np.uint64(byte)) * FNV_PRIME
                number = number_of_key(keys, length, mix(value), n_words)
                n_words += number == n_words
                tokens[n_tokens] = number
            n_tokens += 1
            start, stop, place = next_word(text, place, end, kinds)
        token_ptr[field + 1] = n_tokens
        place = end
    state[FIELD], state[PLACE], state[N_TOKENS], state[N_WORDS] = len(field_ptr) - 1, place, n_tokens, n_words
    return True


@kernel
def fill_slots(hashes, slots):
    """Insert the words of these hashes, which are all different words, into empty slots."""
    mask = np.uint64(len(slots) - 1)
    for number in range(len(hashes)):
        slot = hashes[number] & mask
        while slots[slot] != FREE:
            slot = (slot + ONE) & mask
        slots[slot] = (hashes[number] >> HALF) << HALF | np.uint64(number + 1)
