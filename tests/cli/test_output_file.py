"""What a command writes never replaces what it reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

import rankwell as library
from rankwell.cli.output_file import check_output
from rankwell.errors import DataError
from rankwell.index.commits.manifest import MANIFEST_NAME


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("train least-squares train.txt --out train.txt", "--out train.txt would replace train.txt"),
        ("train least-squares train.txt --vali vali.txt --out ./vali.txt", "--out vali.txt would replace vali.txt"),
        ("train rankboost train.txt --init model.rank --out model.rank", "would replace model.rank"),
        ("predict model.rank test.txt --out model.rank", "--out model.rank would replace model.rank"),
        ("predict model.rank test.txt --out test.txt", "--out test.txt would replace test.txt"),
        ("import model.rank model.rank", "OUT model.rank would replace model.rank"),
        ("convert test.txt test.txt", "DST test.txt would replace test.txt"),
        ("features idx queries.tsv qrels --out qrels", "--out qrels would replace qrels"),
        ("features idx queries.tsv qrels --out queries.tsv", "--out queries.tsv would replace queries.tsv"),
        ("features idx queries.tsv qrels --out idx/data.txt", "--out idx/data.txt would replace idx"),
        ("features qrels --from-log log --out log", "--out log would replace log"),
    ],
)
def test_a_command_does_not_overwrite_its_input(rankwell: Command, files: Path, arguments: str, said: str) -> None:
    Path("idx").mkdir()
    Path("idx", MANIFEST_NAME).touch()
    for name in ("queries.tsv", "qrels", "log"):
        Path(name).write_text(name)
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    outcome = rankwell(*arguments.split())
    assert outcome.exit_code == 1
    assert f"{said}, which this command reads. Choose another path.\n" in outcome.stderr
    assert {path: path.read_bytes() for path in files.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("link", ["symbolic", "hard"])
def test_links_are_followed(files: Path, link: str) -> None:
    if link == "symbolic":
        Path("other.txt").symlink_to("train.txt")
    else:
        Path("other.txt").hardlink_to("train.txt")
    with pytest.raises(DataError, match=r"--out other\.txt would replace train\.txt"):
        check_output(Path("other.txt"), inputs=[None, Path("vali.txt"), Path("train.txt")])
    with pytest.raises(DataError, match=r"--out train\.txt would replace other\.txt"):
        check_output(Path("train.txt"), inputs=[Path("other.txt")])


@pytest.mark.parametrize(
    ("command", "created"),
    [
        ("train least-squares train.txt --out {}", "model.rank"),
        ("predict model.rank test.txt --out {}", "scores.txt"),
        ("export model.rank --to c --out {}", "model.c"),
        ("convert test.txt {}", "test.txt.gz"),
        ("convert test.txt {}", "test.parquet"),
        ("ranker show model.rank --out {}", "model.yaml"),
        ("import linear.txt {}", "linear.rank"),
        ("features qrels --from-log log --out {}", "train.txt"),
    ],
)
def test_missing_folders_are_created(rankwell: Command, files: Path, command: str, created: str) -> None:
    Path("linear.txt").write_text("## Coordinate Ascent\n1:0.5 2:0.25\n")
    Path("qrels").write_text("q 0 d1 1\nq 0 d2 0\n")
    features = library.FeatureSet(["length.body"])
    with library.FeatureLog("log", features) as log:
        log.append("q", ["d1", "d2"], np.ones((2, 1), np.float32))
    out = Path("new", "folder", created)
    outcome = rankwell(*command.format(out).split())
    assert outcome.exit_code == 0, outcome.stderr
    assert [path.name for path in out.parent.iterdir()] == [created]


def test_what_is_not_the_input_may_be_written(files: Path) -> None:
    Path("copy.txt").write_bytes(Path("train.txt").read_bytes())
    for out in ("copy.txt", "new.txt", "-", "/dev/null"):
        check_output(Path(out), inputs=[Path("train.txt"), Path("absent.txt"), Path("-"), Path("/dev/null"), None])
