"""What commands read: data files and ranker files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rankwell.cli.console import say
from rankwell.cli.progress import progress_bar
from rankwell.errors import DataError, FileFormatError

if TYPE_CHECKING:
    import numpy as np

    from rankwell.data.dataset import RankingDataset
    from rankwell.rankers.base import Ranker


@dataclass(frozen=True)
class Reading:
    """How data files are read: the treatment of bad lines, the columns of labels and query ids, and the limit of memory
    with the folder of temporary files."""

    skip_bad_lines: bool = False
    label: str = "label"
    qid: str = "qid"
    memory: str | None = None
    scratch: Path | None = None

    @property
    def on_bad_line(self) -> str:
        return "skip" if self.skip_bad_lines else "error"


def read_data(path: Path, reading: Reading, *, quiet: bool = False) -> RankingDataset:
    """Read a data file (``-`` is stdin) with a progress bar."""
    from rankwell.data.files import read

    check_readable(path)
    if is_ranker(path):
        raise DataError(f"{path} is a ranker file, but a data file is needed here. Check the order of the files.")
    with progress_bar(f"reading {path}", quiet=quiet) as bar:
        return read(
            path,
            on_bad_line=reading.on_bad_line,
            label=reading.label,
            qid=reading.qid,
            memory=reading.memory,
            scratch=reading.scratch,
            progress=bar.bytes_read,
        )


def note_one_query(path: Path, dataset: RankingDataset, *, quiet: bool = False) -> None:
    """Note that all judged rows count as one query: a text file without query ids looks the same."""
    if dataset.n_queries == 1 and dataset.n_docs > 1:
        say(
            f"note: all {dataset.n_docs} rows of {path} are one query; rows of several queries need qid:ID", quiet=quiet
        )


def score(
    model: Path,
    ranker: Ranker,
    data: Path,
    dataset: RankingDataset,
    *,
    n_rounds: int | None = None,
    device: str = "cpu",
    quiet: bool = False,
) -> np.ndarray:
    """The scores of `ranker` (from the file `model`) for `dataset` (from `data`), in the order of the data's rows."""
    from rankwell.rankers.imported import ImportedRanker

    wide = widened_for(model, ranker, data, dataset)
    if wide.n_features != ranker.n_features_in_:
        remedy = "Use data with the features that the ranker was trained on."
        if isinstance(ranker, ImportedRanker):
            remedy += f" If this is such data, import the model again with --features {data}."
        raise DataError(
            f"{model} reads {ranker.n_features_in_} features, {data} has {wide.n_features}: they do not fit "
            f"together. {remedy}"
        )
    with progress_bar(f"scoring {data} with {model}", quiet=quiet):
        return ranker.predict(wide, n_rounds=n_rounds, device=device)


def widened_for(model: Path, ranker: Ranker, data: Path, dataset: RankingDataset) -> RankingDataset:
    """The dataset with its absent last features as 0, and a note that says so."""
    from rankwell.rankers.imported import ImportedRanker
    from rankwell.scoring.imports.first_column import may_be_one_off

    wide = dataset.widened(ranker.n_features_in_)
    absent = wide.n_features - dataset.n_features
    if not absent:
        return wide
    filled = f"{data} has {dataset.n_features} features, {model} reads {wide.n_features}: the last {absent} count as 0"
    if isinstance(ranker, ImportedRanker) and dataset.first_index == 1 and may_be_one_off(ranker.description_):
        say(
            f"warning: {filled}. {model} does not read the first feature: if LightGBM or XGBoost trained it from text "
            "that numbers features from 1, features are read one column off and the scores are wrong: import it again "
            "with --first-index 1"
        )
    else:
        say(f"note: {filled}")
    return wide


def load_ranker(path: Path) -> Ranker:
    """The ranker in a file."""
    from rankwell.rankers.registry import load
    from rankwell.scoring.imports.reader import model_format

    check_readable(path)
    if path.is_file() and not is_ranker(path):
        found = model_format(path)
        if found is not None:
            raise FileFormatError(
                f"{path} is {found.title}, not a ranker file. Import it first: rankwell import {path} model.rank."
            )
        raise FileFormatError(
            f"{path} is not a ranker file, or it was cut short. The ranker file comes first, then the data."
        )
    return load(path)


def check_readable(path: Path) -> None:
    """Raise the system's own error for a file that is absent, a folder, or not readable.

    A pipe is not opened: that would take its content from the next reader.
    """
    if str(path) != "-" and (path.is_file() or path.is_dir() or not path.exists()):
        path.open("rb").close()


def is_ranker(path: Path) -> bool:
    """Whether a file is a ranker file, by how it begins. A pipe is not opened: that would consume its beginning."""
    from rankwell.scoring.ranker_file import is_ranker_file

    return path.is_file() and is_ranker_file(path)
