"""The tasks of a team that grows a tree."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.lean_compilation import inlined_kernel, inner_kernel
from rankwell.kernels.cpu.paging import give_back_bytes
from rankwell.kernels.cpu.team import (
    DONE,
    N_TASKS,
    add_to_place,
    read_place,
    replace_in_place,
    take_task,
    write_place,
)
from rankwell.kernels.trees.contract import MOST_LEAVES
from rankwell.kernels.trees.cpu.histograms import U, count_documents
from rankwell.kernels.trees.cpu.partition import join_part, part_rows
from rankwell.kernels.trees.cpu.splits import leaf_numbers, read_limits, search_columns
from rankwell.kernels.trees.cpu.workspace import (
    BLOCK,
    END,
    HALF_VALUES,
    HIGH,
    LOW,
    N_LEFT,
    OTHER_END,
    OTHER_START,
    START,
    VALUE,
)
from rankwell.kernels.trees.slabs import HALF_WORD, SLAB_BYTES, WORD

# What the system maps around a line that is touched.
MAPPED_BYTES = 2**16
COUNT, SEARCH, PART, JOIN, ADD, COUNT_AND_SEARCH = range(1, 7)
MOST_NODES = 2 * MOST_LEAVES
# Integers in `control` that tasks read. The leaf's documents and, if they are counted, the number of their parts; the
# column that parts them: its slab, its place in a line, and which copy it is, −1 for none; the places in the pool of
# the leaves searched, their packed sums, documents, numbers by which features are drawn, and their own numbers; the
# leaf's documents that do not count, and the parts of those that do; the groups of half words that a slab is counted
# in; the number of the count, from 1 on.
FIRST, LAST, N_PARTS, SLAB, BYTE_IN_LINE, COPY = range(33, 39)
IS_ROOT, SMALL, LARGE, SMALL_TOTAL, LARGE_TOTAL, SMALL_DOCS, LARGE_DOCS = range(39, 46)
N_LEAVES, WORDS_PER_SLAB, SMALL_ID, LARGE_ID, SMALL_LEAF, LARGE_LEAF = range(46, 52)
OTHER_FIRST, OTHER_LAST, N_COUNTED_PARTS, N_GROUPS = range(52, 56)
# The bytes of slabs on disk that may be in memory, 0 if there is no limit; and those that tasks have touched.
STREAMED, TOUCHED = range(56, 58)
COUNTING = 58
# How many trees were grown before, of those that are grown together; half words of a task of SEARCH.
ROUND, N_SEARCHED = range(59, 61)


@inlined_kernel
def work_off(worker, control, space, columns, plan):
    """Take tasks while there are any; returns whether there were any."""
    worked = False
    while True:
        kind, task = take_task(control, worker)
        if kind < 0:
            return worked
        work_on(kind, task, worker, control, space, columns, plan)
        add_to_place(control, DONE, 1)
        worked = True


@inlined_kernel
def work_on(kind, task, worker, control, space, columns, plan):
    """Do a task."""
    # A tuple of many arrays takes long to compile wherever it is passed on.
    words, packed, rows, right, scores = space.words, space.packed, space.rows, space.right, space.scores
    pool, whole, real, sides, sums = space.pool, space.whole, space.real, space.sides, space.sums
    if kind == PART:
        part_leaf(task, control, words, space.lines, space.copies, sides, rows, right)
    elif kind == JOIN:
        join_leaf(task, control, sides, rows, right)
    elif kind == ADD:
        add_values(task, control, whole, real, rows, scores)
    first_half, last_half = searched_halves(task, control, len(space.found)) if kind == SEARCH else (0, 0)
    if kind in (COUNT, COUNT_AND_SEARCH):
        counted = count_part(
            task,
            control,
            words,
            space.n_counted,
            space.shifts,
            rows,
            packed,
            pool,
            len(space.found),
            len(whole[0]),
            worker,
            space.begun,
            space.owners,
            sums[worker],
        )
        if kind == COUNT_AND_SEARCH:
            first_half, last_half = counted
    half = first_half
    while half < last_half:
        end = min(half // 2 * 2 + 2, last_half)
        _search(
            half,
            end,
            control,
            pool,
            len(whole[0]),
            columns,
            read_limits(space.limits),
            plan,
            space,
            sums[worker],
            space.gains[worker],
            space.found[half],
            space.found_gain[half:end],
            worker,
            space.to_beat,
            space.beaten,
        )
        half = end


@inlined_kernel
def searched_halves(task, control, n_halves):
    """The first and the last + 1 of the half words of a task of SEARCH."""
    first = task * control[N_SEARCHED]
    return first, min(first + control[N_SEARCHED], n_halves)


@inlined_kernel
def halves_of(group, control, n_halves):
    """The first and the last + 1 of the half words of a group, the slabs having N_GROUPS groups each."""
    n_groups, of_slab = control[N_GROUPS], 2 * control[WORDS_PER_SLAB]
    start = group // n_groups * of_slab
    n_own, own = min(of_slab, n_halves - start), group % n_groups
    return start + n_own * own // n_groups, start + n_own * (own + 1) // n_groups


@inlined_kernel
def _blocks_of(part, n_parts, start, n_docs):
    """The first and the last + 1 of the documents of a part: whole blocks, but for the last one of the leaf."""
    n_blocks = (n_docs + BLOCK - 1) // BLOCK
    return start + n_blocks * part // n_parts * BLOCK, start + min(n_blocks * (part + 1) // n_parts * BLOCK, n_docs)


@inlined_kernel
def _becomes_owner(slab, counting, worker, n_workers, owners):
    """Whether no worker had a part of the slab before, in this count, so that its histograms now are this one's."""
    owner = read_place(owners, slab)
    return owner // n_workers != counting and replace_in_place(owners, slab, owner, counting * n_workers + worker)


