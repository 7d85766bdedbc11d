"""What commands read: data files, and runs (a ranking of the data: a scores file or a ranker file)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rankwell.cli.progress import progress_bar
from rankwell.errors import DataError, ParameterError

if TYPE_CHECKING:
    import numpy as np

    from rankwell.data.dataset import RankingDataset
    from rankwell.rankers.base import Ranker


@dataclass(frozen=True)
class Run:
    """A ranking of the data: the path it came from and its scores, in the order of the data's rows."""

    path: Path
    scores: np.ndarray


def read_data(path: Path, *, n_features: int | None = None, quiet: bool = False) -> RankingDataset:
    """Read a data file (``-`` is stdin) behind a progress bar.

    `n_features` widens a text file whose last features are absent from every row.
    """
    from rankwell.data.files import read

    with progress_bar(f"reading {path}", quiet=quiet):
        return read(path, n_features=n_features)


def read_runs(
    data: Path, runs: Sequence[Path], *, judged: bool = True, quiet: bool = False
) -> tuple[RankingDataset, list[Run]]:
    """Read a data file and the runs over it; rankers are loaded first and evaluated on the data.

    `judged` demands that the data has labels.
    """
    if [str(data), *map(str, runs)].count("-") > 1:
        raise ParameterError("only one of the files can be stdin ('-').")
    rankers = {path: load_ranker(path) for path in runs if is_ranker(path)}
    widths = [ranker.n_features_in_ for ranker in rankers.values()]
    dataset = read_data(data, n_features=max(widths, default=None), quiet=quiet)
    if judged and not dataset.has_labels:
        raise DataError(f"{data} has no labels, so nothing can be measured on it. Give judged data.")
    return dataset, [_run(path, rankers.get(path), dataset, quiet) for path in runs]


def load_ranker(path: Path) -> Ranker:
    """The ranker in a file."""
    from rankwell.rankers.registry import load

    # The system's own words for a file that is absent, a folder or not ours to read; load() would call it damaged.
    path.open("rb").close()
    return load(path)


def is_ranker(path: Path) -> bool:
    """Whether a file is a ranker file, by how it begins. A pipe is not looked into: that would eat its beginning."""
    from rankwell.scoring.ranker_file import is_ranker_file

    return path.is_file() and is_ranker_file(path)


def _run(path: Path, ranker: Ranker | None, dataset: RankingDataset, quiet: bool) -> Run:
    from rankwell.data.scores import read_scores

    if ranker is None:
        return Run(path, read_scores(path, n_docs=dataset.n_docs))
    with progress_bar(f"scoring with {path}", quiet=quiet):
        return Run(path, ranker.predict(dataset))
