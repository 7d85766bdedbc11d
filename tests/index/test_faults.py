"""Every write, rename and forcing to disk of a commit goes wrong once; what is found afterwards is never a mix."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.index.fragile_storage import (
    CountingStorage,
    Crash,
    CrashingStorage,
    FailingStorage,
    FullStorage,
)
from tests.index.model import Content, content_of, expected_content

from rankwell import RankwellError
from rankwell.index.checking import check_index
from rankwell.index.commits.storage import Storage
from rankwell.index.reader import Index
from rankwell.index.writer import IndexWriter

FIRST = [{"id": f"a{number}", "title": f"title {number}", "body": f"old text{number % 3}"} for number in range(6)]
SECOND = [{"id": f"b{number}", "body": f"new text{number}", "year": 2000 + number} for number in range(4)]
REPLACED = {"id": "a5", "title": "changed"}
EXTRA = {"id": "extra", "body": "added after the fault"}

BEFORE = expected_content(FIRST)
AFTER = expected_content([*FIRST[2:5], *SECOND, REPLACED])


def first_commit(path: Path, storage: Storage) -> None:
    with IndexWriter(path, storage=storage) as writer:
        writer.add(FIRST)
        writer.commit()


def second_commit(path: Path, storage: Storage) -> None:
    """Adds, replaces and deletes; three segments become one by a merge of its own generation."""
    with IndexWriter(path, storage=storage, max_segments=2) as writer:
        writer.add(SECOND[:2])
        writer.delete(["a0", "a1"])
        writer.add([*SECOND[2:], REPLACED])
        writer.commit()


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with the first commit."""
    path = tmp_path_factory.mktemp("committed") / "index"
    first_commit(path, CountingStorage())
    return path


def operations_of_second_commit(committed: Path, tmp_path: Path) -> int:
    storage = CountingStorage()
    path = tmp_path / "counted"
    shutil.copytree(committed, path)
    second_commit(path, storage)
    assert content_of(Index.open(path)) == AFTER
    assert len(Index.open(path).segments) == 1
    assert sum(line == "rename manifest" for line in storage.log) == 2
    return storage.n_operations


def assert_whole(path: Path, *allowed: Content) -> None:
    """The index is one of the allowed ones and sound, and the next writer finds it in order."""
    found = content_of(Index.open(path))
    assert found in allowed
    report = check_index(path)
    assert report.problems == []
    with IndexWriter(path, storage=CountingStorage()) as writer:
        assert check_index(path).remains == []
        writer.add([EXTRA])
        writer.commit()
    assert content_of(Index.open(path)) == found | expected_content([EXTRA])


def error_of(action: Callable[..., object], *arguments: object) -> Exception | None:
    """The error that `action` raises, of those it may raise."""
    try:
        action(*arguments)
    except (OSError, RankwellError) as error:
        return error
    return None


def test_an_operation_that_fails(committed: Path, tmp_path: Path) -> None:
    n_operations = operations_of_second_commit(committed, tmp_path)
    outcomes = set()
    for fails_at in range(1, n_operations + 1):
        path = tmp_path / f"fails{fails_at}"
        shutil.copytree(committed, path)
        storage = FailingStorage(fails_at)
        failed = error_of(second_commit, path, storage) is not None
        found = content_of(Index.open(path))
        if not failed:
            assert found == AFTER, storage.log[fails_at - 1]
        if storage.log[fails_at - 1].startswith("remove"):
            assert not failed
        outcomes.add((failed, found == AFTER))
        assert_whole(path, BEFORE, AFTER)
    # Failed and nothing changed; failed after the commit (the folder, the merge); only removing failed.
    assert outcomes == {(True, False), (True, True), (False, True)}


def test_the_same_writer_goes_on_after_a_failure(committed: Path, tmp_path: Path) -> None:
    n_operations = operations_of_second_commit(committed, tmp_path)
    for fails_at in range(1, n_operations + 1):
        path = tmp_path / f"fails{fails_at}"
        shutil.copytree(committed, path)
        storage = FailingStorage(fails_at)
        try:
            writer = IndexWriter(path, storage=storage, max_segments=2)
        except OSError:
            continue
        with writer:
            try:
                writer.add(SECOND)
                writer.delete(["a0"])
                writer.commit()
            except (OSError, RankwellError):
                writer.rollback()
            storage.fails_at = 0
            writer.add([EXTRA])
            writer.commit()
        added = expected_content([EXTRA])
        assert content_of(Index.open(path)) in (BEFORE | added, expected_content([*FIRST[1:], *SECOND]) | added)
        assert check_index(path).problems == []