@inlined_kernel
def count_part(
    task, control, words, n_counted, shifts, rows, packed, pool, n_halves, n_leaves, worker, begun, owners, values
):
    """Count one part of the documents, in one group of half words; returns the first of these and the last + 1.

    Of several parts, the worker that takes the first of a slab adds all that it takes of it to the leaf's histograms,
    another one to histograms of its own.
    """
    n_parts, n_groups = control[N_PARTS], control[N_GROUPS]
    group, part = task // n_parts, task % n_parts
    slab = group // n_groups
    start, n_docs = control[FIRST], control[LAST] - control[FIRST]
    first, last = _blocks_of(part, n_parts, start, n_docs)
    first_half, last_half = halves_of(group, control, n_halves)
    # Every second thread takes the last task that is left.
    likely = part - 1 if worker % 2 == 1 else part + 1
    following, end = _blocks_of(likely, n_parts, start, n_docs) if 0 <= likely < n_parts else (last, last)
    histograms, is_new = pool[control[SMALL]], True
    if n_parts > 1 and not _becomes_owner(slab, control[COUNTING], worker, len(begun), owners):
        is_new = False
        if owners[slab] != control[COUNTING] * len(begun) + worker:
            histograms, is_new = pool[n_leaves + worker], begun[worker, slab] != control[COUNTING]
            begun[worker, slab] = control[COUNTING]
    count_documents(
        words[slab],
        first_half // 2 - slab * control[WORDS_PER_SLAB],
        first_half,
        last_half,
        n_counted,
        shifts,
        rows,
        first,
        last,
        following,
        end - following,
        packed,
        histograms,
        values,
        is_new,
    )
    if control[STREAMED] != 0 and last > first:
        _give_back_lines(control, words, last - first, rows[first], rows[last - 1])
    return first_half, last_half


@inner_kernel
def _give_back_lines(control, words, n_docs, lowest, highest):
    """Give back the memory of slabs once tasks have touched as much of them as may be in memory.

    n_docs, lowest, highest : the documents that a task has read, which are in ascending order
    """
    span, around = (np.int64(highest) - np.int64(lowest) + 1) * SLAB_BYTES, n_docs * MAPPED_BYTES
    touched = span if span < around else around
    if add_to_place(control, TOUCHED, touched) + touched > control[STREAMED]:
        write_place(control, TOUCHED, 0)
        give_back_bytes(words.ctypes.data, 0, words.size * WORD)


