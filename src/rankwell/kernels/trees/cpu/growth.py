"""A tree in compiled code, leaf by leaf, by a team of threads.

The leader (worker 0) decides; stages of tasks are shared out: `COUNT` the documents of the smaller child of a cut, of
one slab and one part of the documents; `SEARCH` a word, or half of it: add up the parts, subtract them from the
parent's histograms, which so become the larger child's, and find the best cut of both; `COUNT_AND_SEARCH` both at once,
where threads share words and not documents: some half words of a slab, which are searched by the thread that has them
in its cache; `PART` documents by their side, `JOIN` the parts; `ADD` leaf values to scores. Every sum is of whole
numbers, so the tree does not depend on who did what.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.lean_compilation import inlined_kernel, inner_kernel, kernel
from rankwell.kernels.cpu.team import N_TASKS, STOP, publish, read_place, wait_a_little, wait_for_tasks, write_place
from rankwell.kernels.trees import rules
from rankwell.kernels.trees.columns import COLUMN, DIVISOR, HAS_MISSING, LOWEST, N_CODES
from rankwell.kernels.trees.contract import BIN_SET_WORDS
from rankwell.kernels.trees.cpu.category_splits import category_l2
from rankwell.kernels.trees.cpu.partition import mark_set, mark_sides
from rankwell.kernels.trees.cpu.splits import LOWER_HALF, best_half, bounded_step
from rankwell.kernels.trees.cpu.tasks import (
    ADD,
    BYTE_IN_LINE,
    COPY,
    COUNT,
    COUNT_AND_SEARCH,
    COUNTING,
    FIRST,
    IS_ROOT,
    JOIN,
    LARGE,
    LARGE_DOCS,
    LARGE_ID,
    LARGE_LEAF,
    LARGE_TOTAL,
    LAST,
    N_COUNTED_PARTS,
    N_GROUPS,
    N_LEAVES,
    N_PARTS,
    N_SEARCHED,
    OTHER_FIRST,
    OTHER_LAST,
    PART,
    SEARCH,
    SLAB,
    SMALL,
    SMALL_DOCS,
    SMALL_ID,
    SMALL_LEAF,
    SMALL_TOTAL,
    STREAMED,
    WORDS_PER_SLAB,
    join_leaf,
    part_leaf,
    work_off,
)
from rankwell.kernels.trees.cpu.workspace import (
    CODE,
    DEPTH,
    END,
    FEATURE,
    FOUND_CODE,
    FOUND_FEATURE,
    FOUND_LEFT,
    FOUND_MISSING_LEFT,
    FOUND_SET,
    GAIN,
    HIGH,
    L2,
    LEFT_TOTAL,
    LOW,
    MISSING_LEFT,
    N_LEFT,
    NODE,
    NODE_CODE,
    NODE_DOCS,
    NODE_FEATURE,
    NODE_GAIN,
    NODE_LEFT,
    NODE_MISSING_LEFT,
    NODE_RIGHT,
    NODE_SET,
    NODE_TOTAL,
    OTHER_END,
    OTHER_START,
    SET,
    SLOT,
    START,
    TOTAL,
    VALUE,
)
from rankwell.kernels.trees.slabs import WORD

# Fewer documents than twice as many are one part, where they are counted, and where they are parted by their side.
DOCS_PER_PART = 2048
_DOCS_PER_PARTED = 2048
_DOCS_JOINED_BY_ALL = 16384
# The lines of so many documents, 16 MB, stay in the third-level cache, from which every thread can read all of them.
_DOCS_IN_CACHE = 2**14
# With as many words for each worker, words are searched whole.
_WORDS_PER_WORKER = 16
_NOTHING = 0

_leaf_value = inlined_kernel(rules.leaf_value)


class Plan(NamedTuple):
    """What a tree is grown by.

    n_leaves, max_depth; most_parts : of a leaf that is counted
    n_docs, n_counting, total : documents in `rows`, those that count, which come first, and their packed sum
    scale : 2^(b − a)
    node_features, seed, number : the share of features allowed in a leaf, and what its random numbers are drawn by
    """

    n_leaves: int
    max_depth: int
    most_parts: int
    n_docs: int
    n_counting: int
    total: int
    words_per_slab: int
    scale: float
    learning_rate: float
    node_features: float
    seed: int
    number: int


@inlined_kernel
def keep_best(found, found_gain, child, leaf, whole, real):
    """Make the best cut that a search found the leaf's."""
    half = best_half(found, found_gain, child)
    real[GAIN, leaf] = 0.0
    if half >= 0:
        real[GAIN, leaf] = found_gain[half, child]
        whole[FEATURE, leaf], whole[CODE, leaf] = (
            found[half, child, FOUND_FEATURE],
            found[half, child, FOUND_CODE],
        )
        whole[LEFT_TOTAL, leaf] = found[half, child, FOUND_LEFT]
        whole[MISSING_LEFT, leaf] = found[half, child, FOUND_MISSING_LEFT]
        for k in range(BIN_SET_WORDS):
            whole[SET + k, leaf] = found[half, child, FOUND_SET + k]


