"""Scores of a data set's rows: one of its features, or a scores file.

A scores file has one number per line, in the order of the data's rows, as LETOR, SVMrank and RankLib tools read them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rankwell.errors import DataError
from rankwell.kernels.disk_arrays import row_blocks

if TYPE_CHECKING:
    from rankwell.data.dataset import RankingDataset

_NAMES_SHOWN = 8


def read_scores(path: str | os.PathLike[str], *, n_docs: int | None = None) -> np.ndarray:
    """The scores in a file, or in stdin where `path` is ``-``.

    Parameters
    ----------
    n_docs : int, optional
        How many there must be: the rows of the data they belong to.

    Returns
    -------
    float64 array (n_docs,)

    Raises
    ------
    DataError
        With the line, if it is not one finite number or if there are too few or too many.
    """
    name = "stdin" if os.fspath(path) == "-" else os.fspath(path)
    content = sys.stdin.buffer.read() if name == "stdin" else Path(path).read_bytes()
    if b"\0" in content:
        raise DataError(f"{name} is not a scores file: it contains binary data. One number per line is expected.")
    lines = content.rstrip().splitlines()
    scores = np.array([_as_score(name, number, line) for number, line in enumerate(lines, start=1)], dtype=np.float64)
    if n_docs is not None and len(scores) != n_docs:
        where = (
            f"it ends after line {len(scores)}"
            if len(scores) < n_docs
            else f"line {n_docs + 1} is the first that is too many"
        )
        raise DataError(
            f"{name} has {len(scores)} scores, the data has {n_docs} rows: {where}. "
            "One score per row is expected, in the data's order."
        )
    return scores


def feature_scores(dataset: RankingDataset, name: str) -> np.ndarray:
    """A feature as a ranking: its values, float64 (n_docs,) in the order of the user's rows; a missing one is last."""
    names = dataset.feature_names
    if names is None:
        raise DataError(f"the data has no feature {name!r}: its features have no names.")
    if name not in names:
        shown = ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
        raise DataError(f"the data has no feature {name!r}. Its features are: {shown}.")
    place = names.index(name)
    values = np.empty(dataset.n_docs)
    for rows in row_blocks(dataset.features):
        column = dataset.features[rows, place]
        values[rows] = (column.toarray() if dataset.is_sparse else column).reshape(-1)
    return dataset.to_user_order(np.where(np.isnan(values), -np.inf, values))


def format_scores(scores: np.ndarray) -> bytes:
    """Scores as the bytes of a scores file: the shortest decimals that read back as the same float64."""
    finite = np.isfinite(scores)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise DataError(f"the score of row {row + 1} is {scores[row]}: a ranking needs finite scores. Train it again.")
    return "".join(f"{score!r}\n" for score in scores.tolist()).encode("ascii")


def _as_score(name: str, number: int, line: bytes) -> float:
    try:
        score = float(line)
    except ValueError:
        score = np.nan
    # float() also takes digits grouped by underscores, which no other tool reads.
    if not np.isfinite(score) or b"_" in line:
        raise DataError(f"{name}, line {number}: expected one finite number, got {_shown(line)}.{_remedy(line)}")
    return score


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", errors="backslashreplace").strip()
    return "an empty line" if not text else repr(text if len(text) <= 40 else f"{text[:40]}...")


def _remedy(line: bytes) -> str:
    columns = line.split()
    if len(columns) > 1:
        return f" There are {len(columns)} columns: keep the one with the score (cut, awk)."
    return ""
