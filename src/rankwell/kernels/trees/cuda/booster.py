"""Boosted trees on a CUDA device: documents, gradients and scores stay there, and a tree is one launch.

If the slabs do not fit into the device's memory, a tree is a launch for each stage, and slabs are sent to the device
twice at most for every step of the growth.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rankwell.kernels.cuda.buffers import copy_to_host
from rankwell.kernels.cuda.memory import free_bytes
from rankwell.kernels.cuda.module import cuda_module
from rankwell.kernels.device_report import DeviceReport
from rankwell.kernels.trees.columns import COLUMN, COLUMN_VALUES
from rankwell.kernels.trees.contract import BinTree, TreeProblem
from rankwell.kernels.trees.cuda.gradients import QueryGradients, query_bytes
from rankwell.kernels.trees.cuda.slab_places import SlabPlaces
from rankwell.kernels.trees.cuda.workspace import (
    GrowthSizes,
    column_arrays,
    make_space,
    pack_data,
    pack_settings,
    queries_of_documents,
    read_tree,
    rule_arrays,
    slab_pieces,
)
from rankwell.kernels.trees.declarations import GROWTH, LEVEL_LEAVES, OPENING, PART
from rankwell.kernels.trees.feature_rules import FeatureRules
from rankwell.kernels.trees.sampling import Sampling
from rankwell.kernels.trees.slabs import SLAB_BYTES, WORD, slab_shape

_THREADS = 1024
# Bytes of shared memory: the histograms of 32 columns, the sums of a column (`COLUMN_ROOM` of gains.cuh), those of a
# column for each warp, those of a level (`LevelMemory` of levels.cuh), and what kernels declare.
_GROUP_BYTES = 2**16
_COLUMN_BYTES = 290 * 8
_SEARCH_BYTES = _THREADS // 32 * _COLUMN_BYTES
LEVEL_BYTES = 2 * LEVEL_LEAVES * _COLUMN_BYTES + 2 * COLUMN_VALUES * 8
_STATIC_BYTES = 8192
_WITH_SHARED_MEMORY = ("grow_tree", "count_parts", "search_parts", "add_leaf_values")
_MEMORY_SHARE = 0.9
# Trees that are grown before the host reads them.
_ROUNDS_TOGETHER = 32


def sizes_of(problem: TreeProblem) -> GrowthSizes:
    columns, settings, rules = problem.columns, problem.settings, rules_of(problem)
    return GrowthSizes(
        problem.n_docs,
        len(columns.sizes),
        len(columns.by_feature),
        settings.n_leaves,
        is_symmetric=settings.is_symmetric,
        is_bounded=rules.is_bounded,
        interaction_words=rules.groups.shape[1],
        has_categories=rules.has_categories,
    )


def rules_of(problem: TreeProblem) -> FeatureRules:
    return problem.feature_rules or FeatureRules.none(len(problem.columns.by_feature))


def device_bytes(problem: TreeProblem, report: DeviceReport, **_: Any) -> int:
    """Slabs that do not fit are sent when they are needed: two of them in nine tenths of the free memory are enough."""
    slab_bytes = problem.n_docs * SLAB_BYTES
    loss, queries = problem.loss, problem.queries
    of_queries = 0 if loss is None or queries is None else query_bytes(loss, queries)
    of_queries += 4 * problem.n_docs if _drawn(problem).queries < 1.0 else 0
    return sizes_of(problem).array_bytes + of_queries + min(2, len(problem.slabs)) * slab_bytes * 10 // 9


def _drawn(problem: TreeProblem) -> Sampling:
    """What is drawn for each tree: without queries, all documents count."""
    sampling = problem.sampling or Sampling()
    return replace(sampling, queries=1.0, documents=1.0) if problem.query_ptr is None else sampling


class CudaTreeBooster:
    """See `TreeBooster`.

    Parameters
    ----------
    problem : TreeProblem
    scores : float32 (n_docs,)
        Of the training documents before the first tree.
    memory : int, optional
        Bytes of device memory for slabs; by default nine tenths of what is free.
    """

    def __init__(self, problem: TreeProblem, scores: np.ndarray, *, memory: int | None = None) -> None:
        import cupy

        self._cupy, self._problem, self._sizes = cupy, problem, sizes_of(problem)
        self._sampling = _drawn(problem)
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._choose_kernels()
        with self._stream:
            self._arrays, self._space = make_space(self._sizes, lambda n_bytes: cupy.zeros(n_bytes, dtype=np.uint8))
            room = int(free_bytes() * _MEMORY_SHARE) if memory is None else memory
            self._slabs = SlabPlaces(problem.slabs, room)
            self._place_columns(room)
            self._array("scores")[:] = cupy.asarray(scores)
            self._records = _pinned(_ROUNDS_TOGETHER, self._sizes.record_bytes)
            self._grown = [cupy.cuda.Event(disable_timing=True) for _ in range(_ROUNDS_TOGETHER)]
            self._place_queries()
            self._stream.synchronize()

    def _choose_kernels(self) -> None:
        attributes = self._cupy.cuda.Device().attributes
        self._groups = groups = column_groups(attributes["MaxSharedMemoryPerBlockOptin"])
        macros = definitions(groups, self._problem)
        module = cuda_module("trees/growth", *macros, fuse=False, cooperative=True)
        names = ("grow_tree", "find_units", "clear_histograms", "divide_parts", "count_parts", "search_parts")
        self._kernels = {name: module.get_function(name) for name in (*names, "add_leaf_values", "gather_columns")}
        self._shared = max(groups * _GROUP_BYTES, _SEARCH_BYTES, LEVEL_BYTES, self._sizes.frontier_bytes)
        for name in _WITH_SHARED_MEMORY:
            self._kernels[name].max_dynamic_shared_size_bytes = self._shared
        self._n_blocks = attributes["MultiProcessorCount"]

    def _place_queries(self) -> None:
        loss, queries = self._problem.loss, self._problem.queries
        self._gradients: QueryGradients | None = None
        if loss is not None and queries is not None:
            placed = {name: self._array(name) for name in ("scores", "gradient", "hessian")}
            self._gradients = QueryGradients(loss, queries, placed)

    def _array(self, name: str) -> Any:
        _, kind = self._sizes.arrays()[name]
        return self._arrays[name].view(kind)

    def _place_columns(self, room: int) -> None:
        """What kernels know of columns, and the bytes by column as well if there is room: dividing reads those."""
        cupy, problem, sizes = self._cupy, self._problem, self._sizes
        slab_bytes, column_bytes = problem.slabs.nbytes, sizes.n_columns * sizes.n_docs
        has_columns = not self._slabs.streams and slab_bytes + column_bytes <= room
        columns = cupy.empty(column_bytes if has_columns else 1, dtype=np.uint8)
        if has_columns:
            per_slab = slab_shape(sizes.n_columns)[1] * WORD
            for number in range(sizes.n_slabs):
                first = number * per_slab
                count = min(per_slab, sizes.n_columns - first)
                arguments = (self._slabs.resident[number], np.int32(sizes.n_docs), np.int32(count))
                self._launch("gather_columns", *arguments, columns[first * sizes.n_docs :])
        of_features = {**column_arrays(problem.columns), **rule_arrays(rules_of(problem), problem.columns)}
        self._placed = {name: cupy.asarray(array) for name, array in of_features.items()}
        self._placed["allowed"] = self._allowed = cupy.ones((_ROUNDS_TOGETHER, sizes.n_features), dtype=np.uint8)
        self._placed["query_of"] = cupy.asarray(queries_of_documents(problem.query_ptr, self._sampling))
        self._placed["slabs"], self._placed["columns"] = self._slabs.addresses, columns
        pieces = slab_pieces(sizes.n_columns, self._groups)
        self._placed["pieces"] = cupy.asarray(pieces.view(np.uint8))
        self._piece_ptr = np.searchsorted(pieces["slab"], np.arange(sizes.n_slabs + 1)).astype(np.int32)
        self._data = pack_data(
            problem.columns, sizes.n_docs, self._placed, n_pieces=len(pieces), has_columns=has_columns
        )

    def _set_tree(self, place: int, number: int) -> None:
        """What the next launches need to know of tree `number`, whose features are drawn to `place`."""
        self._data["allowed"] = self._allowed[place].data.ptr
        self._settings = pack_settings(
            self._problem.settings, self._sampling, number, is_random=self._problem.is_random
        )

    def _launch(self, name: str, *arguments: Any) -> None:
        shared = self._shared if name in _WITH_SHARED_MEMORY else 0
        self._kernels[name]((self._n_blocks,), (_THREADS,), arguments, shared_mem=shared)

    def scores(self) -> np.ndarray:
        """See `TreeBooster`."""
        with self._stream:
            result: np.ndarray = self._array("scores").get(stream=self._stream)
            return result

    def boost(self, number: int) -> BinTree | None:
        """See `TreeBooster`."""
        trees = self.boost_rounds(number, 1)
        return trees[0] if trees else None

    def boost_rounds(self, first: int, n_rounds: int) -> list[BinTree]:
        """See `TreeBooster`.

        The host waits once for many rounds, unless slabs are sent to the device.
        """
        waits = self._slabs.streams
        trees: list[BinTree] = []
        for place in range(0, n_rounds, 1 if waits else _ROUNDS_TOGETHER):
            together = 1 if waits else min(n_rounds - place, _ROUNDS_TOGETHER)
            grown = self._boost_together(first + place, together)
            trees += grown
            if len(grown) < together:
                break
        return trees

    def _boost_together(self, first: int, n_rounds: int) -> list[BinTree]:
        if self._gradients is None:
            raise ValueError("the problem has no loss: give the gradients, with boost_along.")
        with self._stream:
            self._prepare(first, n_rounds)
            for place in range(n_rounds):
                self._gradients.launch(first + place)
                self._grow(place, first + place)
                self._grown[place].record(self._stream)
            # A tree is read while the device grows the next ones.
            grown = [self._tree(place) for place in range(n_rounds)]
            return [tree for tree in grown if tree is not None]

    def _prepare(self, first: int, n_rounds: int) -> None:
        """Draw the features that the trees numbered `first` and so on may cut, and let them grow."""
        self._arrays["stopped"].data.memset_async(0, self._arrays["stopped"].nbytes, self._stream)
        if self._sampling.features >= 1.0:
            return
        varying, n_features = np.sort(self._problem.columns.features), self._sizes.n_features
        drawn = [self._sampling.allowed_features(first + i, varying, n_features) for i in range(n_rounds)]
        self._allowed[:n_rounds].set(np.stack(drawn), stream=self._stream)

    def _set_gradients(self, gradient: np.ndarray, hessian: np.ndarray) -> None:
        self._array("gradient").set(np.ascontiguousarray(gradient, np.float32), stream=self._stream)
        self._array("hessian").set(np.ascontiguousarray(hessian, np.float32), stream=self._stream)

    def boost_along(self, number: int, gradient: np.ndarray, hessian: np.ndarray) -> BinTree | None:
        """See `TreeBooster`."""
        with self._stream:
            self._set_gradients(gradient, hessian)
            self._prepare(number, 1)
            self._grow(0, number)
            self._grown[0].record(self._stream)
            return self._tree(0)

    def _grow(self, place: int, number: int) -> None:
        """Grow tree `number`, whose record goes to `place`."""
        record = self._arrays["record"]
        record.data.memset_async(0, GROWTH.dtype.itemsize, self._stream)
        self._set_tree(place, number)
        if self._slabs.streams:
            self._grow_by_slab()
        else:
            self._launch("grow_tree", self._data, self._settings, self._space)
        copy_to_host(record, self._records[place])

    def _tree(self, place: int) -> BinTree | None:
        self._grown[place].synchronize()
        tree = read_tree(self._records[place], self._sizes, self._problem.columns)
        return BinTree.of_one_leaf(self._problem.n_docs) if tree is None and self._problem.is_random else tree

    def _grow_by_slab(self) -> None:
        data, settings, space, stream = self._data, self._settings, self._space, self._stream
        for stage in range(3):
            self._launch("find_units", data, settings, space, np.int32(stage))
        every = range(self._sizes.n_slabs)
        while not (growth := self._read_growth())["finished"]:
            # The sides of a symmetric tree's last cuts are not cut, so they need no histograms.
            if not growth["is_deepest"]:
                self._launch("clear_histograms", data, space)
            self._slabs.visit(self._cut_slabs(int(growth["n_openings"])), stream, self._divide)
            if not growth["is_deepest"]:
                self._slabs.visit(every, stream, self._count)
            self._launch("search_parts", data, settings, space)
        self._launch("add_leaf_values", data, space)

    def _divide(self, first_slab: int, end_slab: int) -> None:
        self._launch("divide_parts", self._data, self._space, np.int32(first_slab), np.int32(end_slab))

    def _count(self, first_slab: int, end_slab: int) -> None:
        pieces = self._piece_ptr[first_slab], self._piece_ptr[end_slab]
        self._launch("count_parts", self._data, self._space, *pieces)

    def _read_growth(self) -> Any:
        return self._arrays["record"][: GROWTH.dtype.itemsize].get(stream=self._stream).view(GROWTH.dtype)[0]

    def _cut_slabs(self, n_openings: int) -> set[int]:
        """The slabs with a column by which parts are being divided."""
        openings = self._arrays["openings"].get(stream=self._stream).view(OPENING.dtype)[:n_openings]
        parts = self._arrays["parts"].get(stream=self._stream).view(PART.dtype)
        features = parts["feature"][openings["part"][openings["part"] >= 0]]
        columns = self._problem.columns.by_feature[features, COLUMN]
        return set((columns // (slab_shape(self._sizes.n_columns)[1] * WORD)).tolist())


def _pinned(*shape: int) -> np.ndarray:
    """Page-locked bytes: copies to them do not wait for the host."""
    import cupyx

    pinned: np.ndarray = cupyx.zeros_pinned(shape, dtype=np.uint8)
    return pinned


def column_groups(shared_bytes: int) -> int:
    """Groups of 32 columns whose histograms fit into a block's shared memory."""
    return 2 if shared_bytes >= 2 * _GROUP_BYTES + _STATIC_BYTES else 1


def definitions(groups: int, problem: TreeProblem) -> tuple[str, ...]:
    """The macros of `growth.cu`, for blocks that hold the histograms of so many groups of 32 columns."""
    return f"THREADS={_THREADS}", f"GROUPS={groups}", *kinds_of_trees(problem)


def kinds_of_trees(problem: TreeProblem) -> tuple[str, ...]:
    """The macros that say what trees are grown: code that a problem does not need is not in its kernels."""
    rules = rules_of(problem)
    return (
        f"SYMMETRIC={int(problem.settings.is_symmetric)}",
        f"BOUNDED={int(rules.is_bounded)}",
        f"INTERACTION_WORDS={rules.groups.shape[1]}",
        f"CATEGORICAL={int(rules.has_categories)}",
    )