@inlined_kernel
def choose_leaf(real, n_leaves):
    """The leaf with the largest gain, the first of equals; −1 if none gains."""
    best = 0
    for leaf in range(1, n_leaves):
        if real[GAIN, leaf] > real[GAIN, best]:
            best = leaf
    return best if real[GAIN, best] > 0.0 else -1


@inlined_kernel
def begin(control, whole, real, live, limits, plan):
    """One leaf with all documents, to be counted."""
    whole[START, 0], whole[END, 0], whole[TOTAL, 0] = 0, plan.n_counting, plan.total
    whole[OTHER_START, 0], whole[OTHER_END, 0] = plan.n_counting, plan.n_docs
    whole[DEPTH, 0], whole[NODE, 0], whole[SLOT, 0] = 0, -1, 0
    real[LOW, 0], real[HIGH, 0], real[L2, 0] = -np.inf, np.inf, limits.l2
    for word in range(live.shape[1]):
        live[0, word] = ~np.uint64(0)
    control[FIRST], control[LAST], control[SMALL], control[LARGE], control[IS_ROOT] = 0, plan.n_counting, 0, 0, 1
    control[SMALL_TOTAL], control[SMALL_DOCS], control[SMALL_ID], control[SMALL_LEAF] = plan.total, plan.n_docs, 0, 0
    control[WORDS_PER_SLAB] = plan.words_per_slab


@inlined_kernel
def begin_search(space, limits):
    """Nothing has been found yet."""
    for helper in range(len(space.to_beat)):
        for child in range(2):
            space.to_beat[helper, child], space.beaten[helper, child] = limits.min_gain, -1


@inlined_kernel
def prepare_parting(leaf, control, whole, sides, columns, copy_of, words_per_slab):
    of_feature = columns.by_feature[whole[FEATURE, leaf]]
    column = of_feature[COLUMN]
    size = columns.sizes[column]
    if whole[CODE, leaf] < 0:
        mark_set(of_feature[DIVISOR], of_feature[N_CODES], size, whole, leaf, sides)
    else:
        mark_sides(
            of_feature[DIVISOR],
            of_feature[N_CODES],
            size,
            of_feature[HAS_MISSING],
            whole[CODE, leaf],
            whole[MISSING_LEFT, leaf],
            sides,
        )
    in_slab = words_per_slab * WORD
    control[SLAB], control[BYTE_IN_LINE], control[COPY] = column // in_slab, column % in_slab, copy_of[column]
    control[FIRST], control[LAST] = whole[START, leaf], whole[END, leaf]
    control[OTHER_FIRST], control[OTHER_LAST] = whole[OTHER_START, leaf], whole[OTHER_END, leaf]


@inlined_kernel
def docs_of(leaf, whole):
    """A leaf's documents, whether they count or not."""
    return whole[END, leaf] - whole[START, leaf] + whole[OTHER_END, leaf] - whole[OTHER_START, leaf]


