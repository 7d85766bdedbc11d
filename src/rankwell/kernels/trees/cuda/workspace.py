"""The arrays that the CUDA kernels of boosted trees work in, and the tree that they leave there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankwell.kernels.trees.columns import COLUMN_VALUES, LOWEST, Columns, bins_of_codes
from rankwell.kernels.trees.contract import BIN_SET_WORDS, MOST_LEAVES, BinTree, TreeSettings
from rankwell.kernels.trees.declarations import (
    BOUNDS,
    DATA,
    FOUND,
    GROWTH,
    LEAF,
    MOST_OPENINGS,
    NODE,
    OPENING,
    PART,
    PIECE,
    PLACES,
    SET_WORDS,
    SETTINGS,
    SPACE,
)
from rankwell.kernels.trees.feature_rules import FeatureRules
from rankwell.kernels.trees.rules import LOWER_HALF
from rankwell.kernels.trees.sampling import DOCUMENT_STREAM, NODE_STREAM, QUERY_STREAM, Sampling, stream_seed
from rankwell.kernels.trees.slabs import SLAB_BYTES, WORD, slab_shape

# Columns that a lane reads at a time.
READ_COLUMNS = 16
# Parts that may be opened in a tree, for each cut that it can have; fewer if they are more than this, but two at least.
_OPENED_PER_CUT, _MOST_OPENED = 3, 2046
# Bytes of shared memory in which leaves are chosen, for each part and for each leaf (`Frontier` of finished_tree.cuh).
_PART_BYTES, _LEAF_BYTES = 16, 12
_SET_BYTES = 4 * SET_WORDS


def most_opened(n_leaves: int, *, is_symmetric: bool) -> int:
    """Parts that may be opened in a tree; in a symmetric one, only those that are cut."""
    n_cuts = n_leaves - 1
    return n_cuts if is_symmetric else max(2 * n_cuts, min(_OPENED_PER_CUT * n_cuts, _MOST_OPENED))


@dataclass(frozen=True)
class GrowthSizes:
    """The sizes that determine the arrays."""

    n_docs: int
    n_columns: int
    n_features: int
    n_leaves: int
    is_symmetric: bool = False
    is_bounded: bool = False
    interaction_words: int = 0
    has_categories: bool = False

    @property
    def n_slabs(self) -> int:
        return slab_shape(self.n_columns)[0]

    @property
    def most_opened(self) -> int:
        return most_opened(self.n_leaves, is_symmetric=self.is_symmetric)

    @property
    def most_parts(self) -> int:
        return 1 + 2 * self.most_opened

    @property
    def n_slots(self) -> int:
        """Histograms of parts: of one side of each that is opened, and the root's; the last level needs none."""
        return self.n_leaves // 2 if self.is_symmetric else 1 + self.most_opened

    @property
    def frontier_bytes(self) -> int:
        """Shared memory in which leaves are chosen."""
        return self.most_parts * _PART_BYTES + self.n_leaves * _LEAF_BYTES

    @property
    def histogram_cells(self) -> int:
        """Packed sums in one part's histograms."""
        return self.n_slabs * SLAB_BYTES * COLUMN_VALUES

    @property
    def n_node_sets(self) -> int:
        return self.n_leaves if self.has_categories else 0

    @property
    def record_bytes(self) -> int:
        """Progress, nodes, leaves and sets of codes of a tree, which the host reads together."""
        by_leaf = self.n_leaves * (NODE.dtype.itemsize + LEAF.dtype.itemsize)
        return int(GROWTH.dtype.itemsize + by_leaf + self.n_node_sets * _SET_BYTES)

    def arrays(self) -> dict[str, tuple[int, Any]]:
        """The number of elements and the kind of every array of `Space` but the record."""
        by_document = {
            "gradient": np.float32,
            "hessian": np.float32,
            "scores": np.float32,
            "rows_even": np.uint32,
            "rows_odd": np.uint32,
            "packed_even": np.int64,
            "packed_odd": np.int64,
        }
        n_found = 2 * MOST_OPENINGS * slab_shape(self.n_columns)[2]
        return {
            **{name: (self.n_docs, kind) for name, kind in by_document.items()},
            "pool": (self.n_slots * self.histogram_cells, np.int64),
            "parts": (self.most_parts, PART.dtype),
            "live_groups": (max(1, self.most_parts * self.interaction_words), np.uint64),
            "bounds": (self.most_parts if self.is_bounded else 1, BOUNDS.dtype),
            "openings": (MOST_OPENINGS, OPENING.dtype),
            "found": (n_found, FOUND.dtype),
            "sets": (self.most_parts * SET_WORDS if self.has_categories else 1, np.uint32),
            "found_sets": (n_found * SET_WORDS if self.has_categories else 1, np.uint32),
            "places": (self.most_parts, PLACES.dtype),
            "stopped": (1, np.int32),
        }

    @property
    def array_bytes(self) -> int:
        return sum(count * np.dtype(kind).itemsize for count, kind in self.arrays().values()) + self.record_bytes


def make_space(sizes: GrowthSizes, allocate: Callable[[int], Any]) -> tuple[dict[str, Any], np.ndarray]:
    """The arrays by name, "record" among them, as bytes; and the struct `Space` with their addresses.

    allocate : makes an array of so many zero bytes with the attribute `data.ptr`
    """
    arrays = {name: allocate(count * np.dtype(kind).itemsize) for name, (count, kind) in sizes.arrays().items()}
    arrays["record"] = record = allocate(sizes.record_bytes)
    nodes = int(GROWTH.dtype.itemsize)
    leaves = nodes + sizes.n_leaves * int(NODE.dtype.itemsize)
    sets = leaves + sizes.n_leaves * int(LEAF.dtype.itemsize)
    pieces = {"growth": record, "nodes": record[nodes:], "leaves": record[leaves:], "node_sets": record[sets:]}
    return arrays, SPACE.pack(**arrays, **pieces)


