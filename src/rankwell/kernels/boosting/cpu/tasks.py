"""RankBoost on the CPU: the tasks of a team of threads."""

from __future__ import annotations

from rankwell.kernels.boosting.cpu.bounds import joint_histograms, pack_changes, summarise_intervals
from rankwell.kernels.boosting.cpu.histograms import (
    GROUP,
    build_histograms,
    feature_histogram,
    integrate_histograms,
)
from rankwell.kernels.boosting.cpu.intervals import DOCS_PER_BLOCK, cut_feature, write_codes
from rankwell.kernels.boosting.cpu.weights import (
    choose_exponents,
    mark_documents,
    multiply_weights,
    query_potentials,
    sum_levels,
)
from rankwell.kernels.cpu.lean_compilation import inlined_kernel, inner_kernel
from rankwell.kernels.cpu.paging import give_back_bytes, read_ahead_bytes
from rankwell.kernels.cpu.team import DONE, N_TASKS, add_to_place, take_task

# Stages, each of tasks of its own kind. Over queries: new weights with their sums, and sums alone; over segments:
# exponents.
BEGIN, WEIGHTS, EXPONENTS, SUMS = range(4)
# A search. Over queries: π; over groups of features and parts of the documents: histograms; over features: r.
POTENTIALS, HISTOGRAMS, INTEGRALS = range(4, 7)
# A search by bounds. π with its changes; histograms of candidates; joint histograms; summaries of intervals;
# documents by bin; intervals; codes.
CHANGES, CANDIDATES, JOINT, SUMMARIES, COUNTS, CUTS, CODES = range(7, 14)
# No tasks: the choice is made together with the processes that search other features.
CHOICE = 14

# Integers in `control`, and other numbers in `numbers`, that tasks read.
STAGE, ROUNDS_DONE, FINISHED, COMMON, N_BINS, FEATURE, THRESHOLD, CHOSEN_R = range(33, 41)
N_CANDIDATES, N_CHOSEN, N_GROUPS, BEST = range(41, 45)
# The documents of all processes that train together, and what each of these has.
ALL_DOCS, DIVISION = range(45, 47)
ALONE, BY_DOCUMENTS, BY_FEATURES = range(3)
# The number of workers if bins and codes are on disk, otherwise 0.
STREAMED = 47
TOTAL, UP_FACTOR, DOWN_FACTOR, CARRY = range(4)

STREAMED_BLOCKS = 16  # blocks of documents whose codes a task writes if they are on disk
FEW_FEATURES = 128  # up to this many, one thread is done before others could start


@inlined_kernel
def work_off(worker, team, documents, search, bounds, intervals):
    """Take tasks while there are any; returns whether there were any."""
    worked = False
    while True:
        kind, task = take_task(team.control, worker)
        if kind < 0:
            return worked
        n_tasks = team.control[N_TASKS]
        if kind == HISTOGRAMS:
            _read_ahead(task, team.control[STREAMED], search)
            build_histograms(search.words, documents.pi, search.partial, task)
        elif kind == INTEGRALS:
            n_features = len(search.table)
            first, last = n_features * task // n_tasks, n_features * (task + 1) // n_tasks
            integrate_histograms(search.partial, team.control[N_BINS], search.table, search.largest, first, last)
        elif kind < CHANGES:
            _run_document_task(kind, task, team.control, team.numbers, documents, search.bins)
        if bounds is not None and kind >= CHANGES:
            _run_bounded_task(kind, task, worker, team.control, team.numbers, documents, search, bounds, intervals)
        if team.control[STREAMED] != 0:
            _give_back(kind, task, team.control, documents, search)
            if bounds is not None and kind >= CHANGES:
                _give_back_bounded(kind, task, team.control, search, bounds, intervals)
        add_to_place(team.control, DONE, 1)
        worked = True


