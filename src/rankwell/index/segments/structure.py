"""Whether the parts of a segment stay within bounds: checked before a kernel reads them.

Checksums tell that a file is as it was written, not who wrote it: anyone can compute them. Kernels that search do
not check what they read, so the numbers they go by are checked first, as the checksums are: sizes when a segment is
opened, a posting list when it is first used, an array that is used whole on its first use. What is only wrong, without
leading outside (a length that is not the number of a document's words), is found by `rankwell index check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.kernels.postings.rules import lists_per_term

if TYPE_CHECKING:
    from rankwell.index.segments.segment import Segment

# What `rankwell.kernels.postings.checking` finds, by its numbers.
WRONG_LISTS = (
    "",
    "its number of blocks does not match its document frequency",
    "a block has unknown widths",
    "a block's postings and positions do not end where the next block's begin",
    "it names a document that the segment does not have",
    "a block's last document is not the recorded one",
    "its occurrences are not the sum of its frequencies",
    "positions of a document do not ascend",
    "a position is beyond 2,147,483,647",
    "a block's impacts do not ascend",
    "a posting is above its block's impacts",
    "a block has an impact that no posting of it has, or the only block of a list has one",
    "a block's impacts are outside those of the segment",
    "a frequency is beyond 2,147,483,647",
)

_COUNTS = ("n_docs", "n_terms", "n_streams", "n_statics", "n_keywords")
_MOST_DOCUMENTS = 2**31 - 1


def check_meta(meta: Any) -> dict[str, Any]:
    """The numbers that a segment's table gives; ValueError if they are not what a segment can have."""
    counted = isinstance(meta, dict) and all(_is_count(meta.get(name)) for name in _COUNTS)
    if not counted:
        raise ValueError("its counts are not whole numbers")
    tokens = meta.get("tokens")
    if not isinstance(tokens, list) or not all(_is_count(count) for count in tokens):
        raise ValueError("its tokens are not whole numbers")
    forward = meta.get("forward", [])
    if not isinstance(forward, list) or not all(_is_count(stream) for stream in forward):
        raise ValueError("the streams of its forward index are not whole numbers")
    if any(stream >= meta["n_streams"] for stream in forward) or sorted(set(forward)) != forward:
        raise ValueError("its forward index has streams that do not exist, or not in order")
    if not _is_count(meta.get("vector_words", 0)):
        raise ValueError("the words of its vectors are not a whole number")
    if meta["n_docs"] > _MOST_DOCUMENTS or len(tokens) != lists_per_term(meta["n_streams"]):
        raise ValueError("its counts do not fit together")
    if meta["n_docs"] == 0 and any(tokens):
        raise ValueError("it has words, but no documents")
    return meta


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def expected_sizes(meta: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, int]:
    """The elements that each array must have, by the segment's counts and the sizes of other arrays."""
    columns = lists_per_term(meta["n_streams"])
    n_lists, n_blocks, cells = meta["n_terms"] * columns, sizes["blocks.last_doc"], meta["n_docs"] * columns
    n_keywords = meta["n_keywords"]
    keyword_bounds = n_keywords + 1 if n_keywords else 0
    return {
        "terms.offsets": meta["n_terms"] + 1,
        "lists.first_block": n_lists + 1,
        "lists.doc_freq": n_lists,
        "lists.occurrences": n_lists,
        "blocks.data": n_blocks,
        "blocks.widths": n_blocks,
        "blocks.first_impact": n_blocks + 1,
        "impacts.length": sizes["impacts.frequency"],
        "documents.lengths": cells,
        "documents.distinct": cells,
        "documents.ids.offsets": meta["n_docs"] + 1,
        "documents.id_hashes": meta["n_docs"],
        "documents.id_order": meta["n_docs"],
        "documents.statics": meta["n_docs"] * meta["n_statics"],
        "documents.vectors": meta["n_docs"] * meta.get("vector_words", 0),
        "stored.offsets": sizes["stored.first_doc"],
        "keywords.first_value": keyword_bounds,
        "keywords.first_entry": keyword_bounds,
        "forward.offsets": meta["n_docs"] + 1 if meta.get("forward") else 0,
    }


