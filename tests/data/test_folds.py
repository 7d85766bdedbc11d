"""Folds: LETOR's layout, in any format, with every part there."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rankwell.data.folds import find_folds, read_fold
from rankwell.errors import DataError

ROWS = "1 qid:1 1:0.5 2:1\n0 qid:1 1:0.25\n"


def make_fold(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(ROWS)
    return folder


def test_folds_come_by_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        make_fold(tmp_path / f"Fold{number}", "train.txt", "vali.txt", "test.txt")
    (tmp_path / "README.txt").write_text("not a fold")
    (tmp_path / "Folder").mkdir()
    (tmp_path / "Fold3").write_text("a file, not a fold")
    folds = find_folds(tmp_path)
    assert [fold.name for fold in folds] == ["Fold1", "Fold2", "Fold10"]
    assert dict(folds[1].files()) == {
        "train": tmp_path / "Fold2" / "train.txt",
        "validation": tmp_path / "Fold2" / "vali.txt",
        "test": tmp_path / "Fold2" / "test.txt",
    }


@pytest.mark.parametrize("name", ["fold1", "Fold_1", "FOLD-1", "fold 1"])
def test_spellings_of_a_fold(tmp_path: Path, name: str) -> None:
    make_fold(tmp_path / name, "train.txt", "vali.txt", "test.txt")
    assert [fold.name for fold in find_folds(tmp_path)] == [name]


def test_a_single_fold_may_be_given_itself(tmp_path: Path) -> None:
    make_fold(tmp_path / "MSLR", "train.txt", "vali.txt", "test.txt")
    assert [fold.name for fold in find_folds(tmp_path / "MSLR")] == ["MSLR"]


def test_the_fastest_format_is_taken(tmp_path: Path) -> None:
    names = "train.txt", "train.feather", "train.parquet", "valid.txt.gz", "validation.csv", "test.txt.zst", "test.txt"
    make_fold(tmp_path / "Fold1", *names)
    (fold,) = find_folds(tmp_path)
    assert [path.name for _, path in fold.files()] == ["train.feather", "validation.csv", "test.txt"]


def test_all_parts_are_read_with_the_same_features(tmp_path: Path) -> None:
    folder = make_fold(tmp_path / "Fold1", "train.txt", "vali.txt")
    with gzip.open(folder / "test.txt.gz", "wt") as stream:
        stream.write("2 qid:7 3:4\n")
    data = read_fold(find_folds(tmp_path)[0])
    assert data.name == "Fold1"
    assert [part.n_features for part in (data.train, data.validation, data.test)] == [3, 3, 3]
    assert data.train.features.tolist() == [[0.5, 1.0, 0.0], [0.25, 0.0, 0.0]]
    assert data.test.features.tolist() == [[0.0, 0.0, 4.0]]
    assert data.test.labels.tolist() == [2.0]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("vali.txt", "test.txt"), "Fold1 has no train data. Expected train.txt"),
        (("train.txt", "test.txt"), "has no validation data. Expected vali.txt or valid.txt or validation.txt"),
        (("train.txt", "vali.txt"), "has no test data. Expected test.txt"),
        ((), "has no train data"),
    ],
)
def test_a_part_that_is_missing_is_named(tmp_path: Path, names: tuple[str, ...], message: str) -> None:
    make_fold(tmp_path / "Fold1", *names)
    with pytest.raises(DataError) as raised:
        find_folds(tmp_path)
    assert message in str(raised.value)


def test_no_folder_and_no_folds(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="absent is not a folder"):
        find_folds(tmp_path / "absent")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file is a file, not a folder"):
        find_folds(tmp_path / "file")
    with pytest.raises(DataError, match=r"has no folds. Expected .*Fold1/train.txt"):
        find_folds(tmp_path)
