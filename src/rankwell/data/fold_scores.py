"""The scores of a collection's test data, fold by fold, in a folder: `Fold1.scores`, `Fold2.scores`, ...

Two such folders rank the same queries, so that two cross-validations can be compared by any metric.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.data.folds import Fold
from rankwell.data.scores import format_scores, read_scores
from rankwell.errors import DataError
from rankwell.streams.whole_files import replace_file

ENDING = ".scores"


def write_fold_scores(folder: str | os.PathLike[str], scores: Mapping[str, np.ndarray]) -> None:
    """Write the scores of each fold's test data, float64 (n_docs,) in the order of its rows, by the fold's name."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, of_fold in scores.items():
        replace_file(Path(folder) / f"{name}{ENDING}", format_scores(of_fold))


def read_fold_scores(folder: str | os.PathLike[str], tests: Mapping[str, RankingDataset]) -> np.ndarray:
    """The scores of all folds' test data, one fold after another, each in the order of its dataset.

    Parameters
    ----------
    folder : as `write_fold_scores` wrote it
    tests : each fold's test data by the fold's name
    """
    parts = []
    for name, test in tests.items():
        path = Path(folder) / f"{name}{ENDING}"
        if not path.is_file():
            raise DataError(
                f"{folder} has no {path.name}. Give a folder that rankwell crossval --out wrote for the same folds."
            )
        scores = read_scores(path, n_docs=test.n_docs)
        parts.append(scores if test.doc_idx is None else scores[test.doc_idx])
    return np.concatenate(parts)


def joined_tests(tests: Mapping[str, RankingDataset]) -> RankingDataset:
    """The queries of all folds' test data, one fold after another."""
    first, *others = tests.values()
    widest = max(test.n_features for test in tests.values())
    whole = first.widened(widest)
    for test in others:
        whole = whole.joined(test.widened(widest))
    return whole


def read_tests(
    folds: list[Fold], *, on_bad_line: str = "error", label: str = "label", qid: str = "qid"
) -> dict[str, RankingDataset]:
    """Each fold's test data by the fold's name; options as in `rankwell.read`."""
    from rankwell.data.files import read

    return {fold.name: read(fold.test, on_bad_line=on_bad_line, label=label, qid=qid) for fold in folds}
