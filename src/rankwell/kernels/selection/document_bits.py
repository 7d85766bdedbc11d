"""Which documents have a term, as bits: document d is bit d % 64 of word d // 64."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.postings.blocks import block_documents, blocks_of
from rankwell.kernels.postings.rules import BLOCK


@kernel
def mark_bits(arrays, lists, bits):
    """Set the bits of the documents of some lists; lists : int64; bits : uint64 (ceil(n_docs / 64),)"""
    documents = np.empty(BLOCK, np.uint32)
    for list_number in lists:
        first, stop = blocks_of(arrays, list_number)
        for block in range(first, stop):
            for j in range(block_documents(arrays, list_number, block, documents, 0)):
                bits[documents[j] >> np.uint32(6)] |= np.uint64(1) << np.uint64(documents[j] & np.uint32(63))


@kernel
def count_bits(bits):
    """How many bits are set: sums of 1, 2, 4 and 8 bits, which the compiler knows as one instruction."""
    total = np.int64(0)
    for word in bits:
        word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
        word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
        word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        total += np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
    return total
