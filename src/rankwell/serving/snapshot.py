"""A snapshot: one generation of an index and the rankers that rank it, which never change together or apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankwell.corpus.nested_fields import flattened
from rankwell.errors import ParameterError
from rankwell.index.reader import Index
from rankwell.index.statistics import Statistics
from rankwell.scoring.ranker_file import RankerFile
from rankwell.serving.feature_log import FeatureLog
from rankwell.serving.ranked_search import RankedSearch

BM25_ALONE = "bm25"
"""The name of ranking by selection alone."""

# How much of a document is searched for to try a snapshot.
_TRIED_CHARACTERS = 60


@dataclass(frozen=True)
class SearchSettings:
    """How all rankers of a node search; see `RankedSearch`."""

    n_candidates: int
    device: str = "cpu"
    n_jobs: int | None = None


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What answers are made from.

    version : counts changes of index and rankers
    searches : by the ranker's name; files : the ranker files they were made from
    default : the ranker that is used if none is named
    """

    version: int
    index: Index
    searches: Mapping[str, RankedSearch]
    files: Mapping[str, RankerFile]
    default: str

    def ranker(self, name: str | None) -> str:
        """The name of an existing ranker; the default's for None."""
        chosen = self.default if name is None else name
        if chosen != BM25_ALONE and chosen not in self.searches:
            known = ", ".join((BM25_ALONE, *self.searches))
            raise ParameterError(f"must be one of {known}, got {chosen!r}.", parameter="ranker")
        return chosen

    def search_of(self, name: str | None) -> RankedSearch:
        """The search by a ranker, which BM25 alone is not."""
        chosen = self.ranker(name)
        if chosen == BM25_ALONE:
            raise ParameterError(
                f"must be a ranker with features, which {BM25_ALONE} has not. There are: "
                f"{', '.join(self.searches) or 'none'}.",
                parameter="ranker",
            )
        return self.searches[chosen]

    def described(self) -> list[dict[str, Any]]:
        """The rankers, as `GET /rankers` lists them."""
        rankers: list[dict[str, Any]] = [{"name": BM25_ALONE, "kind": BM25_ALONE, "features": 0, "cascade": False}]
        for name, file in self.files.items():
            description = file.description
            is_cascade = description.first_pass is not None
            rankers.append(
                {"name": name, "kind": file.ranker, "features": description.n_features, "cascade": is_cascade}
            )
        return [ranker | {"default": ranker["name"] == self.default} for ranker in rankers]

    def try_out(self) -> None:
        """Search once with every ranker: kernels are compiled and statistics counted before the first user asks."""
        if self.index.n_docs == 0:
            return
        _ = Statistics.of(self.index).tokens
        query = self.index.parse(_some_text(self.index), plain=True)
        self.index.search(query)
        for search in self.searches.values():
            search.search(query)


def make_snapshot(
    version: int,
    index: Index,
    files: Mapping[str, RankerFile],
    default: str,
    settings: SearchSettings,
    feature_log: FeatureLog | None,
) -> Snapshot:
    """A snapshot that has been tried; the default ranker's features are logged if there is a log."""
    searches = {
        name: RankedSearch(
            index,
            file.description,
            n_candidates=settings.n_candidates,
            device=settings.device,
            n_jobs=settings.n_jobs,
            log=feature_log if name == default else None,
        )
        for name, file in files.items()
    }
    snapshot = Snapshot(version, index, searches, dict(files), default)
    snapshot.try_out()
    return snapshot


def _some_text(index: Index) -> str:
    """A text of some live document."""
    for doc in range(int(index.bases[-1])):
        fields = flattened(index.stored(doc))
        texts = [value for name, value in fields.items() if name != "id" and isinstance(value, str) and value]
        if texts:
            return str(texts[0][:_TRIED_CHARACTERS])
    return ""