@inlined_kernel
def _run_document_task(kind, task, control, numbers, documents, bins):
    n_tasks = control[N_TASKS]
    n_items = len(documents.segment_ptr) - 1 if kind == EXPONENTS else len(documents.share)
    first, last = n_items * task // n_tasks, n_items * (task + 1) // n_tasks
    segment_ptr, query_segments = documents.segment_ptr, documents.query_segments
    up, down = documents.up, documents.down
    if kind == POTENTIALS:
        query_potentials(documents, numbers[TOTAL], first, last, documents.pi)
    elif kind == EXPONENTS:
        choose_exponents(segment_ptr, up, down, documents.up_exponent, documents.down_exponent, first, last)
    else:
        if kind == WEIGHTS:
            start, end = segment_ptr[query_segments[first]], segment_ptr[query_segments[last]]
            feature, marked = control[FEATURE], documents.marked
            if control[DIVISION] != BY_FEATURES:  # there the process that has the feature marked them
                mark_documents(bins[feature // GROUP], feature % GROUP, control[THRESHOLD], marked, start, end)
            multiply_weights(marked, numbers[UP_FACTOR], numbers[DOWN_FACTOR], up, down, start, end)
        sum_levels(documents, numbers[CARRY], first, last)


@inner_kernel
def _docs_per_codes_task(control):
    """From disk more at a time: every group of features is another place of the file."""
    return DOCS_PER_BLOCK * (STREAMED_BLOCKS if control[STREAMED] != 0 else 1)


@inner_kernel
def _docs_of_codes(task, control, n_docs):
    """The documents whose codes a task writes: first, and after the last."""
    n_docs_of_task = _docs_per_codes_task(control)
    first = task * n_docs_of_task
    return first, first + n_docs_of_task if first + n_docs_of_task < n_docs else n_docs


@inlined_kernel
def _run_bounded_task(kind, task, worker, control, numbers, documents, search, bounds, intervals):
    n_docs = len(documents.pi)
    if kind == CHANGES:
        _change_potentials(task, control, numbers, documents, bounds)
    elif kind == CANDIDATES:
        n_parts = bounds.histograms.shape[1]
        place, part = task // n_parts, task % n_parts
        feature = bounds.candidates[place]
        start, end = n_docs * part // n_parts, n_docs * (part + 1) // n_parts
        rows, histogram = search.bins[feature // GROUP], bounds.histograms[place, part]
        feature_histogram(rows, feature % GROUP, documents.pi, start, end, bounds.apart[worker], histogram)
    elif kind == JOINT:
        joint_histograms(
            intervals.words,
            bounds.changes,
            bounds.chosen,
            control[N_CHOSEN],
            intervals.group_ptr,
            intervals.members,
            intervals.number,
            bounds.sums,
            task,
            bounds.cells[worker],
        )
    elif kind == COUNTS:
        build_histograms(search.words, bounds.reference_pi, search.partial, task)
    elif kind == CODES:
        first, last = _docs_of_codes(task, control, n_docs)
        ptr, members = intervals.group_ptr, intervals.members
        for start in range(first, last, DOCS_PER_BLOCK):
            end = start + DOCS_PER_BLOCK if start + DOCS_PER_BLOCK < last else last
            write_codes(search.bins, ptr, members, control[N_GROUPS], intervals.digits, intervals.codes, start, end)
    else:
        _run_interval_task(kind, task, control, search.table, intervals)


@inlined_kernel
def _run_interval_task(kind, task, control, table, intervals):
    n_tasks, n_features, number = control[N_TASKS], len(table), intervals.number
    first, last = n_features * task // n_tasks, n_features * (task + 1) // n_tasks
    first_bin, last_bin = intervals.first_bin, intervals.last_bin
    if kind == SUMMARIES:
        summarise_intervals(table, number, first_bin, last_bin, intervals.highest, intervals.lowest, first, last)
        return
    for f in range(first, last):
        number[f] = 0
        if intervals.varies[f]:
            of_bin = intervals.of_bin[f]
            number[f] = cut_feature(
                table[f], intervals.counts[f], control[ALL_DOCS], control[BEST], of_bin, first_bin[f], last_bin[f]
            )


@inlined_kernel
def _change_potentials(task, control, numbers, documents, bounds):
    """π of some queries' documents, and how it has changed."""
    n_tasks, n_queries = control[N_TASKS], len(documents.share)
    first, last = n_queries * task // n_tasks, n_queries * (task + 1) // n_tasks
    segment_ptr, query_segments = documents.segment_ptr, documents.query_segments
    start, end = segment_ptr[query_segments[first]], segment_ptr[query_segments[last]]
    query_potentials(documents, numbers[TOTAL], first, last, bounds.changes)
    rise, step = pack_changes(documents.pi, bounds.reference_pi, bounds.changes, start, end)
    bounds.moved[task, 0], bounds.moved[task, 1] = rise, step


@inner_kernel
def _bins_of_part(search, task):
    """The documents of a task of histograms, and its group of features."""
    n_docs, n_parts = search.bins.shape[1], search.partial.shape[1]
    group, part = task // n_parts, task % n_parts
    return group, n_docs * part // n_parts, n_docs * (part + 1) // n_parts


@inner_kernel
def _read_ahead(task, n_workers, search):
    """Read ahead what the next free worker will need: tasks are taken from the last to the first."""
    if n_workers != 0 and task >= n_workers:
        group, start, end = _bins_of_part(search, task - n_workers)
        first = group * search.bins.shape[1]
        read_ahead_bytes(search.bins.ctypes.data, (first + start) * GROUP, (first + end) * GROUP)


@inner_kernel
def _give_back_bins(bins, group, start, end):
    first = group * bins.shape[1]
    give_back_bytes(bins.ctypes.data, (first + start) * GROUP, (first + end) * GROUP)


@inner_kernel
def _give_back(kind, task, control, documents, search):
    """Give back the memory of the bins that a task has read."""
    if kind in (HISTOGRAMS, COUNTS):
        group, start, end = _bins_of_part(search, task)
        _give_back_bins(search.bins, group, start, end)
    elif kind == WEIGHTS:
        n_tasks, n_queries = control[N_TASKS], len(documents.share)
        first, last = n_queries * task // n_tasks, n_queries * (task + 1) // n_tasks
        segment_ptr, query_segments = documents.segment_ptr, documents.query_segments
        start, end = segment_ptr[query_segments[first]], segment_ptr[query_segments[last]]
        _give_back_bins(search.bins, control[FEATURE] // GROUP, start, end)


@inner_kernel
def _give_back_bounded(kind, task, control, search, bounds, intervals):
    """The same for the tasks of a search by bounds, which read codes too."""
    n_docs = search.bins.shape[1]
    if kind == CANDIDATES:
        n_parts = bounds.histograms.shape[1]
        part, feature = task % n_parts, bounds.candidates[task // n_parts]
        _give_back_bins(search.bins, feature // GROUP, n_docs * part // n_parts, n_docs * (part + 1) // n_parts)
    elif kind == JOINT:
        n_parts, n_words = len(bounds.sums), intervals.words.shape[1]
        pair, part = task // n_parts * 2, task % n_parts
        for place in range(pair, min(pair + 2, control[N_CHOSEN])):
            first = bounds.chosen[place] * n_words
            start, end = first + n_words * part // n_parts, first + n_words * (part + 1) // n_parts
            give_back_bytes(intervals.words.ctypes.data, 8 * start, 8 * end)
    elif kind == CODES:
        start, end = _docs_of_codes(task, control, n_docs)
        for group in range(len(search.bins)):
            _give_back_bins(search.bins, group, start, end)
        for group in range(control[N_GROUPS]):
            first = group * intervals.codes.shape[1]
            give_back_bytes(intervals.codes.ctypes.data, 2 * (first + start), 2 * (first + end))


@inlined_kernel
def count_tasks(stage, query_tasks, control, search, bounds):
    """The number of tasks of a stage."""
    n_docs, n_features = search.bins.shape[1], len(search.table)
    if stage in (HISTOGRAMS, COUNTS):
        return search.partial.shape[0] * search.partial.shape[1]
    if stage in (INTEGRALS, CUTS, SUMMARIES):
        return 1 if n_features <= FEW_FEATURES else n_features // GROUP
    if stage == CODES:
        docs_per_task = _docs_per_codes_task(control)
        return (n_docs + docs_per_task - 1) // docs_per_task
    if bounds is not None:
        if stage == CANDIDATES:
            return control[N_CANDIDATES] * bounds.histograms.shape[1]
        if stage == JOINT:
            return (control[N_CHOSEN] + 1) // 2 * len(bounds.sums)
    return query_tasks