@inlined_kernel
def bound_sides(leaf, new, whole, real, live, space, columns, limits):
    """Bounds, groups and l2 of the sides of a leaf's cut, the leaf still being undivided."""
    feature = whole[FEATURE, leaf]
    for word in range(live.shape[1]):
        live[leaf, word] &= space.groups[feature, word]
        live[new, word] = live[leaf, word]
    low, high = real[LOW, leaf], real[HIGH, leaf]
    real[LOW, new], real[HIGH, new], real[L2, leaf] = low, high, limits.l2
    total, left = whole[TOTAL, leaf], whole[LEFT_TOTAL, leaf]
    if whole[CODE, leaf] < 0:
        n_codes = space.n_categories[feature] + 1 - columns.by_feature[feature, LOWEST]
        real[L2, leaf] = category_l2(np.float64(total & LOWER_HALF), docs_of(leaf, whole), n_codes, limits)
    real[L2, new] = real[L2, leaf]
    if space.direction[feature] != 0:
        right = total - left
        step1 = bounded_step(np.float64(left >> 32), np.float64(left & LOWER_HALF), limits.l1, limits.l2, low, high)
        step2 = bounded_step(np.float64(right >> 32), np.float64(right & LOWER_HALF), limits.l1, limits.l2, low, high)
        middle = (step1 + step2) / 2.0
        below, above = (leaf, new) if space.direction[feature] > 0 else (new, leaf)
        real[HIGH, below], real[LOW, above] = middle, middle


@inlined_kernel
def _make_node(leaf, new, whole, real):
    """Make a leaf a node, whose children are the leaves `leaf` and `new`."""
    node = new - 1
    whole[NODE_FEATURE, node], whole[NODE_CODE, node] = whole[FEATURE, leaf], whole[CODE, leaf]
    whole[NODE_MISSING_LEFT, node], real[NODE_GAIN, node] = whole[MISSING_LEFT, leaf], real[GAIN, leaf]
    for k in range(BIN_SET_WORDS):
        whole[NODE_SET + k, node] = whole[SET + k, leaf]
    whole[NODE_TOTAL, node], whole[NODE_DOCS, node] = whole[TOTAL, leaf], docs_of(leaf, whole)
    whole[NODE_LEFT, node], whole[NODE_RIGHT, node] = -1 - leaf, -1 - new
    above = whole[NODE, leaf]
    if above >= 0:
        if whole[NODE_LEFT, above] == -1 - leaf:
            whole[NODE_LEFT, above] = node
        else:
            whole[NODE_RIGHT, above] = node
    whole[NODE, leaf], whole[NODE, new] = node, node


@inlined_kernel
def split(leaf, new, n_left, n_other_left, control, whole, real):
    """Make a leaf whose documents are parted a node with two leaves; returns the leaves with fewer and more of them."""
    divide_leaf(leaf, new, n_left, n_other_left, whole, real)
    return order_children(leaf, new, n_left <= whole[END, new] - whole[START, new], control, whole)


@inlined_kernel
def divide_leaf(leaf, new, n_left, n_other_left, whole, real):
    """Make a leaf whose documents are parted a node with the leaves `leaf`, on the left, and `new`."""
    _make_node(leaf, new, whole, real)
    whole[START, new], whole[END, new] = whole[START, leaf] + n_left, whole[END, leaf]
    whole[END, leaf] = whole[START, new]
    whole[OTHER_START, new], whole[OTHER_END, new] = whole[OTHER_START, leaf] + n_other_left, whole[OTHER_END, leaf]
    whole[OTHER_END, leaf] = whole[OTHER_START, new]
    whole[TOTAL, new] = whole[TOTAL, leaf] - whole[LEFT_TOTAL, leaf]
    whole[TOTAL, leaf] = whole[LEFT_TOTAL, leaf]
    whole[DEPTH, leaf] += 1
    whole[DEPTH, new] = whole[DEPTH, leaf]
    real[GAIN, leaf], real[GAIN, new] = 0.0, 0.0


@inlined_kernel
def order_children(leaf, new, is_left_smaller, control, whole):
    """Say which of two leaves is to be counted, the smaller one; returns both, that one first."""
    small, large = (leaf, new) if is_left_smaller else (new, leaf)
    # The parent's histograms become the larger child's.
    parent_slot = whole[SLOT, leaf]
    whole[SLOT, large], whole[SLOT, small] = parent_slot, new
    control[SMALL], control[LARGE], control[IS_ROOT] = new, parent_slot, 0
    control[FIRST], control[LAST] = whole[START, small], whole[END, small]
    control[SMALL_TOTAL], control[SMALL_DOCS] = whole[TOTAL, small], docs_of(small, whole)
    control[LARGE_TOTAL], control[LARGE_DOCS] = whole[TOTAL, large], docs_of(large, whole)
    control[SMALL_ID], control[LARGE_ID] = (2 * new, 2 * new + 1) if is_left_smaller else (2 * new + 1, 2 * new)
    control[SMALL_LEAF], control[LARGE_LEAF] = small, large
    return small, large