def test_a_disk_that_is_full(committed: Path, tmp_path: Path) -> None:
    n_operations = operations_of_second_commit(committed, tmp_path)
    outcomes = set()
    for full_at in range(1, n_operations + 1):
        path = tmp_path / f"full{full_at}"
        shutil.copytree(committed, path)
        error = error_of(second_commit, path, FullStorage(full_at))
        if isinstance(error, OSError):
            assert "No space left on device" in str(error)
            assert str(path) in str(error.filename)
        elif error is not None:
            assert "is committed, but its segments could not be merged" in str(error)
            assert content_of(Index.open(path)) == AFTER
        outcomes.add(type(error))
        # What the failed commit had written does not fill the disk further.
        assert check_index(path).remains == []
        assert_whole(path, BEFORE, AFTER)
    assert outcomes == {OSError, RankwellError, type(None)}


@pytest.mark.parametrize("keeps", [0.0, 0.5, 1.0])
def test_a_crash_at_every_operation(committed: Path, tmp_path: Path, keeps: float) -> None:
    n_operations = operations_of_second_commit(committed, tmp_path)
    found = set()
    for crashes_at in range(1, n_operations + 1):
        for seed in range(1 if keeps in (0, 1) else 2):
            path = tmp_path / f"crash{crashes_at}-{seed}"
            shutil.copytree(committed, path)
            storage = CrashingStorage(crashes_at)
            storage.adopt(path)
            with pytest.raises(Crash):
                second_commit(path, storage)
            restarted = tmp_path / f"restarted{crashes_at}-{seed}"
            storage.survivors(restarted, random.Random(seed), keeps=keeps)
            found.add(content_of(Index.open(restarted)) == AFTER)
            assert_whole(restarted, BEFORE, AFTER)
    assert found == {False, True}


def test_a_crash_of_the_first_commit_leaves_an_index_or_none(tmp_path: Path) -> None:
    storage = CountingStorage()
    first_commit(tmp_path / "counted", storage)
    outcomes = set()
    for crashes_at in range(1, storage.n_operations + 1):
        for seed in range(2):
            storage = CrashingStorage(crashes_at)
            with pytest.raises(Crash):
                first_commit(tmp_path / f"crash{crashes_at}-{seed}", storage)
            restarted = tmp_path / f"restarted{crashes_at}-{seed}"
            storage.survivors(restarted, random.Random(seed), keeps=0.5)
            error = error_of(Index.open, restarted)
            outcomes.add(error is None)
            if error is not None:
                assert "is not an index" in str(error)
                first_commit(restarted, CountingStorage())
            assert_whole(restarted, BEFORE)
    assert outcomes == {True, False}


def test_a_crash_of_the_writer_that_cleans_up_after_a_crash(committed: Path, tmp_path: Path) -> None:
    """The new manifest may be visible and not yet safe: the files of the old one must outlive the cleaning."""
    n_operations = operations_of_second_commit(committed, tmp_path)
    for crashes_at in range(1, n_operations + 1):
        path = tmp_path / f"crash{crashes_at}"
        shutil.copytree(committed, path)
        storage = CrashingStorage(crashes_at)
        storage.adopt(path)
        with pytest.raises(Crash):
            second_commit(path, storage)
        # The process died, the machine did not: the next writer sees everything, and then the power fails.
        storage.is_dead, storage.crashes_at = False, None
        IndexWriter(path, storage=storage).close()
        for keeps in (0.0, 0.5):
            restarted = tmp_path / f"restarted{crashes_at}-{keeps}"
            storage.survivors(restarted, random.Random(crashes_at), keeps=keeps)
            assert_whole(restarted, BEFORE, AFTER)


def test_every_file_is_forced_to_disk_before_the_manifest_names_it(committed: Path, tmp_path: Path) -> None:
    path = tmp_path / "index"
    shutil.copytree(committed, path)
    storage = CountingStorage()
    second_commit(path, storage)
    log = storage.log[: storage.log.index("rename manifest")]
    created = [line.removeprefix("create ") for line in log if line.startswith("create ")]
    assert {name.split(".")[-1] for name in created} >= {"arrays", "table", "live-2", "new"}
    for name in created:
        last_write = max(number for number, line in enumerate(log) if line in (f"create {name}", f"append {name}"))
        assert f"sync {name}" in log[last_write:]
    last_file = max(number for number, line in enumerate(log) if line.startswith("create segment"))
    assert "sync_folder index" in log[last_file : log.index("create manifest.new")]
    assert storage.log[len(log) + 1] == "sync_folder index"
