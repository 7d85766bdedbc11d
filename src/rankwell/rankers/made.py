"""A ranker that was written down instead of trained: it predicts, and is evaluated, saved and served like any other."""

from __future__ import annotations

import os
from typing import Self

from rankwell.errors import ParameterError
from rankwell.rankers.base import Ranker, TrainedModel, TrainingTask
from rankwell.scoring.description import RankerDescription, check_description
from rankwell.scoring.written.reader import read_description


class MadeRanker(Ranker):
    """A ranker from a description: hand-written transforms, constants and other rankers.

    See `MadeRanker.from_yaml` and `MadeRanker.from_description`.

    Parameters
    ----------
    source : str
        Where the description came from, for information.

    Examples
    --------
    >>> import rankwell
    >>> with open("clicks.yaml", "w") as file:
    ...     _ = file.write("inputs: [{expression: log1p(static.clicks) + bm25.title}]")
    >>> ranker = rankwell.MadeRanker.from_yaml("clicks.yaml")
    >>> ranker.description_.feature_names
    ('static.clicks', 'bm25.title')
    >>> ranker.predict([[0.0, 2.5]]).tolist()
    [2.5]
    """

    name = "made"
    normalize = "none"

    def __init__(self, source: str = "") -> None:
        self.source = source

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> Self:
        """The ranker that the YAML file at `path` describes (`rankwell.scoring.written.reader` has the format).

        Ranker files and models that it refers to are found relative to its folder, and become a part of the ranker.
        """
        return cls._of(read_description(path), os.path.basename(os.fspath(path)))

    @classmethod
    def from_description(cls, description: RankerDescription) -> Self:
        """The ranker that evaluates `description`, after checking it."""
        check_description(description)
        return cls._of(description, "")

    @classmethod
    def _of(cls, description: RankerDescription, source: str) -> Self:
        ranker = cls(source=source)
        ranker._keep(TrainedModel(description, state={}, history={}))
        ranker.metrics_ = {}
        return ranker

    def _train(self, task: TrainingTask) -> TrainedModel:
        raise ParameterError("a made ranker cannot be trained: it is what its description says.")
