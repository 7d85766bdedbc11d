"""A snapshot: one generation of an index and the rankers that rank it, which never change together or apart."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from rankwell.corpus.nested_fields import flattened
from rankwell.errors import ParameterError
from rankwell.features.own_features import OwnFeatures
from rankwell.index.query.query import Query
from rankwell.index.reader import Index
from rankwell.index.statistics import Statistics
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.ranker_file import RankerFile
from rankwell.serving.named_rankers import NamedRankers
from rankwell.serving.ranking.device_health import DeviceHealth
from rankwell.serving.ranking.feature_log import FeatureLog
from rankwell.serving.ranking.placement import CPU_BATCH, PlacedSearch, suits_device
from rankwell.serving.ranking.ranked_search import RankedSearch

# How much of a document is searched for to try a snapshot, and how many documents' texts to measure devices.
_TRIED_CHARACTERS = 60
_MEASURED_QUERIES = 64
_DEVICES = ("cpu", "cuda", "auto")


@dataclass(frozen=True)
class SearchSettings:
    """How all rankers of a node search; see `RankedSearch`.

    own : where the values of own features come from
    device : {"cpu", "cuda", "auto"}; "auto" is a device where there is one, for batches that it ranks quicker
    health : of the device, for all rankers
    """

    n_candidates: int
    device: str = "cpu"
    n_jobs: int | None = None
    own: OwnFeatures | None = None
    health: DeviceHealth = field(default_factory=lambda: DeviceHealth("cuda"))

    def __post_init__(self) -> None:
        check_device(self.device)


@dataclass(frozen=True, eq=False)
class Snapshot(NamedRankers):
    """What answers are made from.

    placed : searches by the ranker's name, each on the device that suits a batch, made from the ranker files
    n_bytes : of the index's files when it was opened, which may be gone since
    """

    index: Index
    placed: Mapping[str, PlacedSearch]
    n_bytes: int

    @property
    def searches(self) -> Mapping[str, RankedSearch]:
        """The searches on the CPU."""
        return {name: placed.on_cpu for name, placed in self.placed.items()}

    @property
    def batch_size(self) -> int:
        """How many queries should be ranked together at most."""
        return max((placed.batch_size for placed in self.placed.values()), default=CPU_BATCH)

    def search_of(self, name: str | None) -> RankedSearch:
        """The search by a ranker, which BM25 alone is not."""
        return self.placed[self.with_features(name)].on_cpu

    def try_out(self) -> None:
        """Search once with every ranker: kernels are compiled and statistics counted before the first user asks."""
        if self.index.n_docs == 0:
            return
        _ = Statistics.of(self.index).tokens
        text = next(some_texts(self.index), "")
        self.index.search(text, plain=True, typos=True)
        query = self.index.parse(text, plain=True)
        self.index.search(query)
        for placed in self.placed.values():
            placed.on_cpu.search(query)

    def measure_devices(self) -> None:
        """Try the device, and find out which batches it ranks quicker, for rankers of which that is not known."""
        for placed in self.placed.values():
            if placed.health is not None and placed.costs is None:
                placed.measure(some_queries(self.index))


def check_device(device: str) -> None:
    """Raise ParameterError for a device that there is not."""
    if device not in _DEVICES:
        raise ParameterError(f"must be one of {', '.join(_DEVICES)}, got {device!r}.", parameter="device")


def bytes_of(index: Index) -> int:
    """The size of an index's files; of those that a writer removes meanwhile, nothing."""
    size = 0
    with contextlib.suppress(FileNotFoundError):
        for path in () if index.path is None else index.path.iterdir():
            with contextlib.suppress(FileNotFoundError):
                size += path.stat().st_size if path.is_file() else 0
    return size


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
    n_bytes = before.n_bytes if before is not None and before.index is index else bytes_of(index)
    snapshot = Snapshot(version, dict(files), default, index, placed, n_bytes)
    snapshot.try_out()
    snapshot.measure_devices()
    return snapshot


def _search_on(
    device: str, *, index: Index, description: RankerDescription, settings: SearchSettings, log: FeatureLog | None
) -> RankedSearch:
    return RankedSearch(
        index,
        description,
        n_candidates=settings.n_candidates,
        own=settings.own,
        device=device,
        n_jobs=settings.n_jobs,
        log=log,
    )


def _health(file: RankerFile, settings: SearchSettings) -> DeviceHealth | None:
    """The health of the device that should rank; None if it is the CPU."""
    is_wanted = settings.device == "cuda" or (settings.device == "auto" and suits_device(file.description))
    return settings.health if is_wanted else None


def some_queries(index: Index) -> list[Query]:
    """Queries by which devices are measured."""
    texts = itertools.islice(some_texts(index), _MEASURED_QUERIES)
    return [index.parse(text, plain=True) for text in texts]


def some_texts(index: Index) -> Iterator[str]:
    """Texts of live documents."""
    for doc in range(int(index.bases[-1])):
        fields = flattened(index.stored(doc))
        texts = [value for name, value in fields.items() if name != "id" and isinstance(value, str) and value]
        if texts:
            yield str(texts[0][:_TRIED_CHARACTERS])
