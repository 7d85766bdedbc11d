"""Rankers in the formats of other programs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rankwell.rankers.base import Ranker
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.exports.formats import ExportNames, export_description
from rankwell.scoring.written.references import read_model
from rankwell.streams.whole_files import replace_file


def export(
    ranker: Ranker | RankerDescription | str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    to: str,
    name: str = "rankwell",
    ranking_pass: str | None = None,
    features: Mapping[str, str] | None = None,
    first_index: int | None = None,
) -> bytes:
    """A ranker as another program's model: the same scores there.

    What a format cannot say is an error that names it; docs/guide/exchange.md says what each can.

    Parameters
    ----------
    ranker : Ranker, RankerDescription or path
        A fitted ranker, its description, or a file: of Rankwell, or one that `rankwell import` reads.
    path : path, optional
        Where it is written, whole or not at all.
    to : "onnx", "ranklib", "opensearch", "opensearch-ranklib", "opensearch-features", "vespa", "lightgbm" or "c"
        The format.
    name : str
        The model's name there: of the graph, the model, the rank profile, or what C functions begin with.
    ranking_pass : "first" or "second", optional
        Which pass of a ranker that ranks in two.
    features : mapping of str to str, optional
        For Vespa: expressions for features, by name.
    first_index : 0 or 1, optional
        For LightGBM: the model's column that is the first feature. LightGBM puts feature 1 of text that it reads itself
        into column 1; for arrays, and by default, it is 0.

    Returns
    -------
    bytes
        The content of the file.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_queries=20, random_state=0)
    >>> ranker = rankwell.RankBoost(n_rounds=10, normalize="none").fit(data)
    >>> rankwell.export(ranker, to="ranklib").startswith(b"## RankBoost")
    True
    """
    names = ExportNames(name, dict(features or {}), first_index)
    content = export_description(_description_of(ranker), to, names, ranking_pass=ranking_pass)
    if path is not None:
        replace_file(Path(path), content)
    return content


def _description_of(ranker: Ranker | RankerDescription | str | os.PathLike[str]) -> RankerDescription:
    if isinstance(ranker, RankerDescription):
        return ranker
    return ranker._fitted_description() if isinstance(ranker, Ranker) else read_model(Path(ranker))
