"""The CUDA source of boosted trees, compiled for the host, against the reference: every stage, any number of blocks.

`fiber_blocks.h` runs a few blocks of few threads. What a GPU does beyond that (its memory's order) is for the tests
marked gpu.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.kernels.trees.device_inputs import INPUTS, RULED_INPUTS, SYMMETRIC_INPUTS, make_input
from tests.kernels.trees.tree_inputs import random_case, random_rules

from rankwell.kernels.source_text import source_text
from rankwell.kernels.trees.contract import MOST_LEAVES, BinTree
from rankwell.kernels.trees.cuda.booster import kinds_of_trees, rules_of, sizes_of
from rankwell.kernels.trees.cuda.workspace import (
    column_arrays,
    make_space,
    pack_data,
    pack_settings,
    queries_of_documents,
    read_tree,
    rule_arrays,
    slab_pieces,
)
from rankwell.kernels.trees.declarations import GROWTH, MOST_OPENINGS
from rankwell.kernels.trees.reference.growth import grow_tree
from rankwell.kernels.trees.sampling import NODE_STREAM, Sampling, random_units, stream_seed

COMPILER = shutil.which("g++")
pytestmark = pytest.mark.skipif(COMPILER is None or platform.machine() != "x86_64", reason="this needs g++ on x86-64")
THREADS = 64
ALL_INPUTS = {**INPUTS, **SYMMETRIC_INPUTS, **RULED_INPUTS}
HOST = """
#include "fiber_blocks.h"
#include "growth.cu"
extern "C" bool grow(int n_blocks, Data* data, Settings* settings, Space* space) {
  return run_blocks(n_blocks, THREADS, [=] { grow_tree(*data, *settings, *space); });
}
extern "C" bool grow_by_slab(int n_blocks, Data* data, Settings* settings, Space* space) {
  const auto run = [=](auto kernel) { return run_blocks(n_blocks, THREADS, kernel); };
  for (int stage = 0; stage < 3; ++stage) {
    if (!run([=] { find_units(*data, *settings, *space, stage); })) return false;
  }
  while (!space->growth->finished) {
    const bool are_counted = !space->growth->is_deepest;
    if (are_counted && !run([=] { clear_histograms(*data, *space); })) return false;
    for (int slab = 0; slab < data->n_slabs; ++slab) {
      if (!run([=] { divide_parts(*data, *space, slab, slab + 1); })) return false;
    }
    for (int piece = 0; are_counted && piece < data->n_pieces; ++piece) {
      if (!run([=] { count_parts(*data, *space, piece, piece + 1); })) return false;
    }
    if (!run([=] { search_parts(*data, *settings, *space); })) return false;
  }
  return run([=] { add_leaf_values(*data, *space); });
}
extern "C" bool gather(int n_blocks, const unsigned char* slab, int n_docs, int n_columns, unsigned char* columns) {
  return run_blocks(n_blocks, THREADS, [=] { gather_columns(slab, n_docs, n_columns, columns); });
}
"""


class SharedBytes(np.ndarray):
    """Bytes that processes share, with the attribute that CuPy's arrays have."""

    @property
    def data(self):
        return type("Address", (), {"ptr": self.ctypes.data})


def shared_bytes(n_bytes):
    return np.frombuffer(mmap.mmap(-1, max(n_bytes, 8)), np.uint8, n_bytes).view(SharedBytes)


