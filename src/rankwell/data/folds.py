"""Folds: LETOR's layout of a collection for cross-validation.

    DIR/Fold1/train.txt  DIR/Fold1/vali.txt  DIR/Fold1/test.txt
    DIR/Fold2/...

Each file may be of any format that `rankwell.read` knows. Where one part is there in several (`train.txt` beside
`train.feather`), the one that opens fastest is taken.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError

PARTS = {"train": ("train",), "validation": ("vali", "valid", "validation"), "test": ("test",)}
# From the fastest to open to the slowest.
ENDINGS = (".feather", ".arrow", ".parquet", ".txt", ".csv", ".txt.zst", ".txt.gz", ".txt.bz2", ".csv.gz")

_FOLD_NAME = re.compile(r"fold[-_ ]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Fold:
    """The files of one fold."""

    name: str
    train: Path
    validation: Path
    test: Path

    def files(self) -> Iterator[tuple[str, Path]]:
        """The parts in the order of use: (name, path)."""
        yield from (("train", self.train), ("validation", self.validation), ("test", self.test))


@dataclass(frozen=True)
class FoldData:
    """One fold, read: all three parts have the same number of features."""

    name: str
    train: RankingDataset
    validation: RankingDataset
    test: RankingDataset


def find_folds(directory: str | os.PathLike[str]) -> list[Fold]:
    """The folds under `directory`, by their numbers; or the one fold that `directory` itself is.

    Raises
    ------
    DataError
        If there is no such folder, it holds no folds, or a fold lacks a part.
    """
    folder = Path(directory)
    if not folder.is_dir():
        kind = "a file, not a folder" if folder.exists() else "no folder"
        raise DataError(f"{folder} is {kind}. Give the folder that holds Fold1, Fold2, ...")
    numbered = sorted(
        (int(match[1]), child)
        for child in folder.iterdir()
        if (match := _FOLD_NAME.fullmatch(child.name)) and child.is_dir()
    )
    if numbered:
        return [_fold(child) for _, child in numbered]
    if any(_find_part(folder, stems) is not None for stems in PARTS.values()):
        return [_fold(folder)]
    raise DataError(
        f"{folder} has no folds. Expected are {folder}/Fold1/train.txt, vali.txt and test.txt, then Fold2 and so on "
        f"(endings: {', '.join(ENDINGS)})."
    )


def read_fold(fold: Fold, *, on_bad_line: str = "error", label: str = "label", qid: str = "qid") -> FoldData:
    """Read the three parts of a fold; options as in `rankwell.read`."""
    from rankwell.data.files import read

    parts = {name: read(path, on_bad_line=on_bad_line, label=label, qid=qid) for name, path in fold.files()}
    widest = max(part.n_features for part in parts.values())
    return FoldData(fold.name, **{name: part.widened(widest) for name, part in parts.items()})


def _fold(folder: Path) -> Fold:
    found = {}
    for part, stems in PARTS.items():
        path = _find_part(folder, stems)
        if path is None:
            expected = " or ".join(f"{stem}.txt" for stem in stems)
            raise DataError(f"{folder} has no {part} data. Expected is {expected} (endings: {', '.join(ENDINGS)}).")
        found[part] = path
    return Fold(folder.resolve().name, **found)


def _find_part(folder: Path, stems: tuple[str, ...]) -> Path | None:
    candidates = (folder / f"{stem}{ending}" for ending in ENDINGS for stem in stems)
    return next((path for path in candidates if path.is_file()), None)