@inlined_kernel
def parts_of(n_docs, most, per_part):
    wanted = n_docs // per_part
    return 1 if wanted < 2 or most < 2 else (wanted if wanted < most else most)


@inlined_kernel
def prepare_counting(control, n_slabs, plan):
    """The number of tasks by which the documents of a leaf are counted."""
    control[N_PARTS], control[N_GROUPS] = parts_of(control[LAST] - control[FIRST], plan.most_parts, DOCS_PER_PART), 1
    control[COUNTING] += 1
    return n_slabs * control[N_PARTS]


@inlined_kernel
def share_parting(control, most_ranges):
    """The number of tasks by which a leaf's documents are parted: those that count, then the others."""
    control[N_COUNTED_PARTS] = parts_of(control[LAST] - control[FIRST], most_ranges, _DOCS_PER_PARTED)
    n_others = control[OTHER_LAST] - control[OTHER_FIRST]
    return control[N_COUNTED_PARTS] + (parts_of(n_others, most_ranges, _DOCS_PER_PARTED) if n_others > 0 else 0)


@inlined_kernel
def is_joined_by_all(control):
    """Whether the parts of a leaf are joined by a stage of its own, JOIN: they are large."""
    n_docs = control[LAST] - control[FIRST] + control[OTHER_LAST] - control[OTHER_FIRST]
    return n_docs >= _DOCS_JOINED_BY_ALL


@inlined_kernel
def join_alone(control, space, n_tasks):
    """What JOIN does, for few documents."""
    for task in range(n_tasks):
        join_leaf(task, control, space.sides, space.rows, space.right)


@inlined_kernel
def count_left(control, sides, n_tasks):
    """How many documents of the leaf that was parted went left: of those that count, and of the others."""
    n_left, n_other_left = 0, 0
    for task in range(n_tasks):
        if task < control[N_COUNTED_PARTS]:
            n_left += sides[N_LEFT + task]
        else:
            n_other_left += sides[N_LEFT + task]
    return n_left, n_other_left


@inlined_kernel
def evaluate_leaves(whole, real, n_leaves, limits, plan):
    for leaf in range(n_leaves):
        total = whole[TOTAL, leaf]
        gradient, hessian = np.float64(total >> 32), np.float64(total & LOWER_HALF)
        step = bounded_step(gradient, hessian, limits.l1, real[L2, leaf], real[LOW, leaf], real[HIGH, leaf])
        real[VALUE, leaf] = np.float32(_leaf_value(step, plan.scale, plan.learning_rate))


@inlined_kernel
def prepare_stage(stage, leaf, n_leaves, control, space, columns, limits, plan):
    """Prepare the next stage, `leaf` being the one to be parted; returns its number of tasks."""
    whole, most_ranges = space.whole, (len(space.sides) - N_LEFT) // 2
    if stage == COUNT:
        return prepare_counting(control, space.words.shape[0], plan)
    if stage == SEARCH:
        return prepare_search(control, space, limits)
    if stage == PART:
        prepare_parting(leaf, control, whole, space.sides, columns, space.copy_of, plan.words_per_slab)
        return share_parting(control, most_ranges)
    evaluate_leaves(whole, space.real, n_leaves, limits, plan)
    control[N_LEAVES] = n_leaves if n_leaves > 1 else 0
    return parts_of(plan.n_docs, most_ranges, DOCS_PER_PART)


