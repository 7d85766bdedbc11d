"""A symmetric tree in compiled code, level by level, by a team of threads (see `growth`).

The histograms of all leaves of a level are ready before it is searched: of each leaf that is divided, the smaller side
is counted, and `MERGE` makes the larger one's of the parent's. `SEARCH` half a word: for each of its features, add up
the gains of all leaves, cut by cut.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.lean_compilation import inlined_kernel, inner_kernel, kernel
from rankwell.kernels.cpu.team import (
    DONE,
    STOP,
    add_to_place,
    publish,
    read_place,
    take_task,
    wait_a_little,
    wait_for_tasks,
)
from rankwell.kernels.cpu.team import write_place as write
from rankwell.kernels.trees.columns import COLUMN, COLUMN_VALUES, DIVISOR, HAS_MISSING, N_CODES
from rankwell.kernels.trees.cpu.growth import (
    DOCS_PER_PART,
    begin,
    bound_sides,
    count_left,
    docs_of,
    evaluate_leaves,
    is_joined_by_all,
    join_alone,
    parts_of,
    prepare_counting,
    prepare_parting,
    share_parting,
    split,
)
from rankwell.kernels.trees.cpu.splits import (
    LOWER_HALF,
    best_half,
    leaf_numbers,
    may_cut,
    ordered_gains,
    running_sums,
    shift_sums,
    sum_codes,
)
from rankwell.kernels.trees.cpu.tasks import (
    ADD,
    COUNT,
    JOIN,
    MOST_NODES,
    N_LEAVES,
    PART,
    SEARCH,
    SMALL_ID,
    add_values,
    count_part,
    join_leaf,
    merge_parts,
    part_leaf,
)
from rankwell.kernels.trees.cpu.workspace import (
    CODE,
    FEATURE,
    FOUND_CODE,
    FOUND_FEATURE,
    FOUND_LEFT,
    FOUND_MISSING_LEFT,
    GAIN,
    HIGH,
    LEFT_TOTAL,
    LEVEL_GAINS,
    LOW,
    MISSING_LEFT,
    N_LEFT,
    RUNNING,
    SHIFTED,
    SLOT,
    TOTAL,
)
from rankwell.kernels.trees.slabs import HALF_WORD, WORD

MERGE = ADD + 1


@inlined_kernel
def _leaf_of(leaf, level, space, limits, plan):
    """`LeafNumbers` of a leaf; features are drawn for a level."""
    return leaf_numbers(
        space.whole[TOTAL, leaf],
        docs_of(leaf, space.whole),
        space.real[LOW, leaf],
        space.real[HIGH, leaf],
        plan.node_features,
        plan.seed,
        plan.number * MOST_NODES + level,
        limits,
    )


@inner_kernel
def _gains_of_leaf(leaf, feature, side, level, space, columns, limits, plan, sums, gains):
    """Gains of the cuts of a leaf by a feature, missing values on side 0 or 1: see `ordered_gains`.

    Returns the largest, 0 if the feature may not cut the leaf, and the packed sum of the leaf's missing values.
    """
    of_feature = columns.by_feature[feature]
    column, n_codes = of_feature[COLUMN], of_feature[N_CODES]
    histogram = space.pool[space.whole[SLOT, leaf], column // WORD]
    base = column % WORD * COLUMN_VALUES
    values, first_value = sum_codes(histogram, base, of_feature[DIVISOR], n_codes, columns.sizes[column], sums)
    running_sums(values, first_value, n_codes, space.whole[TOTAL, leaf], sums)
    missing = sums[RUNNING] if of_feature[HAS_MISSING] != 0 else np.int64(0)
    first = RUNNING
    if side == 1:
        first = SHIFTED
        shift_sums(n_codes, missing, sums)
    numbers = _leaf_of(leaf, level, space, limits, plan)
    if not may_cut(feature, numbers, space.allowed, space.groups, space.live[leaf]):
        return 0.0, missing
    direction = space.direction[feature]
    return ordered_gains(sums, first, n_codes, numbers, direction, limits, 0.0, False, gains), missing


@inlined_kernel
def _search(half, n_leaves, level, space, columns, limits, plan, sums, gains, found, found_gain):
    """The best cut of all leaves by a feature of the columns of half a word."""
    found_gain[0] = 0.0
    last_column = min((half + 1) * HALF_WORD, len(columns.sizes))
    for place in range(columns.column_ptr[half * HALF_WORD], columns.column_ptr[last_column]):
        feature = columns.features[place]
        n_cuts = columns.by_feature[feature, N_CODES] - 1
        has_missing = False
        side = 0
        while side < (2 if has_missing else 1):
            for code in range(n_cuts):
                gains[LEVEL_GAINS + code] = 0.0
            for leaf in range(n_leaves):
                largest, missing = _gains_of_leaf(leaf, feature, side, level, space, columns, limits, plan, sums, gains)
                has_missing = has_missing or missing != 0
                if largest > limits.min_gain:
                    for code in range(n_cuts):
                        if gains[code] > limits.min_gain:
                            gains[LEVEL_GAINS + code] += gains[code]
            for code in range(n_cuts):
                gain = gains[LEVEL_GAINS + code]
                is_first = gain == found_gain[0] and feature < found[0, FOUND_FEATURE]
                if gain > found_gain[0] or (gain > 0.0 and is_first):
                    found_gain[0], found[0, FOUND_FEATURE], found[0, FOUND_CODE] = gain, feature, code
                    found[0, FOUND_LEFT] = side
            side += 1
        if found[0, FOUND_FEATURE] == feature:
            found[0, FOUND_MISSING_LEFT] = -1 if not has_missing else 1 - found[0, FOUND_LEFT]


@inlined_kernel
def _cut_leaves(n_leaves, level, space, columns, limits, plan, sums, gains):
    """Make the best cut of the level that of the leaves that it divides; returns whether there is one."""
    half = best_half(space.found, space.found_gain, 0)
    whole, real = space.whole, space.real
    if half < 0:
        return False
    feature, code = space.found[half, 0, FOUND_FEATURE], space.found[half, 0, FOUND_CODE]
    side, missing_left = space.found[half, 0, FOUND_LEFT], space.found[half, 0, FOUND_MISSING_LEFT]
    heavier = np.int64(0)
    for leaf in range(n_leaves):
        largest, _ = _gains_of_leaf(leaf, feature, side, level, space, columns, limits, plan, sums, gains)
        left = sums[(SHIFTED if side == 1 else RUNNING) + code]
        heavier += 2 * (left & LOWER_HALF) - (whole[TOTAL, leaf] & LOWER_HALF)
        gain = gains[code] if largest > 0.0 else 0.0
        real[GAIN, leaf] = gain if gain > limits.min_gain else 0.0
        whole[FEATURE, leaf], whole[CODE, leaf], whole[LEFT_TOTAL, leaf] = feature, code, left
    for leaf in range(n_leaves):
        whole[MISSING_LEFT, leaf] = (1 if heavier >= 0 else 0) if missing_left < 0 else missing_left
    return True


@inlined_kernel
def _work_off(worker, control, space, columns, limits, plan):
    """Take tasks while there are any; returns whether there were any."""
    words, packed, rows, scores, whole = space.words, space.packed, space.rows, space.scores, space.whole
    n_leaves, sums, worked = len(whole[0]), space.sums[worker], False
    while True:
        kind, task = take_task(control, worker)
        if kind < 0:
            return worked
        if kind == COUNT:
            count_part(
                task,
                control,
                words,
                space.n_counted,
                space.shifts,
                rows,
                packed,
                space.pool,
                len(space.found),
                n_leaves,
                worker,
                space.begun,
                space.owners,
                sums,
            )
        elif kind == MERGE:
            merge_parts(task, task + 1, control, space.pool, n_leaves, space.begun)
        elif kind == SEARCH:
            _search(
                task,
                control[N_LEAVES],
                control[SMALL_ID],
                space,
                columns,
                limits,
                plan,
                sums,
                space.gains[worker],
                space.found[task],
                space.found_gain[task],
            )
        elif kind == PART:
            part_leaf(task, control, words, space.lines, space.copies, space.sides, rows, space.right)
        elif kind == JOIN:
            join_leaf(task, control, space.sides, rows, space.right)
        else:
            add_values(task, control, whole, space.real, rows, scores)
        add_to_place(control, DONE, 1)
        worked = True


@kernel
def grow_levels(worker, control, space, columns, limits, plan):
    """As `grow_tree`, with one cut for all leaves of a level, of which there are `plan.max_depth`."""
    whole, real, sides, live = space.whole, space.real, space.sides, space.live
    times, n_leaves, leaf, level, n_level, n_tasks = 0, 1, 0, 0, 1, 1
    n_slabs = space.words.shape[0]
    most_ranges = (len(sides) - N_LEFT) // 2
    stage = COUNT
    if worker == 0:
        begin(control, whole, real, live, limits, plan)
        publish(control, COUNT, prepare_counting(control, n_slabs, plan))
    while read_place(control, STOP) == 0:
        worked = _work_off(worker, control, space, columns, limits, plan)
        if worker > 0:
            times = 0 if worked else times + 1
            wait_a_little(times)
            continue
        wait_for_tasks(control)
        if stage == ADD:
            write(control, STOP, 1)
            continue
        is_over = False
        if stage == SEARCH:
            is_over = not _cut_leaves(n_leaves, level, space, columns, limits, plan, space.sums[0], space.gains[0])
            leaf, n_level, level = -1, n_leaves, level + 1
        if stage == PART and is_joined_by_all(control):
            stage = JOIN
            publish(control, stage, n_tasks)
            continue
        if stage == PART:
            join_alone(control, space, n_tasks)
        is_parted = stage in (PART, JOIN)
        if is_parted:
            n_left, n_other_left = count_left(control, sides, n_tasks)
            bound_sides(leaf, n_leaves, whole, real, live, space, columns, limits)
            split(leaf, n_leaves, n_left, n_other_left, control, whole, real)
            n_leaves += 1
        following = COUNT if is_parted and level < plan.max_depth else (MERGE if stage == COUNT else PART)
        if following == PART:
            leaf += 1
            while leaf < n_level and (level == 0 or real[GAIN, leaf] <= 0.0):
                leaf += 1
            if is_over or (leaf >= n_level and level >= plan.max_depth):
                following = ADD
            elif leaf >= n_level:
                following = SEARCH
        if following == COUNT:
            n_tasks = prepare_counting(control, n_slabs, plan)
        elif following == PART:
            prepare_parting(leaf, control, whole, sides, columns, space.copy_of, plan.words_per_slab)
            n_tasks = share_parting(control, most_ranges)
        elif following == ADD:
            evaluate_leaves(whole, real, n_leaves, limits, plan)
            control[N_LEAVES] = n_leaves if n_leaves > 1 else 0
            n_tasks = parts_of(plan.n_docs, most_ranges, DOCS_PER_PART)
        else:
            control[N_LEAVES], control[SMALL_ID] = n_leaves, level
            n_tasks = len(space.found)
        stage = following
        publish(control, stage, n_tasks)
    return n_leaves
