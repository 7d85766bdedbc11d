"""The tasks of a team that grows a tree."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.lean_compilation import inlined_kernel
from rankwell.kernels.cpu.team import DONE, N_TASKS, add_to_place, take_task
from rankwell.kernels.trees.cpu.histograms import U, count_documents
from rankwell.kernels.trees.cpu.partition import part_rows
from rankwell.kernels.trees.cpu.splits import search_word
from rankwell.kernels.trees.cpu.workspace import END, N_LEFT, START, VALUE, WORD_VALUES

COUNT, SEARCH, PART, ADD = range(1, 5)
# Integers in `control` that tasks read. The leaf's documents and, if they are counted, the number of their parts; the
# column that parts them; the places in the pool of the leaves searched, their packed sums and documents.
FIRST, LAST, N_PARTS, SLAB, WORD_IN_SLAB, SHIFT = range(33, 39)
IS_ROOT, SMALL, LARGE, SMALL_TOTAL, LARGE_TOTAL, SMALL_DOCS, LARGE_DOCS = range(39, 46)
N_LEAVES, WORDS_PER_SLAB = 46, 47


@inlined_kernel
def work_off(worker, control, space, columns, limits):
    """Take tasks while there are any; returns whether there were any."""
    worked = False
    while True:
        kind, task = take_task(control)
        if kind < 0:
            return worked
        if kind == COUNT:
            _count(task, worker, control, space)
        elif kind == SEARCH:
            _search(task, worker, control, space, columns, limits)
        elif kind == PART:
            _part(task, control, space)
        else:
            _add_values(task, control, space)
        add_to_place(control, DONE, 1)
        worked = True


@inlined_kernel
def _count(task, worker, control, space):
    n_parts = control[N_PARTS]
    slab, part = task // n_parts, task % n_parts
    start, n_docs = control[FIRST], control[LAST] - control[FIRST]
    first, last = start + n_docs * part // n_parts, start + n_docs * (part + 1) // n_parts
    first_word = slab * control[WORDS_PER_SLAB]
    n_words = min(control[WORDS_PER_SLAB], space.pool.shape[1] - first_word)
    target = control[SMALL] if n_parts == 1 else space.whole.shape[1] + part
    count_documents(
        space.words[slab],
        n_words,
        space.rows,
        first,
        last,
        space.packed,
        space.pool[target],
        first_word,
        space.scratch[worker],
        space.sums[worker],
    )


@inlined_kernel
def _search(word, worker, control, space, columns, limits):
    small = space.pool[control[SMALL], word]
    if control[N_PARTS] > 1:
        for value in range(U(WORD_VALUES)):
            total = np.int64(0)
            for part in range(control[N_PARTS]):
                total += space.pool[space.whole.shape[1] + part, word, value]
            small[value] = total
    large = space.pool[control[LARGE], word]
    if control[IS_ROOT] == 0:
        for value in range(U(WORD_VALUES)):
            large[value] -= small[value]
    for child in range(1 if control[IS_ROOT] != 0 else 2):
        search_word(
            small if child == 0 else large,
            word,
            control[SMALL_TOTAL + child],
            control[SMALL_DOCS + child],
            limits,
            columns,
            space.allowed,
            space.sums[worker],
            space.gains[worker],
            space.found[word],
            child,
            space.found_gain[word],
        )


@inlined_kernel
def _part(task, control, space):
    n_tasks, start, n_docs = control[N_TASKS], control[FIRST], control[LAST] - control[FIRST]
    first, last = start + n_docs * task // n_tasks, start + n_docs * (task + 1) // n_tasks
    slab, word, shift = space.words[control[SLAB]], control[WORD_IN_SLAB], control[SHIFT]
    space.sides[N_LEFT + task] = part_rows(slab, word, shift, space.sides, space.rows, first, last, space.right)


@inlined_kernel
def _add_values(task, control, space):
    n_tasks = control[N_TASKS]
    for leaf in range(control[N_LEAVES]):
        start, n_docs = space.whole[START, leaf], space.whole[END, leaf] - space.whole[START, leaf]
        value = np.float32(space.real[VALUE, leaf])
        for place in range(U(start + n_docs * task // n_tasks), U(start + n_docs * (task + 1) // n_tasks)):
            space.scores[U(space.rows[place])] += value
