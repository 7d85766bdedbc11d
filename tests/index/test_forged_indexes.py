"""Forged indexes with right checksums: refused, or searched within bounds; never a crash.

They are used in processes of their own, so that a crash is a failed test and not the end of the tests.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import CHECKOUT
from tests.index.forged_indexes import Forgery, make_index, use

from rankwell import FileFormatError
from rankwell.index.reader import Index
from rankwell.index.writer import IndexWriter

LARGE = 1_000
FIRST, SECOND = "segment-00000001", "segment-00000002"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "index"
    make_index(path)
    return path


def fuzz(source: Path, folder: Path, seed: int, count: int) -> int:
    """How many of `count` forged indexes were accepted by everything that a user does with them."""
    command = [sys.executable, "-m", "tests.index.forged_indexes", str(source), str(folder), str(seed), "0", str(count)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT, timeout=3600, check=False)
    last = run.stdout.splitlines()[-1] if run.stdout else "nothing"
    if run.returncode < 0:
        pytest.fail(f"{signal.Signals(-run.returncode).name} at {last}")
    assert run.returncode == 0, f"{last}\n{run.stderr[-3000:]}"
    return int(last.split()[0])


def test_forged_indexes(source: Path, tmp_path: Path) -> None:
    assert 0 < fuzz(source, tmp_path / "forged", seed=1, count=40) < 40


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_forged_indexes(source: Path, tmp_path: Path, seed: int) -> None:
    assert fuzz(source, tmp_path / "forged", seed, LARGE // 4) > 0


def test_the_forgery_itself_is_sound(source: Path, tmp_path: Path) -> None:
    """An index that was written anew without a change is accepted: what is refused is refused for its changes."""
    Forgery(source).write(tmp_path / "index")
    assert use(tmp_path / "index")


def forged(source: Path, path: Path, name: str, place: int, value: int) -> Path:
    forgery = Forgery(source)
    forgery.array(FIRST, name)[place] = value
    forgery.write(path)
    return path


def common_list(source: Path) -> tuple[int, int]:
    """The list of the word that every document has, and its first block, in the first segment."""
    segment = Index.open(source).segments[0]
    number = segment.term_number(b"common") * segment.lists_per_term + segment.lists_per_term - 1
    return number, int(segment["lists.first_block"][number])


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("blocks.data", 2**40, "elements|do not end where"),
        ("blocks.data", -1, "elements|do not end where"),
        ("blocks.widths", 255, "do not end where"),
        ("blocks.widths", 2**16 - 1, "unknown widths"),
        ("blocks.last_doc", 399, "recorded|do not ascend|names a document"),
        ("blocks.last_doc", -(2**31), "recorded"),
        ("blocks.first_impact", 2**31 - 1, "elements|impacts are outside"),
    ],
)
def test_a_block_that_leads_outside_is_refused(
    source: Path, tmp_path: Path, name: str, value: int, complaint: str
) -> None:
    _, block = common_list(source)
    path = forged(source, tmp_path / "index", name, block, value)
    with pytest.raises(FileFormatError, match=rf"{FIRST} was not written by Rankwell.*({complaint})"):
        Index.open(path).search("common")


@pytest.mark.parametrize(
    ("name", "value"), [("lists.doc_freq", 2**31 - 1), ("lists.doc_freq", -1), ("lists.occurrences", 3)]
)
def test_a_list_that_leads_outside_is_refused(source: Path, tmp_path: Path, name: str, value: int) -> None:
    number, _ = common_list(source)
    path = forged(source, tmp_path / "index", name, number, value)
    with pytest.raises(FileFormatError, match=f"{FIRST} was not written by Rankwell"):
        Index.open(path).search("common")


def test_documents_that_do_not_exist_are_refused(source: Path, tmp_path: Path) -> None:
    """The bytes of the third block are all distances between documents, as large as fit."""
    segment = Index.open(source).segments[0]
    number, block = common_list(source)
    block += 2
    forgery = Forgery(source)
    start, stop = segment["blocks.data"][block : block + 2].tolist()
    forgery.array(FIRST, "postings")[start:stop] = 255
    width = (stop - start) // 16
    assert segment["lists.doc_freq"][number] > 3 * 128
    assert (stop - start) % 16 == 0
    forgery.array(FIRST, "blocks.widths")[block] = width
    forgery.write(tmp_path / "index")
    with pytest.raises(FileFormatError, match="it names a document that the segment does not have"):
        Index.open(tmp_path / "index").search("common")


def test_a_keyword_that_is_not_text_is_refused(source: Path, tmp_path: Path) -> None:
    path = forged(source, tmp_path / "index", "keywords.text", 0, 255)
    with pytest.raises(FileFormatError, match="a value of keyword field 0 is not text"):
        Index.open(path).search("common", facets=["kind"])


def test_a_date_that_does_not_exist_is_refused(source: Path, tmp_path: Path) -> None:
    forgery = Forgery(source)
    forgery.array(FIRST, "documents.statics")[:] = 1e300
    forgery.write(tmp_path / "index")
    with pytest.raises(FileFormatError, match="field 'day' has a date that does not exist"):
        Index.open(tmp_path / "index").search("common", facets=["day"])


def change_table(source: Path, path: Path, change: Any) -> Path:
    forgery = Forgery(source)
    change(forgery)
    forgery.write(path)
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda forgery: forgery.tables[FIRST]["meta"].update(n_docs=2**40),
        lambda forgery: forgery.tables[FIRST]["meta"].update(n_terms=-1),
        lambda forgery: forgery.tables[FIRST]["meta"].update(n_streams=1),
        lambda forgery: forgery.tables[FIRST]["meta"].update(tokens=[-1, 0, 0]),
        lambda forgery: forgery.tables[FIRST]["arrays"].update(postings=["arrays", 0, 2**40]),
        lambda forgery: forgery.tables[FIRST]["arrays"].update(postings=["arrays", 7, 8]),
        lambda forgery: forgery.tables[FIRST]["arrays"].update({"documents.lengths": ["arrays", 0, 1]}),
        lambda forgery: forgery.tables[FIRST]["files"].update({"../../secret": 0}),
        lambda forgery: forgery.manifest["segments"][0].update(name="../secret"),
        lambda forgery: forgery.manifest["segments"][0]["deletions"].update(file="../secret"),
        lambda forgery: forgery.manifest["schema"].update(streams="ab"),
        lambda forgery: forgery.manifest["schema"].update(streams=["title"]),
        lambda forgery: forgery.manifest.update(analysis=[]),
        lambda forgery: forgery.manifest.update(generation="1"),
        lambda forgery: forgery.manifest.update(next_segment=1),
    ],
)
def test_tables_and_manifests_that_lead_outside_are_refused(source: Path, tmp_path: Path, change: Any) -> None:
    path = change_table(source, tmp_path / "index", change)
    with pytest.raises(FileFormatError):
        Index.open(path)
    with pytest.raises(FileFormatError):
        IndexWriter(path)


def test_a_writer_refuses_an_index_with_a_damaged_page(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "index"
    shutil.copytree(source, path)
    before = {file.name for file in path.iterdir()}
    file = path / f"{SECOND}.arrays"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(FileFormatError, match=rf"{SECOND}\.arrays was altered after it was written"):
        IndexWriter(path)
    assert {file.name for file in path.iterdir()} == before


def test_a_merge_refuses_a_forged_segment_and_keeps_the_index(source: Path, tmp_path: Path) -> None:
    _, block = common_list(source)
    path = forged(source, tmp_path / "index", "blocks.widths", block, 3)
    with pytest.raises(FileFormatError, match=f"{FIRST} was not written by Rankwell"), IndexWriter(path) as writer:
        writer.merge()
    np.testing.assert_array_equal(Index.open(path).bases, Index.open(source).bases)