@inlined_kernel
def merge_parts(first_half, last_half, control, pool, n_leaves, begun):
    """Add the histograms of workers to those of the smaller child, and make the parent's those of the larger one; of a
    word's half words first_half, ..., last_half − 1."""
    word, start = first_half // 2, U(first_half % 2 * HALF_VALUES)
    end = start + U((last_half - first_half) * HALF_VALUES)
    small = pool[control[SMALL], word]
    if control[N_PARTS] > 1:
        slab = word // control[WORDS_PER_SLAB]
        for worker in range(len(begun)):
            if begun[worker, slab] != control[COUNTING]:
                continue
            own = pool[n_leaves + worker, word]
            for value in range(start, end):
                small[value] += own[value]
    large = pool[control[LARGE], word]
    if control[IS_ROOT] == 0:
        for value in range(start, end):
            large[value] -= small[value]


@inlined_kernel
def _search(
    half, end, control, pool, n_leaves, columns, limits, plan, space, sums, gains, found, found_gain, worker, to_beat,
    beaten
):  # fmt: skip
    """Search the half words half, ..., end − 1 of a word; what is found is kept with the first of them."""
    merge_parts(half, end, control, pool, n_leaves, space.begun)
    for place in range(len(found_gain)):
        found_gain[place, 0], found_gain[place, 1] = 0.0, 0.0
    for child in range(1 if control[IS_ROOT] != 0 else 2):
        number, total = control[SMALL_LEAF + child], control[SMALL_TOTAL + child]
        leaf = leaf_numbers(
            total,
            control[SMALL_DOCS + child],
            space.real[LOW, number],
            space.real[HIGH, number],
            plan.node_features,
            plan.seed,
            (plan.number + control[ROUND]) * MOST_NODES + control[SMALL_ID + child],
            limits,
        )
        search_columns(
            pool[control[SMALL + child], half // 2],
            half * HALF_WORD,
            min(end * HALF_WORD, len(columns.sizes)),
            total,
            leaf,
            limits,
            columns,
            space.allowed,
            space.direction,
            space.n_categories,
            space.groups,
            space.live[number],
            sums,
            gains,
            found,
            child,
            found_gain[0],
            worker,
            to_beat,
            beaten,
        )


@inlined_kernel
def _documents_of(task, control):
    """Of a task of PART or JOIN: its number among those of its documents, how many these are, where the documents are.

    Those of the documents that count come first.
    """
    n_counted = control[N_COUNTED_PARTS]
    if task < n_counted:
        return task, n_counted, control[FIRST], control[LAST]
    return task - n_counted, control[N_TASKS] - n_counted, control[OTHER_FIRST], control[OTHER_LAST]


@inlined_kernel
def join_leaf(task, control, sides, rows, right):
    """Bring the documents of a task of PART to their places, all of PART being done."""
    own, n_tasks, start, end = _documents_of(task, control)
    join_part(own, n_tasks, rows, right, start, end, sides, N_LEFT + task - own)


@inlined_kernel
def part_leaf(task, control, words, lines, copies, sides, rows, right):
    own, n_tasks, start, end = _documents_of(task, control)
    first, last = start + (end - start) * own // n_tasks, start + (end - start) * (own + 1) // n_tasks
    is_copied = control[COPY] >= 0
    source = copies[control[COPY]] if is_copied else lines[control[SLAB]]
    stride, offset = (1, 0) if is_copied else (SLAB_BYTES, control[BYTE_IN_LINE])
    lowest, highest = (rows[first], rows[last - 1]) if last > first else (rows[0], rows[0])
    sides[N_LEFT + task] = part_rows(source, stride, offset, sides, rows, first, last, right, own == 0)
    if control[STREAMED] != 0:
        _give_back_lines(control, words, last - first, lowest, highest)


@inlined_kernel
def _add_to(start, end, task, n_tasks, value, rows, scores):
    n_docs = end - start
    for place in range(U(start + n_docs * task // n_tasks), U(start + n_docs * (task + 1) // n_tasks)):
        scores[U(rows[place])] += value


@inlined_kernel
def add_values(task, control, whole, real, rows, scores):
    n_tasks = control[N_TASKS]
    for leaf in range(control[N_LEAVES]):
        value = np.float32(real[VALUE, leaf])
        _add_to(whole[START, leaf], whole[END, leaf], task, n_tasks, value, rows, scores)
        _add_to(whole[OTHER_START, leaf], whole[OTHER_END, leaf], task, n_tasks, value, rows, scores)
