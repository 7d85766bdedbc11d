"""RankBoost on the CPU: the tasks of a team of threads, and what each of them runs."""

from __future__ import annotations

from rankwell.kernels.boosting.cpu.bounds import joint_histograms, pack_changes, summarise_intervals
from rankwell.kernels.boosting.cpu.histograms import (
    GROUP,
    build_histograms,
    feature_histogram,
    integrate_histograms,
)
from rankwell.kernels.boosting.cpu.intervals import DOCS_PER_BLOCK, cut_feature, write_codes
from rankwell.kernels.boosting.cpu.team import (
    DONE,
    N_TASKS,
    STOP,
    add_to_place,
    publish,
    read_place,
    take_task,
    wait_a_little,
    wait_for_tasks,
)
from rankwell.kernels.boosting.cpu.weights import (
    choose_exponents,
    mark_documents,
    multiply_weights,
    query_potentials,
    sum_levels,
)
from rankwell.kernels.cpu.compilation import kernel

# Kinds of tasks. Over queries: π; new weights with their sums; sums alone; over segments: exponents.
POTENTIALS, WEIGHTS, SUMS, EXPONENTS = range(1, 5)
# Over groups of features and parts of the documents: histograms; over features: r.
HISTOGRAMS, INTEGRALS = range(5, 7)
# For the search by bounds: π with its changes; histograms of candidates; joint histograms; summaries of intervals;
# documents by bin; intervals; codes.
CHANGES, CANDIDATES, JOINT, SUMMARIES, COUNTS, CUTS, CODES = range(7, 14)

# Whole numbers in `control`, and others in `numbers`, that tasks read.
N_BINS, FEATURE, THRESHOLD, N_CANDIDATES, N_CHOSEN, N_GROUPS, BEST = range(33, 40)
TOTAL, UP_FACTOR, DOWN_FACTOR, CARRY = range(4)


@kernel(for_any_constant=True)
def share_out(kind, n_tasks, team, documents, search, bounds):
    """Run a stage: every task of a kind, on all threads of the team."""
    publish(team.control, kind, n_tasks)
    _work_off(0, team, documents, search, bounds)
    wait_for_tasks(team.control)


@kernel
def help_out(worker, team, documents, search, bounds):
    """Take tasks until the leader is done."""
    times = 0
    while read_place(team.control, STOP) == 0:
        if _work_off(worker, team, documents, search, bounds):
            times = 0
        wait_a_little(times)
        times += 1


@kernel(for_any_constant=True)
def _work_off(worker, team, documents, search, bounds):
    """Take tasks while there are any; whether there were."""
    worked = False
    while True:
        kind, task = take_task(team.control)
        if kind < 0:
            return worked
        if kind < HISTOGRAMS:
            _run_document_task(kind, task, team, documents, search.bins)
        elif kind < CHANGES:
            _run_search_task(kind, task, team, documents.pi, search)
        elif bounds is not None:
            _run_bounded_task(kind, task, worker, team, documents, search, bounds)
        add_to_place(team.control, DONE, 1)
        worked = True


@kernel
def _run_document_task(kind, task, team, documents, bins):
    control, numbers = team.control, team.numbers
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
            mark_documents(bins[feature // GROUP], feature % GROUP, control[THRESHOLD], marked, start, end)
            multiply_weights(marked, numbers[UP_FACTOR], numbers[DOWN_FACTOR], up, down, start, end)
        sum_levels(documents, numbers[CARRY], first, last)


@kernel
def _run_search_task(kind, task, team, pi, search):
    if kind == HISTOGRAMS:
        build_histograms(search.words, pi, search.partial, task)
    else:
        n_tasks, n_features = team.control[N_TASKS], len(search.table)
        first, last = n_features * task // n_tasks, n_features * (task + 1) // n_tasks
        integrate_histograms(search.partial, team.control[N_BINS], search.table, search.largest, first, last)


@kernel
def _run_bounded_task(kind, task, worker, team, documents, search, bounds):
    control = team.control
    if kind == CHANGES:
        _change_potentials(task, team, documents, bounds)
    elif kind == CANDIDATES:
        n_docs, n_parts = len(documents.pi), bounds.histograms.shape[1]
        place, part = task // n_parts, task % n_parts
        feature = bounds.candidates[place]
        start, end = n_docs * part // n_parts, n_docs * (part + 1) // n_parts
        rows, histogram = search.bins[feature // GROUP], bounds.histograms[place, part]
        feature_histogram(rows, feature % GROUP, documents.pi, start, end, bounds.apart[worker], histogram)
    elif kind == JOINT:
        joint_histograms(
            bounds.words,
            bounds.changes,
            bounds.chosen,
            control[N_CHOSEN],
            bounds.group_ptr,
            bounds.members,
            bounds.n_intervals,
            bounds.sums,
            task,
            bounds.cells[worker],
        )
    elif kind == COUNTS:
        build_histograms(search.words, bounds.reference_pi, search.partial, task)
    elif kind == CODES:
        start = task * DOCS_PER_BLOCK
        end = start + DOCS_PER_BLOCK if start + DOCS_PER_BLOCK < len(documents.pi) else len(documents.pi)
        ptr, members = bounds.group_ptr, bounds.members
        write_codes(search.bins, ptr, members, control[N_GROUPS], bounds.digits, bounds.codes, start, end)
    else:
        _run_interval_task(kind, task, control, len(documents.pi), search.table, bounds)


@kernel
def _run_interval_task(kind, task, control, n_docs, table, bounds):
    n_tasks, n_features, number = control[N_TASKS], len(table), bounds.n_intervals
    first, last = n_features * task // n_tasks, n_features * (task + 1) // n_tasks
    first_bin, last_bin = bounds.first_bin, bounds.last_bin
    if kind == SUMMARIES:
        summarise_intervals(table, number, first_bin, last_bin, bounds.highest, bounds.lowest, first, last)
        return
    for f in range(first, last):
        number[f] = 0
        if bounds.varies[f]:
            interval_of_bin = bounds.interval_of_bin[f]
            number[f] = cut_feature(
                table[f], bounds.counts[f], n_docs, control[BEST], interval_of_bin, first_bin[f], last_bin[f]
            )


@kernel
def _change_potentials(task, team, documents, bounds):
    """π of some queries' documents, and how it has changed."""
    n_tasks, n_queries = team.control[N_TASKS], len(documents.share)
    first, last = n_queries * task // n_tasks, n_queries * (task + 1) // n_tasks
    segment_ptr, query_segments = documents.segment_ptr, documents.query_segments
    start, end = segment_ptr[query_segments[first]], segment_ptr[query_segments[last]]
    query_potentials(documents, team.numbers[TOTAL], first, last, bounds.changes)
    rise, step = pack_changes(documents.pi, bounds.reference_pi, bounds.changes, start, end)
    bounds.moved[task, 0], bounds.moved[task, 1] = rise, step