def check_documents(segment: Segment, list_number: int) -> None:
    """Refuse a posting list that would lead a kernel outside its arrays; its positions apart."""
    from rankwell.kernels.postings.checking import check_documents

    array = segment.unverified
    wrong, block = check_documents(
        list_number,
        array("lists.first_block"),
        array("lists.doc_freq"),
        array("lists.occurrences"),
        array("blocks.last_doc"),
        array("blocks.data"),
        array("blocks.widths"),
        array("blocks.first_impact"),
        len(array("impacts.frequency")),
        array("postings"),
        segment.n_docs,
        list_number % segment.lists_per_term < segment.n_streams,
    )
    if wrong:
        raise forged(segment, f"posting list {list_number:,}, block {block:,}: {WRONG_LISTS[wrong]}")


def check_positions(segment: Segment, list_number: int) -> None:
    """Refuse positions that would lead a kernel outside its arrays; the list's documents must be sound."""
    from rankwell.kernels.postings.checking import check_positions

    array = segment.unverified
    wrong, block = check_positions(
        list_number,
        array("lists.first_block"),
        array("lists.doc_freq"),
        array("blocks.data"),
        array("blocks.widths"),
        array("postings"),
    )
    if wrong:
        raise forged(segment, f"posting list {list_number:,}, block {block:,}: {WRONG_LISTS[wrong]}")


def check_array(segment: Segment, name: str, values: np.ndarray) -> None:
    """Refuse an array that is used whole, if a number of it would lead outside another one."""
    if name in ("documents.lengths", "documents.distinct"):
        sound = not len(values) or values.min() >= 0
    elif name == "documents.id_order":
        sound = not len(values) or bool(values.min() >= 0 and values.max() < segment.n_docs)
    elif name in _OFFSETS:
        end = _end_of(segment, name)
        if name.startswith("keywords.") and segment.n_keywords == 0:
            return
        if name == "forward.offsets" and not segment.forward_streams:
            return
        sound = bool(len(values) and values[0] == 0 and values[-1] == end and (values[1:] >= values[:-1]).all())
    else:
        return
    if not sound:
        raise forged(segment, f"{name} has values that are not allowed")


# Offsets that must ascend from 0 to the end of what they point into.
_OFFSETS = {
    "terms.offsets": "terms.text",
    "lists.first_block": "blocks.last_doc",
    "blocks.first_impact": "impacts.frequency",
    "documents.ids.offsets": "documents.ids.text",
    "stored.offsets": "stored.data",
    "stored.first_doc": "",
    "keywords.offsets": "keywords.text",
    "keywords.first_value": "",
    "keywords.first_entry": "keywords.entries",
    "forward.offsets": "forward.data",
}


def _end_of(segment: Segment, name: str) -> int:
    """Where offsets must end."""
    if name == "keywords.first_value":
        return len(segment.unverified("keywords.offsets")) - 1
    return segment.n_docs if name == "stored.first_doc" else len(segment.unverified(_OFFSETS[name]))


def check_range(segment: Segment, name: str, start: int, stop: int) -> None:
    """Refuse offsets that do not name a part of the array `name`."""
    if not 0 <= start <= stop <= len(segment.unverified(name)):
        raise forged(segment, f"elements {start:,} to {stop:,} of {name} do not exist")


def check_everything(segment: Segment) -> None:
    """Refuse a segment of which any list or array would lead outside: a merge reads all of them."""
    for name in segment.names:
        # Every page of the array is checked as well.
        check_array(segment, name, segment[name])
    wrong, list_number, block = wrong_list(segment)
    if wrong:
        raise forged(segment, f"posting list {list_number:,}, block {block:,}: {WRONG_LISTS[wrong]}")


def wrong_list(segment: Segment) -> tuple[int, int, int]:
    """The first list that would lead outside: what is wrong (0: nothing), its number, the block."""
    from rankwell.kernels.postings.checking import check_every_list

    array = segment.unverified
    wrong, list_number, block = check_every_list(
        array("lists.first_block"),
        array("lists.doc_freq"),
        array("lists.occurrences"),
        array("blocks.last_doc"),
        array("blocks.data"),
        array("blocks.widths"),
        array("blocks.first_impact"),
        len(array("impacts.frequency")),
        array("postings"),
        segment.lists_per_term,
        segment.n_streams,
        segment.n_docs,
    )
    return int(wrong), int(list_number), int(block)


def forged(segment: Segment, complaint: str) -> FileFormatError:
    return FileFormatError(
        f"{segment.name} was not written by Rankwell, or by a faulty release: {complaint}. Run rankwell index check, "
        f"and build the index again from documents you trust."
    )
