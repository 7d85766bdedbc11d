"""A writer is killed (SIGKILL) again and again, wherever it happens to be; each time the index is whole."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.index.model import Content, content_of, expected_content

from rankwell.index.checking import check_index
from rankwell.index.reader import Index
from rankwell.index.writer import IndexWriter

STEPS = 100_000
KEPT = 5
BATCH = 4


def documents_of(step: int) -> list[dict[str, object]]:
    """What step `step` adds: some documents, and one that counts the steps and replaces the last."""
    added = [{"id": f"{step}-{n}", "body": f"step {step} document {n}"} for n in range(BATCH)]
    return [*added, {"id": "counter", "steps": step}]


def content_after(step: int) -> Content:
    """Documents of the last steps, and the counter."""
    kept = [one for number in range(max(0, step - KEPT + 1), step + 1) for one in documents_of(number)[:BATCH]]
    return expected_content([*kept, documents_of(step)[-1]])


def work(path: str) -> None:
    """Step after step, a commit each, from where the index is; a line for each begun and each done."""
    with IndexWriter(path, max_segments=3) as writer:
        first = 0
        if writer.generation:
            index = Index.open(path)
            first = int(index.stored(index.find("counter"))["steps"]) + 1
        for step in range(first, STEPS):
            print(step, "begun", flush=True)
            writer.add(documents_of(step))
            writer.delete([f"{step - KEPT}-{n}" for n in range(BATCH)])
            writer.commit()
            print(step, "done", flush=True)


def killed_at_some_point(path: Path, n_lines: int, seconds: float) -> tuple[int, int]:
    """Start a writer, kill it so long after it has said so many lines; the last steps begun and done (-1: none)."""
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
    code += f"from tests.index.test_kill import work; work({str(path)!r})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(n_lines)]
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.readlines()
    assert child.returncode == -signal.SIGKILL
    steps = [line.split() for line in lines if line.endswith("\n")]
    begun = max((int(step) for step, what in steps if what == "begun"), default=-1)
    done = max((int(step) for step, what in steps if what == "done"), default=-1)
    assert begun >= 0
    return begun, done


def kill_again_and_again(path: Path, times: int, seed: int) -> None:
    chance = random.Random(seed)
    last = -1
    for _ in range(times):
        begun, done = killed_at_some_point(path, chance.randint(1, 20), chance.uniform(0, 0.03))
        if not (path / "manifest").exists():
            assert done == -1
            continue
        index = Index.open(path)
        step = int(index.stored(index.find("counter"))["steps"])
        assert max(done, last) <= step <= begun
        assert content_of(index) == content_after(step)
        assert check_index(path).problems == []
        last = step
    assert last > 0


def test_killed_writers_leave_a_whole_index(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "index", times=3, seed=1)


@pytest.mark.slow
def test_killed_writers_leave_a_whole_index_many_times(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "index", times=60, seed=2)
