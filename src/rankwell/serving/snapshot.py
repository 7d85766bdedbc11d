"""A snapshot: one generation of an index and the rankers that rank it, which never change together or apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rankwell.corpus.nested_fields import flattened
from rankwell.errors import ParameterError
from rankwell.index.reader import Index
from rankwell.index.statistics import Statistics
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.ranker_file import RankerFile
from rankwell.serving.device_health import DeviceHealth
from rankwell.serving.feature_log import FeatureLog
from rankwell.serving.placement import CPU_BATCH, PlacedSearch, suits_device
from rankwell.serving.ranked_search import RankedSearch

BM25_ALONE = "bm25"
"""The name of ranking by selection alone."""

# How much of a document is searched for to try a snapshot, and how many documents' texts to measure devices.
_TRIED_CHARACTERS = 60
_MEASURED_QUERIES = 64
_DEVICES = ("cpu", "cuda", "auto")


@dataclass(frozen=True)
class SearchSettings:
    """How all rankers of a node search; see `RankedSearch`.

    device : {"cpu", "cuda", "auto"}; "auto" is a device where there is one, for batches that it ranks quicker
    health : of the device, for all rankers
    """

    n_candidates: int
    device: str = "cpu"
    n_jobs: int | None = None
    health: DeviceHealth = field(default_factory=lambda: DeviceHealth("cuda"))

    def __post_init__(self) -> None:
        if self.device not in _DEVICES:
            raise ParameterError(f"must be one of {', '.join(_DEVICES)}, got {self.device!r}.", parameter="device")


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What answers are made from.

    version : counts changes of index and rankers
    placed : searches by the ranker's name, each on the device that suits a batch; files : the ranker files they were
        made from
    default : the ranker that is used if none is named
    """

    version: int
    index: Index
    placed: Mapping[str, PlacedSearch]
    files: Mapping[str, RankerFile]
    default: str

    @property
    def searches(self) -> Mapping[str, RankedSearch]:
        """The searches on the CPU."""
        return {name: placed.on_cpu for name, placed in self.placed.items()}

    @property
    def batch_size(self) -> int:
        """How many queries should be ranked together at most."""
        return max((placed.batch_size for placed in self.placed.values()), default=CPU_BATCH)

    def ranker(self, name: str | None) -> str:
        """The name of an existing ranker; the default's for None."""
        chosen = self.default if name is None else name
        if chosen != BM25_ALONE and chosen not in self.placed:
            known = ", ".join((BM25_ALONE, *self.placed))
            raise ParameterError(f"must be one of {known}, got {chosen!r}.", parameter="ranker")
        return chosen

    def search_of(self, name: str | None) -> RankedSearch:
        """The search by a ranker, which BM25 alone is not."""
        chosen = self.ranker(name)
        if chosen == BM25_ALONE:
            raise ParameterError(
                f"must be a ranker with features, which {BM25_ALONE} has not. There are: "
                f"{', '.join(self.placed) or 'none'}.",
                parameter="ranker",
            )
        return self.placed[chosen].on_cpu

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
        query = self.index.parse(next(_some_texts(self.index), ""), plain=True)
        self.index.search(query)
        for placed in self.placed.values():
            placed.on_cpu.search(query)

    def measure_devices(self) -> None:
        """Try the device, and find out which batches it ranks quicker, for rankers of which that is not known."""
        for placed in self.placed.values():
            if placed.health is not None and placed.costs is None:
                texts = itertools.islice(_some_texts(self.index), _MEASURED_QUERIES)
                placed.measure([self.index.parse(text, plain=True) for text in texts])


def make_snapshot(
    version: int,
    index: Index,
    files: Mapping[str, RankerFile],
    default: str,
    settings: SearchSettings,
    feature_log: FeatureLog | None,
    before: Snapshot | None = None,
) -> Snapshot:
    """A snapshot that has been tried; the default ranker's features are logged if there is a log.

    before : the one that it replaces; what was measured of its rankers need not be measured again
    """
    placed = {}
    for name, file in files.items():
        make = partial(
            _search_on,
            index=index,
            description=file.description,
            settings=settings,
            log=feature_log if name == default else None,
        )
        is_known = before is not None and before.files.get(name) is file
        costs = before.placed[name].costs if before is not None and is_known else None
        always = settings.device == "cuda"
        placed[name] = PlacedSearch(make("cpu"), make, _health(file, settings), costs, always=always)
    snapshot = Snapshot(version, index, placed, dict(files), default)
    snapshot.try_out()
    snapshot.measure_devices()
    return snapshot


def _search_on(
    device: str, *, index: Index, description: RankerDescription, settings: SearchSettings, log: FeatureLog | None
) -> RankedSearch:
    return RankedSearch(
        index, description, n_candidates=settings.n_candidates, device=device, n_jobs=settings.n_jobs, log=log
    )


def _health(file: RankerFile, settings: SearchSettings) -> DeviceHealth | None:
    """The health of the device that should rank; None if it is the CPU."""
    is_wanted = settings.device == "cuda" or (settings.device == "auto" and suits_device(file.description))
    return settings.health if is_wanted else None


def _some_texts(index: Index) -> Iterator[str]:
    """Texts of live documents."""
    for doc in range(int(index.bases[-1])):
        fields = flattened(index.stored(doc))
        texts = [value for name, value in fields.items() if name != "id" and isinstance(value, str) and value]
        if texts:
            yield str(texts[0][:_TRIED_CHARACTERS])
