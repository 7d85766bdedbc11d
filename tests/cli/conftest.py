"""A small judged collection as files, a ranker trained on it, and a way to run commands on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rankwell.cli.app import app
from rankwell.data.dataset import RankingDataset
from rankwell.rankers.least_squares import LeastSquares

N_FEATURES = 4
N_QUERIES = 8
QUERY_SIZE = 6

Command = Callable[..., "Outcome"]


class Outcome:
    """The outcome of a command."""

    def __init__(self, exit_code: int, stdout: str, stderr: str) -> None:
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr


def make_part(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels and query ids; the first feature says a good deal about the label."""
    generator = np.random.default_rng(seed)
    features = generator.standard_normal((N_QUERIES * QUERY_SIZE, N_FEATURES)).round(3)
    labels = np.clip(np.round(features[:, 0] + 0.3 * generator.standard_normal(len(features))), 0, 2)
    return features, labels, np.repeat(100 * seed + np.arange(N_QUERIES), QUERY_SIZE)


def write_letor(path: Path, features: np.ndarray, labels: np.ndarray, qid: np.ndarray) -> None:
    """LETOR text, with a document's name after each row."""
    with open(path, "w") as stream:
        for row, (values, label, query) in enumerate(zip(features, labels, qid, strict=True)):
            pairs = " ".join(f"{number}:{value}" for number, value in enumerate(values, start=1))
            stream.write(f"{label:g} qid:{query} {pairs} #docid = D{row}\n")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files, made once."""
    folder = tmp_path_factory.mktemp("collection")
    for seed, part in enumerate(("train", "vali", "test"), start=1):
        write_letor(folder / f"{part}.txt", *make_part(seed))
    features, labels, qid = make_part(1)
    ranker = LeastSquares(normalize="standard").fit(RankingDataset(features, labels, qid=qid))
    ranker.save(folder / "model.rank")
    scores = ranker.predict(make_part(3)[0])
    (folder / "scores.txt").write_text("".join(f"{score!r}\n" for score in scores.tolist()))
    # Compiles what most commands use, so that what the tests read on stderr does not depend on the kernels' cache.
    CliRunner().invoke(app, ["evaluate", str(folder / "test.txt"), str(folder / "model.rank")])
    return folder


@pytest.fixture
def files(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own with train.txt, vali.txt, test.txt, model.rank and scores.txt; it is the current one."""
    for source in made.iterdir():
        (tmp_path / source.name).write_bytes(source.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rankwell() -> Command:
    """Run a command in this process: `rankwell("evaluate", "test.txt", "scores.txt")`."""

    def run(*arguments: str, stdin: str | bytes | None = None) -> Outcome:
        result = CliRunner().invoke(app, list(arguments), input=stdin, prog_name="rankwell")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run
