"""What features and models cost, in microseconds of one core.

Features share work: whoever reads one hit of a query has read them all, and five figures of a stream are computed in
one loop. So a table has *shared* costs, each counted once if any feature of a set needs it, and the features' own. A
cost has two parts: a query's, whatever the number of its documents, and a document's.

    cost(features, n) = Σ of shared g that some feature needs (query_g + n · document_g) + Σ of features n · own_f

A feature without shared costs is a value that is fetched (from a store, a service): one that the first pass of a
cascade has fetched is not fetched again. Features that selection already knows (`selected`) need no shared work but
`lookup`, as long as a set has no others.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.scorer import score_description
from rankwell.scoring.written.nodes import Node, parse_nodes

LOOKUP = "lookup"
_REPEATS = 7


@dataclass(frozen=True)
class Cost:
    """Microseconds: once per query, and per document."""

    query: float = 0.0
    document: float = 0.0

    def of(self, n_docs: float) -> float:
        """The microseconds of a query with this many documents."""
        return self.query + self.document * n_docs


@dataclass(frozen=True)
class FeatureCost:
    """The cost of one feature.

    document : its own, per document; shared : the shared costs that it needs
    reads : other features that it is made of (an expression's)
    """

    document: float = 0.0
    shared: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class FeatureCosts:
    """A table of costs.

    features, shared : by name
    selected : features that selection already knows
    default : the own cost of features that are not in the table, per document
    source : where the numbers come from
    """

    features: Mapping[str, FeatureCost] = field(default_factory=dict)
    shared: Mapping[str, Cost] = field(default_factory=dict)
    selected: frozenset[str] = frozenset()
    default: float = 1.0
    source: str = "every feature costs the same"

    def of(self, names: Iterable[str], n_docs: float, *, fetched: Iterable[str] = ()) -> float:
        """The microseconds that these features of a query with `n_docs` documents take.

        fetched : features that were computed before; those without shared costs are not paid again
        """
        names = list(dict.fromkeys(names))
        if not names or n_docs <= 0:
            return 0.0
        if self.selected.issuperset(names):
            return self.shared.get(LOOKUP, Cost()).of(n_docs)
        needed = self._with_read(names)
        paid = {name for name in fetched if not self._feature(name).shared}
        own = sum(self._feature(name).document for name in needed if name not in paid)
        groups = dict.fromkeys(group for name in needed for group in self._feature(name).shared)
        return own * n_docs + sum(self.shared[group].of(n_docs) for group in groups)

    def without_effect(self, names: Iterable[str]) -> list[str]:
        """What the table has for features that are not among these, nor read by one of them."""
        known = set(self._with_read(list(names)))
        return [name for name in dict.fromkeys((*self.features, *sorted(self.selected))) if name not in known]

    def to_json(self) -> dict[str, Any]:
        """The table as `read_costs` reads it."""
        return {
            "source": self.source,
            "default": self.default,
            "selected": sorted(self.selected),
            "shared": {name: {"query": cost.query, "document": cost.document} for name, cost in self.shared.items()},
            "features": {
                name: {"document": cost.document, "shared": list(cost.shared), "reads": list(cost.reads)}
                for name, cost in self.features.items()
            },
        }

    def _feature(self, name: str) -> FeatureCost:
        return self.features.get(name, FeatureCost(self.default))

    def _with_read(self, names: list[str]) -> list[str]:
        """The names, and those that they are made of."""
        needed: dict[str, None] = {}
        waiting = names[::-1]
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed[name] = None
                waiting += self._feature(name).reads
        return list(needed)


def read_costs(path: str | os.PathLike[str]) -> FeatureCosts:
    """The table in a YAML or JSON file.

        default: 1                                  features that are not listed, microseconds per document
        features:
          bm25.title: 0.2
          static.price: {document: 3, shared: [price service]}
        shared:
          price service: {query: 500, document: 0}

    Raises
    ------
    FileFormatError
        Names line and column.
    """
    root = parse_nodes(Path(path).read_bytes(), str(path))
    keys = ("default", "features", "shared", "selected", "source")
    entries = root.mapping("a table of costs", keys)
    shared = {name: _cost(node, name) for name, node in _entries(entries, "shared").items()}
    features = {name: _feature_cost(node, name, shared) for name, node in _entries(entries, "features").items()}
    return FeatureCosts(
        features,
        shared,
        frozenset(entries["selected"].texts("selected")) if "selected" in entries else frozenset(),
        _positive(entries["default"], "default") if "default" in entries else 1.0,
        entries["source"].text("source") if "source" in entries else str(path),
    )


def measure_model(description: RankerDescription, rows: np.ndarray) -> Cost:
    """What scoring costs, normaliser included, measured on this machine by one thread on rows like these.

    rows : float32 (n_docs, n_features), as one query
    """
    few, many = rows[: max(1, len(rows) // 8)], rows
    works = [partial(score_description, description, RankingDataset(part), n_jobs=1) for part in (few, many)]
    times = [processor_seconds(work) for work in works]
    return cost_through((len(few), 1e6 * times[0]), (len(many), 1e6 * times[1]))


def cost_through(few: tuple[float, float], many: tuple[float, float]) -> Cost:
    """The cost through two measurements (documents, microseconds); neither part is negative."""
    if many[0] <= few[0]:
        return Cost(0.0, max(0.0, many[1]) / max(1.0, many[0]))
    document = min(max(0.0, (many[1] - few[1]) / (many[0] - few[0])), max(0.0, many[1]) / many[0])
    return Cost(max(0.0, many[1] - document * many[0]), document)


def processor_seconds(work: Callable[[], object], repeats: int = _REPEATS) -> float:
    """The shortest processor time of several calls: other processes on the machine do not count."""
    best = np.inf
    for _ in range(repeats):
        calls, started = 0, time.process_time()
        # A call may be shorter than the clock's resolution.
        while calls == 0 or time.process_time() - started < 2e-4:
            work()
            calls += 1
        best = min(best, (time.process_time() - started) / calls)
    return float(best)


def _entries(entries: Mapping[str, Node], key: str) -> dict[str, Node]:
    return entries[key].mapping(key) if key in entries else {}


def _cost(node: Node, name: str) -> Cost:
    parts = node.mapping(f"the cost of {name!r}", ("query", "document"))
    return Cost(**{part: _positive(value, part) for part, value in parts.items()})


def _feature_cost(node: Node, name: str, shared: Mapping[str, Cost]) -> FeatureCost:
    if isinstance(node.content, str):
        return FeatureCost(_positive(node, f"the cost of {name!r}"))
    parts = node.mapping(f"the cost of {name!r}", ("document", "shared", "reads"))
    for group in parts["shared"].items("shared") if "shared" in parts else ():
        group.choice("a shared cost", shared)
    return FeatureCost(
        _positive(parts["document"], "document") if "document" in parts else 0.0,
        tuple(parts["shared"].texts("shared")) if "shared" in parts else (),
        tuple(parts["reads"].texts("reads")) if "reads" in parts else (),
    )


def _positive(node: Node, what: str) -> float:
    number = node.finite(what)
    if number < 0:
        raise node.error(f"{what} must be 0 or more microseconds, got {node.content}.")
    return number
