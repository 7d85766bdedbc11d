"""Stored fields are read by the block, and blocks that were read last are kept."""

import numpy as np
import pytest

from rankwell import Index, IndexWriter
from rankwell.index.segments import stored_fields


@pytest.fixture
def index(tmp_path, monkeypatch):
    """40 documents in blocks of a few, in two segments."""
    monkeypatch.setattr(stored_fields, "BLOCK_BYTES", 100)
    with IndexWriter(tmp_path / "index") as writer:
        for start in (0, 20):
            writer.add([{"id": f"d{number}", "text": f"word{number}"} for number in range(start, start + 20)])
            writer.commit()
    return Index.open(tmp_path / "index")


@pytest.fixture
def decoded(monkeypatch):
    """The blocks that are decompressed."""
    blocks, decode = [], stored_fields.decode_stored
    monkeypatch.setattr(stored_fields, "decode_stored", lambda block: blocks.append(block) or decode(block))
    return blocks


def fields(number):
    return {"id": f"d{number}", "text": f"word{number}"}


def test_a_block_is_decompressed_once(index, decoded):
    assert [index.stored(doc) for doc in range(40)] == [fields(number) for number in range(40)]
    n_blocks = len(decoded)
    assert 8 <= n_blocks < 40
    assert [index.stored(doc) for doc in reversed(range(40))] == [fields(number) for number in reversed(range(40))]
    assert len(decoded) == n_blocks
    # What a caller does with a document does not change it.
    index.stored(3)["text"] = "other"
    assert index.stored(3) == fields(3)


def test_the_blocks_read_last_are_kept(index, decoded, monkeypatch):
    monkeypatch.setattr(stored_fields, "_BLOCKS_KEPT", 2)
    rng = np.random.default_rng(0)
    for doc in rng.integers(40, size=200).tolist():
        assert index.stored(doc) == fields(doc)
    assert len(index._stored_blocks._kept) == 2
    assert len(decoded) > 40


def test_blocks_of_long_documents_are_not_kept(index, decoded, monkeypatch):
    monkeypatch.setattr(stored_fields, "_LARGEST_KEPT", 10)
    assert [index.stored(0), index.stored(0)] == [fields(0)] * 2
    assert len(decoded) == 2
