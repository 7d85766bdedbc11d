"""The names of features in the first line of text."""

from pathlib import Path

import numpy as np
import pytest

from rankwell.data.dataset import RankingDataset
from rankwell.data.files import read, write
from rankwell.errors import DataError


def test_names_tell_how_many_features_there_are(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(b'# features: ["a", "b # c", "d"]\n1 qid:7 1:2 #doc\n')
    dataset = read(path)
    assert dataset.feature_names == ("a", "b # c", "d")
    assert dataset.features.tolist() == [[2, 0, 0]]
    assert list(dataset.comments or []) == ["doc"]


def test_many_and_long_names_come_back(tmp_path: Path) -> None:
    names = [f"feature {number} {'x' * 200}" for number in range(300)]
    write(RankingDataset(np.ones((2, 300)), [0, 1], feature_names=names), tmp_path / "data.txt")
    assert list(read(tmp_path / "data.txt").feature_names or ()) == names


def test_another_comment_is_not_a_header(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(b"# features: none\n1 qid:7 1:2\n")
    assert read(path).feature_names is None


@pytest.mark.parametrize(
    "line", [b'# features: ["a", "a"]', b"# features: [1]", b'# features: ["a"', b"# features: []"]
)
def test_a_bad_header_is_refused(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(line + b"\n1 qid:7 1:2\n")
    with pytest.raises(DataError, match="line 1: the names of the features must be a JSON list"):
        read(path)


def test_an_index_beyond_the_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(b'# features: ["a"]\n1 qid:7 2:5\n')
    with pytest.raises(DataError, match="a feature index of at most 1"):
        read(path)
    with pytest.raises(DataError, match="names 1 features, not n_features=3"):
        read(path, n_features=3)


@pytest.mark.parametrize("depth", [200, 100_000])
def test_names_that_are_nested_deep_are_an_error(tmp_path, depth):
    path = tmp_path / "nested.txt"
    path.write_text(f"# features: {'[' * depth}{']' * depth}\n1 qid:1 1:2\n")
    with pytest.raises(DataError, match=r"nested\.txt, line 1: the names of the features must be a JSON list"):
        read(path)