@inlined_kernel
def prepare_search(control, space, limits):
    """The number of tasks of SEARCH: words, but half words if a word more or less would be a large part of the work."""
    n_halves, n_workers = len(space.found), len(space.to_beat)
    control[N_SEARCHED] = 1 if n_workers > 1 and n_halves < _WORDS_PER_WORKER * 2 * n_workers else 2
    begin_search(space, limits)
    return -(-n_halves // control[N_SEARCHED])


@inlined_kernel
def prepare_both(control, space, limits):
    """Prepare COUNT_AND_SEARCH; returns its number of tasks."""
    n_slabs, n_workers = space.words.shape[0], len(space.to_beat)
    control[N_GROUPS] = min(n_workers // math.gcd(n_workers, n_slabs), 2 * control[WORDS_PER_SLAB])
    begin_search(space, limits)
    return n_slabs * control[N_GROUPS]


@inlined_kernel
def choose_counting(n_tasks, control, space, limits):
    """The next stage, COUNT being prepared with `n_tasks` tasks, and its number of tasks: COUNT_AND_SEARCH if documents
    are one part, or if all columns are in one slab. Then nothing is added up over threads."""
    has_one_slab = space.words.shape[0] == 1 and len(space.found) >= 2 * len(space.to_beat)
    is_in_cache = control[STREAMED] == 0 and control[LAST] - control[FIRST] <= _DOCS_IN_CACHE
    if control[N_PARTS] > 1 and not (has_one_slab and is_in_cache):
        return COUNT, n_tasks
    control[N_PARTS] = 1
    return COUNT_AND_SEARCH, prepare_both(control, space, limits)


@inlined_kernel
def _part_alone(control, space, n_tasks):
    """What PART and JOIN do, for few documents: they are parted before another thread could have taken a task."""
    control[N_TASKS] = n_tasks
    for task in range(n_tasks):
        part_leaf(task, control, space.words, space.lines, space.copies, space.sides, space.rows, space.right)
    join_alone(control, space, n_tasks)


@inner_kernel
def follow(stage, n_tasks, n_leaves, leaf, small, large, control, space, columns, limits, plan):
    """What the leader does after a stage that is not the last: it publishes the next one.

    Returns that stage and its number of tasks, the number of leaves, the leaf to be parted, and the two searched.
    """
    whole, real, live = space.whole, space.real, space.live
    following, is_parted = SEARCH if stage == COUNT else _NOTHING, stage == JOIN
    if stage in (SEARCH, COUNT_AND_SEARCH):
        keep_best(space.found, space.found_gain, 0, small, whole, real)
        if n_leaves > 1:
            keep_best(space.found, space.found_gain, 1, large, whole, real)
    if stage == PART:
        if is_joined_by_all(control):
            publish(control, JOIN, n_tasks)
            return JOIN, n_tasks, n_leaves, leaf, small, large
        join_alone(control, space, n_tasks)
        is_parted = True
    while True:
        if is_parted:
            n_left, n_other_left = count_left(control, space.sides, n_tasks)
            bound_sides(leaf, n_leaves, whole, real, live, space, columns, limits)
            small, large = split(leaf, n_leaves, n_left, n_other_left, control, whole, real)
            n_leaves += 1
            is_deepest = plan.max_depth > 0 and whole[DEPTH, leaf] >= plan.max_depth
            if n_leaves < plan.n_leaves and not is_deepest:
                following = COUNT
        if following == _NOTHING:
            leaf = choose_leaf(real, n_leaves) if n_leaves < plan.n_leaves else -1
            following = PART if leaf >= 0 else ADD
        n_tasks = prepare_stage(following, leaf, n_leaves, control, space, columns, limits, plan)
        if following != PART or n_tasks > 2 or control[N_COUNTED_PARTS] > 1:
            break
        _part_alone(control, space, n_tasks)
        following, is_parted = _NOTHING, True
    if following == COUNT:
        following, n_tasks = choose_counting(n_tasks, control, space, limits)
    publish(control, following, n_tasks)
    return following, n_tasks, n_leaves, leaf, small, large


@kernel
def grow_tree(worker, control, space, columns, limits, plan):
    """Grow a tree; worker 0 leads and returns the number of leaves, the others help.

    control : of a `Team`; space : Workspace, whose rows, packed values and limits are set; columns : Columns
    """
    times, n_leaves, leaf, small, large = 0, 1, 0, 0, 0
    stage, n_tasks = COUNT, 1
    if worker == 0:
        begin(control, space.whole, space.real, space.live, limits, plan)
        n_tasks = prepare_stage(COUNT, leaf, n_leaves, control, space, columns, limits, plan)
        stage, n_tasks = choose_counting(n_tasks, control, space, limits)
        publish(control, stage, n_tasks)
    while read_place(control, STOP) == 0:
        worked = work_off(worker, control, space, columns, plan)
        if worker > 0:
            times = 0 if worked else times + 1
            wait_a_little(times)
            continue
        wait_for_tasks(control)
        if stage == ADD:
            write_place(control, STOP, 1)
            continue
        stage, n_tasks, n_leaves, leaf, small, large = follow(
            stage, n_tasks, n_leaves, leaf, small, large, control, space, columns, limits, plan
        )
    return n_leaves