def shared_copy(array):
    copy = shared_bytes(array.nbytes)
    copy[...] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return copy


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The library for a problem and a number of groups, compiled once for each kind of trees."""
    known = {}

    def library(problem, groups=2):
        macros = f"THREADS={THREADS}", f"GROUPS={groups}", *kinds_of_trees(problem)
        if macros not in known:
            folder = tmp_path_factory.mktemp("source")
            text = source_text("trees", "cuda", "growth.cu")
            text = text.replace("extern __shared__ int4 memory[];", "int4* memory = dynamic_memory;")
            (folder / "growth.cu").write_text(text)
            header = Path(__file__).parents[1] / "cuda" / "fiber_blocks.h"
            (folder / "fiber_blocks.h").write_text(header.read_text())
            (folder / "host.cpp").write_text(HOST)
            options = ["-std=c++20", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-o", "host.so"]
            command = [str(COMPILER), *options, *(f"-D{macro}" for macro in macros), "host.cpp"]
            built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert built.returncode == 0, built.stderr
            known[macros] = ctypes.CDLL(str(folder / "host.so"))
            for name in ("grow", "grow_by_slab", "gather"):
                getattr(known[macros], name).restype = ctypes.c_bool
        return known[macros]

    return library


def run_growth(
    compiled, made, n_blocks, *, groups=2, by_slab=False, by_column=False, trees=1, number=0, drawn=None, query_ptr=None
):
    """Trees one after another for the same gradients, the scores after them, and the last `Growth`.

    number, drawn, query_ptr : the first tree's number, and what is drawn by it; features are drawn for it only
    """
    problem, drawn = made.problem(), drawn or Sampling()
    library, sizes = compiled(problem, groups), sizes_of(problem)
    arrays, space = make_space(sizes, shared_bytes)
    slabs = [shared_copy(slab) for slab in problem.slabs]
    of_features = {**column_arrays(problem.columns), **rule_arrays(rules_of(problem), problem.columns)}
    placed = {name: shared_copy(array) for name, array in of_features.items()}
    placed["allowed"] = shared_copy(allowed_features(made, drawn, number))
    placed["query_of"] = shared_copy(queries_of_documents(query_ptr, drawn))
    placed["slabs"] = shared_copy(np.array([slab.ctypes.data for slab in slabs], np.uint64))
    placed["columns"] = shared_bytes(len(problem.columns.sizes) * problem.n_docs)
    pieces = slab_pieces(len(problem.columns.sizes), groups)
    placed["pieces"] = shared_copy(pieces)
    data = pack_data(problem.columns, problem.n_docs, placed, n_pieces=len(pieces), has_columns=by_column)
    settings = pack_settings(made.settings, drawn, number, is_random=drawn.is_random)
    structs = [ctypes.c_void_p(struct.ctypes.data) for struct in (data, settings, space)]
    if by_column:
        first, per_slab = 0, int(data["slab_columns"][0])
        for slab in slabs:
            n_columns = min(per_slab, len(problem.columns.sizes) - first)
            to = placed["columns"].ctypes.data + first * problem.n_docs
            assert library.gather(
                n_blocks, ctypes.c_void_p(slab.ctypes.data), problem.n_docs, n_columns, ctypes.c_void_p(to)
            )
            first += n_columns
    arrays["gradient"].view(np.float32)[:] = made.gradient
    arrays["hessian"].view(np.float32)[:] = made.hessian
    grown = []
    for tree in range(trees):
        settings[:] = pack_settings(made.settings, drawn, number + tree, is_random=drawn.is_random)
        arrays["record"][:] = 0
        run = library.grow_by_slab if by_slab else library.grow
        assert run(n_blocks, *structs)
        grown.append(read_tree(np.array(arrays["record"]), sizes, problem.columns))
    growth = np.array(arrays["record"])[: GROWTH.dtype.itemsize].view(GROWTH.dtype)[0]
    return grown, np.array(arrays["scores"]).view(np.float32), growth


def allowed_features(made, drawn, number):
    if drawn.features >= 1.0:
        return np.ones(made.bins.shape[1], np.uint8)
    varying = np.sort(made.problem().columns.features)
    return drawn.allowed_features(number, varying, made.bins.shape[1])


def check(grown, scores, made, **drawn):
    drawn["feature_rules"] = made.feature_rules
    expected = grow_tree(made.bins, made.has_missing, made.gradient, made.hessian, made.settings, **drawn)
    if expected is None:
        assert grown == [None] * len(grown)
        assert not scores.any()
        return
    tree, leaf_of = expected
    for own in grown:
        for name in BinTree.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(own, name), getattr(tree, name), err_msg=name)
            assert getattr(own, name).dtype == getattr(tree, name).dtype
    total = np.zeros(len(made.bins), np.float32)
    for _ in grown:
        total += tree.leaf_value[leaf_of]
    np.testing.assert_array_equal(scores, total)


@pytest.mark.parametrize("name", ALL_INPUTS)
def test_a_tree_is_that_of_the_reference(compiled, name):
    grown, scores, _ = run_growth(compiled, ALL_INPUTS[name], 3, trees=2 if name == "plain" else 1)
    check(grown, scores, ALL_INPUTS[name])


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "70 columns",
        "symmetric, 6 levels",
        "symmetric, 70 columns",
        "rising and falling",
        "symmetric, rising and falling",
        "groups, rising and falling",
        "categories",
        "symmetric, groups",
    ],
)
@pytest.mark.parametrize(
    ("groups", "n_blocks", "by_slab", "by_column"),
    [(1, 1, False, False), (1, 4, False, True), (2, 1, False, True), (2, 2, True, False), (1, 3, True, False)],
)
def test_it_does_not_matter_how_the_work_is_divided(compiled, name, groups, n_blocks, by_slab, by_column):
    made = ALL_INPUTS[name]
    ways = {"groups": groups, "by_slab": by_slab, "by_column": by_column}
    check(*run_growth(compiled, made, n_blocks, **ways)[:2], made)


@pytest.mark.parametrize(
    "drawn",
    [
        Sampling(queries=0.6, seed=1),
        Sampling(documents=0.4, seed=2),
        Sampling(queries=0.7, documents=0.7, features=0.5, seed=3),
        Sampling(node_features=0.5, seed=2**40),
        Sampling(documents=0.8, features=0.8, node_features=0.7),
    ],
)
@pytest.mark.parametrize("number", [0, 1, 700])
@pytest.mark.parametrize(
    ("levels", "has_rules", "has_categories"),
    [(0, False, False), (3, False, False), (0, True, False), (3, True, False), (0, False, True)],
)
def test_random_parts_are_those_of_the_cpu(compiled, drawn, number, levels, has_rules, has_categories):
    made = make_input(700, [255, 3, 2, 9, 7, 40, 20, 255], missing=(0, 4), n_leaves=13, min_docs_leaf=5, seed=21)
    made = made.symmetric(levels) if levels else made
    if has_rules:
        made = made.ruled([1, 0, -1, 0, 1, -1, 0, -1], [[0, 1, 2, 5], [3, 4, 6, 7], [5, 6, 7, 0]])
    if has_categories:
        made = made.ruled(n_categories=[255, 0, 0, 0, 7, 39], category_smoothing=0.5)
    query_ptr = np.array([0, 0, 1, 90, 91, 300, 350, 351, 352, 500, 505, 640, 700])
    n_features = made.bins.shape[1]
    in_tree = allowed_features(made, drawn, number) > 0

    def allowed(leaf):
        units = random_units(stream_seed(drawn.seed, NODE_STREAM), number * 2 * MOST_LEAVES + leaf, n_features)
        return in_tree & (units < drawn.node_features)

    counts = drawn.counting_documents(number, query_ptr)
    ways = {"number": number, "drawn": drawn, "query_ptr": query_ptr}
    grown, scores, growth = run_growth(compiled, made, 3, **ways)
    assert grown[0] is not None
    assert growth["n_counting"] == counts.sum()
    check(grown, scores, made, counts=counts, allowed=allowed)


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize(
    ("what", "is_symmetric"),
    [
        ("directions", False),
        ("groups", False),
        ("categories", False),
        ("all", False),
        ("nothing", True),
        ("directions", True),
        ("groups", True),
    ],
)
def test_random_trees_with_rules(compiled, seed, what, is_symmetric):
    """The inputs of `test_growth.py`, which tests that their rules are felt."""
    case, levels = random_case(seed, 180), 1 + seed % 4
    settings = replace(case.settings, category_smoothing=0.3 * (seed % 4), category_l2=seed % 3, max_category_set=4)
    if is_symmetric:
        settings = replace(settings, is_symmetric=True, max_depth=levels, n_leaves=2**levels)
    case = replace(case, feature_rules=random_rules(case, seed, what), settings=settings)
    check(*run_growth(compiled, case, 2)[:2], case)


@pytest.mark.parametrize("n_categories", [2, 4, 5, 31, 32, 33, 63, 64, 65, 128, 250])
def test_categories_around_a_word_of_bits(compiled, n_categories):
    generator = np.random.default_rng(n_categories)
    bins = generator.integers(0, n_categories + 1, (1500, 2)).astype(np.uint8)
    made = make_input(1500, [n_categories, n_categories], missing=(0,), n_leaves=4)._replace(
        bins=np.maximum(bins, [0, 1]).astype(np.uint8),
        gradient=(generator.normal(size=1500) - 2 * (bins[:, 0] % 3 == 1)).astype(np.float32),
    )
    made = made.ruled(n_categories=[n_categories] * 2, category_smoothing=2.0, max_category_set=128)
    (tree,), scores, _ = run_growth(compiled, made, 2)
    check([tree], scores, made)
    assert tree.feature[0] == 0
    assert tree.cut[0] == -1


@pytest.mark.parametrize("name", RULED_INPUTS)
def test_rules_are_felt(compiled, name):
    made = RULED_INPUTS[name]
    (ruled,), _, _ = run_growth(compiled, made, 2)
    (free,), _, _ = run_growth(compiled, made._replace(feature_rules=None), 2)
    assert ruled.leaf_value.tolist() != free.leaf_value.tolist()


def test_a_level_is_opened_in_parts(compiled):
    """More leaves than are opened together."""
    (tree,), _, growth = run_growth(compiled, SYMMETRIC_INPUTS["symmetric, 9 levels"], 2)
    assert growth["level"] == 9
    assert growth["n_steps"] > 9
    assert tree.n_leaves > 2 * MOST_OPENINGS


@pytest.mark.parametrize("least", [2**30, 2**31 - 1, 10**9, 7 * 10**8, 15 * 10**8])
def test_more_documents_of_a_leaf_than_there_are(compiled, least):
    """Multiplied for the few that are drawn, their number would not fit."""
    made = make_input(700, [255, 9], n_leaves=5, min_docs_leaf=least, seed=2)
    grown, scores, _ = run_growth(compiled, made, 2, drawn=Sampling(documents=0.02, seed=1))
    assert grown == [None]
    assert not scores.any()


def test_parts_are_opened_together(compiled):
    """There are hardly more steps than levels of the tree, though each cut needs a part that is open."""
    made = make_input(900, [255, 17, 60, 255], n_leaves=31, seed=8)
    (tree,), _, growth = run_growth(compiled, made, 2)
    assert tree.n_leaves == 31
    assert growth["n_steps"] <= depth_of(tree) + 2
    assert 30 <= growth["n_opened"] <= 60


def depth_of(tree):
    depths = np.zeros(len(tree.left), int)
    for node, children in enumerate(zip(tree.left, tree.right, strict=True)):
        for child in children:
            if child >= 0:
                depths[child] = depths[node] + 1
    return depths.max() + 1


def test_trees_are_grown_after_one_whose_draw_gives_no_cut(compiled):
    """Of two queries, none is drawn for some trees."""
    drawn, query_ptr = Sampling(queries=0.5, seed=4), np.array([0, 30, 60])
    made = make_input(60, [255, 9], n_leaves=3, min_docs_leaf=10, seed=4)
    n_counting = [int(drawn.counting_documents(number, query_ptr).sum()) for number in range(6)]
    assert 0 in n_counting
    assert max(n_counting[n_counting.index(0) :]) > 0
    grown, scores, _ = run_growth(compiled, made, 2, trees=6, drawn=drawn, query_ptr=query_ptr)
    assert [tree is None for tree in grown] == [number == 0 for number in n_counting]
    total = np.zeros(60, np.float32)
    for number, tree in enumerate(grown):
        counts = drawn.counting_documents(number, query_ptr)
        expected = grow_tree(made.bins, made.has_missing, made.gradient, made.hessian, made.settings, counts=counts)
        if tree is None:
            assert expected is None
            continue
        np.testing.assert_array_equal(tree.leaf_value, expected[0].leaf_value)
        total += expected[0].leaf_value[expected[1]]
    np.testing.assert_array_equal(scores, total)


def test_no_tree_is_grown_after_one_without_a_cut(compiled):
    grown, scores, _ = run_growth(compiled, INPUTS["constant features"], 2, trees=2)
    assert grown == [None, None]
    assert not scores.any()