def slab_pieces(n_columns: int, groups: int) -> np.ndarray:
    """The pieces of all slabs, an array of `Piece`: whole ones if a block holds two groups of 32 columns."""
    n_slabs, words_per_slab, _ = slab_shape(n_columns)
    pieces: list[tuple[int, ...]] = []
    for slab in range(n_slabs):
        in_slab, offset = min(words_per_slab * WORD, n_columns - slab * words_per_slab * WORD), 0
        while offset < in_slab:
            left = in_slab - offset
            readers = min(-(-left // READ_COLUMNS), 2 * groups)
            pieces.append((slab, offset, readers, min(left, readers * READ_COLUMNS)))
            offset += readers * READ_COLUMNS
    return np.array(pieces, PIECE.dtype)


def pack_data(columns: Columns, n_docs: int, placed: dict[str, Any], *, n_pieces: int, has_columns: bool) -> np.ndarray:
    """The struct `Data`; placed : the arrays of `column_arrays` and `rule_arrays`, and the others that it points to."""
    n_slabs, words_per_slab, _ = slab_shape(len(columns.sizes))
    return DATA.pack(
        **placed,
        n_pieces=n_pieces,
        has_columns=int(has_columns),
        n_docs=n_docs,
        n_slabs=n_slabs,
        slab_columns=words_per_slab * WORD,
        n_columns=len(columns.sizes),
        n_features=len(columns.by_feature),
    )


def column_arrays(columns: Columns) -> dict[str, np.ndarray]:
    """What kernels know of columns and features, int32."""
    return {
        name: np.ascontiguousarray(getattr(columns, name), np.int32)
        for name in ("column_ptr", "features", "sizes", "by_feature")
    }


def rule_arrays(rules: FeatureRules, columns: Columns) -> dict[str, np.ndarray]:
    """What kernels know of the rules of features."""
    set_codes = np.where(rules.n_categories > 0, rules.n_categories + 1 - columns.by_feature[:, LOWEST], 0)
    return {
        "direction": np.ascontiguousarray(rules.direction, np.int32),
        "set_codes": set_codes.astype(np.int32),
        "groups": np.ascontiguousarray(rules.groups) if rules.has_groups else np.zeros(1, np.uint64),
    }


def queries_of_documents(query_ptr: np.ndarray | None, drawn: Sampling) -> np.ndarray:
    """The query of each document, int32 (n_docs,), if queries are drawn; otherwise nobody asks."""
    if query_ptr is None or drawn.queries >= 1.0:
        return np.zeros(1, np.int32)
    return np.repeat(np.arange(len(query_ptr) - 1, dtype=np.int32), np.diff(query_ptr))


def pack_settings(settings: TreeSettings, drawn: Sampling, number: int, *, is_random: bool) -> np.ndarray:
    """The struct `Settings` of tree `number`; is_random : see `TreeProblem`."""
    return SETTINGS.pack(
        **asdict(settings),
        queries=drawn.queries,
        documents=drawn.documents,
        node_features=drawn.node_features,
        query_seed=stream_seed(drawn.seed, QUERY_STREAM),
        document_seed=stream_seed(drawn.seed, DOCUMENT_STREAM),
        node_seed=stream_seed(drawn.seed, NODE_STREAM),
        tree=number,
        first_draw=number * 2 * MOST_LEAVES,
        most_opened=most_opened(settings.n_leaves, is_symmetric=settings.is_symmetric),
        is_random=int(is_random),
    )


def read_tree(record: np.ndarray, sizes: GrowthSizes, columns: Columns) -> BinTree | None:
    """The tree in a record's bytes; None if there is none."""
    growth = record[: GROWTH.dtype.itemsize].view(GROWTH.dtype)[0]
    n_leaves = int(growth["n_leaves"])
    if n_leaves < 2:
        return None
    start = GROWTH.dtype.itemsize
    nodes = record[start:][: (n_leaves - 1) * NODE.dtype.itemsize].view(NODE.dtype)
    start += sizes.n_leaves * NODE.dtype.itemsize
    leaves = record[start:][: n_leaves * LEAF.dtype.itemsize].view(LEAF.dtype)
    start += sizes.n_leaves * LEAF.dtype.itemsize
    # Empty without categories.
    sets = record[start:][: (n_leaves - 1) * _SET_BYTES].view(np.uint64).reshape(-1, BIN_SET_WORDS)
    has_set = nodes["code"] < 0
    a, b = int(growth["gradient_exponent"]), int(growth["hessian_exponent"])
    lowest = columns.by_feature[nodes["feature"], LOWEST]

    def hessian(totals: np.ndarray) -> np.ndarray:
        return np.ldexp((totals & LOWER_HALF).astype(np.float64), -b)

    return BinTree(
        feature=nodes["feature"].copy(),
        cut=np.where(has_set, -1, nodes["code"] + lowest).astype(np.int32),
        left=nodes["left"].copy(),
        right=nodes["right"].copy(),
        missing_left=nodes["missing_left"].astype(np.uint8),
        gain=np.ldexp(nodes["gain"], b - 2 * a),
        node_docs=nodes["docs"].astype(np.int64),
        node_hessian=hessian(nodes["total"]),
        leaf_docs=leaves["docs"].astype(np.int64),
        leaf_hessian=hessian(leaves["total"]),
        leaf_value=leaves["value"].copy(),
        **({"left_bins": bins_of_codes(sets, lowest)} if has_set.any() else {}),
    )
