"""Several rounds in compiled code: gradients of pairs, their packing, and a tree, by the same team of threads.

To wake a thread takes 0.1 ms, and what Python does between the steps of a round nearly as long: with few documents that
is a large part of a round. Stages before those of the tree (`growth`): `GRADIENTS` of a range of queries, and the
largest of them; `UNITS`, the sum of a part of the documents at the first scale; `PACK`, the same at the final one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.lean_compilation import inlined_kernel, kernel
from rankwell.kernels.cpu.team import (
    DONE,
    STOP,
    add_to_place,
    publish,
    read_place,
    take_task,
    wait_a_little,
    wait_for_tasks,
    write_place,
)
from rankwell.kernels.trees import rules
from rankwell.kernels.trees.cpu.gradients import largest_values, pack_units, sum_units
from rankwell.kernels.trees.cpu.growth import Plan, begin, choose_counting, follow, prepare_stage
from rankwell.kernels.trees.cpu.lambdas import new_scratch, pair_gradients, ranges_of_queries, room_for
from rankwell.kernels.trees.cpu.splits import LOWER_HALF, Limits, read_limits
from rankwell.kernels.trees.cpu.tasks import ADD, COUNT, ROUND, work_on
from rankwell.kernels.trees.cpu.vector_code import FIRST_DISTANCE
from rankwell.kernels.trees.cpu.workspace import Workspace
from rankwell.kernels.trees.losses import JudgedQueries, RankingLoss, distance_weights

GRADIENTS, UNITS, PACK = range(16, 19)
# Ranges of queries for each worker, if there are several; documents of a part that is packed, at least, and parts for
# each worker at most. A task is taken in a fraction of a microsecond.
_RANGES_PER_WORKER = 12
_DOCS_PER_PART = 4096
_PARTS_PER_WORKER = 4
# Places in `GrownRounds.numbers`.
LEAVES, GRADIENT_EXPONENT, HESSIAN_EXPONENT = range(3)
_LINE = 8

first_exponent = inlined_kernel(rules.first_exponent)
final_exponent = inlined_kernel(rules.final_exponent)


class RoundGradients(NamedTuple):
    """What gradients are computed from, and where.

    queries, loss, by_distance : see `pair_gradients`
    cuts : int64, where ranges of queries begin
    table, room, places, sums : its scratch, by worker
    gradient, hessian : float32 (n_docs,)
    rows : uint32 (n_docs,), the documents in the order of a tree that has one leaf
    found : float64 (n_ranges, 8), the largest gradient and Hessian of each range
    units : int64 (n_parts, 8), of each part of the documents, the sums of gradients and Hessians
    scales : float64 (2,), by which they are multiplied
    no_counts : uint8 (0,): all documents count
    """

    queries: JudgedQueries
    loss: RankingLoss
    by_distance: np.ndarray
    cuts: np.ndarray
    table: np.ndarray
    room: np.ndarray
    places: np.ndarray
    sums: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray
    rows: np.ndarray
    found: np.ndarray
    units: np.ndarray
    scales: np.ndarray
    no_counts: np.ndarray


class GrownRounds(NamedTuple):
    """The trees of rounds, as a `Workspace` has them.

    whole, real : (n_rounds, fields, n_leaves); numbers : int64 (n_rounds, 3), leaves and exponents of each
    """

    whole: np.ndarray
    real: np.ndarray
    numbers: np.ndarray


def new_round_gradients(
    loss: RankingLoss,
    queries: JudgedQueries,
    rows: np.ndarray,
    gradient: np.ndarray,
    hessian: np.ndarray,
    n_workers: int,
) -> RoundGradients:
    """The arrays for a team of `n_workers`."""
    cuts = ranges_of_queries(queries, n_workers, _RANGES_PER_WORKER)
    n_parts = max(1, min(len(rows) // _DOCS_PER_PART, _PARTS_PER_WORKER * n_workers))
    scratch = zip(*(new_scratch(queries) for _ in range(n_workers)), strict=True)
    table, room, places, sums = (np.stack(arrays) for arrays in scratch)
    return RoundGradients(
        queries=queries,
        loss=loss,
        by_distance=distance_weights(loss, room_for(queries), FIRST_DISTANCE),
        cuts=cuts,
        table=table,
        room=room,
        places=places,
        sums=sums,
        gradient=gradient,
        hessian=hessian,
        rows=rows,
        found=np.zeros((len(cuts) - 1, _LINE)),
        units=np.zeros((n_parts, _LINE), np.int64),
        scales=np.zeros(2),
        no_counts=np.zeros(0, np.uint8),
    )


def new_grown_rounds(space: Workspace, n_rounds: int) -> GrownRounds:
    return GrownRounds(
        np.zeros((n_rounds, *space.whole.shape), np.int64),
        np.zeros((n_rounds, *space.real.shape)),
        np.zeros((n_rounds, HESSIAN_EXPONENT + 1), np.int64),
    )


@inlined_kernel
def _prepare(kind, task, worker, given, packed, rows, scores):
    """Do a task of the stages before a tree."""
    if kind == GRADIENTS:
        first, last = given.cuts[task], given.cuts[task + 1]
        pair_gradients(
            first,
            last,
            given.queries,
            given.loss,
            given.by_distance,
            scores,
            given.gradient,
            given.hessian,
            given.table[worker],
            given.room[worker],
            given.places[worker],
            given.sums[worker],
        )
        start, end = given.queries.query_ptr[first], given.queries.query_ptr[last]
        largest_g, largest_h = largest_values(given.gradient, given.hessian, start, end)
        given.found[task, 0], given.found[task, 1] = largest_g, largest_h
        return
    n_docs, n_parts = len(packed), len(given.units)
    start, end = n_docs * task // n_parts, n_docs * (task + 1) // n_parts
    scale_g, scale_h = given.scales[0], given.scales[1]
    if kind == UNITS:
        total_g, total_h = sum_units(given.gradient, given.hessian, scale_g, scale_h, start, end)
        given.units[task, 0], given.units[task, 1] = total_g, total_h
        return
    total = pack_units(given.gradient, given.hessian, scale_g, scale_h, start, end, packed, given.no_counts)
    given.units[task, 0] = total
    for place in range(start, end):
        rows[place] = given.rows[place]


@inlined_kernel
def _work_off(worker, control, space, columns, plan, given):
    """Take tasks while there are any; returns whether there were any."""
    worked = False
    while True:
        kind, task = take_task(control, worker)
        if kind < 0:
            return worked
        if kind >= GRADIENTS:
            _prepare(kind, task, worker, given, space.packed, space.rows, space.scores)
        else:
            work_on(kind, task, worker, control, space, columns, plan)
        add_to_place(control, DONE, 1)
        worked = True


@inlined_kernel
def _scaled_limits(settings, a, b, numbers):
    """The limits in units of the exponents, also written to `numbers`."""
    least = math.ceil(min(math.ldexp(settings.min_hessian_leaf, b), np.float64(LOWER_HALF)))
    limits = Limits(
        math.ldexp(settings.l1, a),
        math.ldexp(settings.l2, b),
        math.ldexp(settings.min_gain, 2 * a - b),
        settings.min_docs_leaf,
        np.int64(least),
        settings.is_bounded,
        settings.category_smoothing,
        settings.category_l2,
        settings.max_category_set,
    )
    numbers[0], numbers[1], numbers[2] = limits.l1, limits.l2, limits.min_gain
    numbers[3], numbers[4], numbers[5] = limits.min_docs_leaf, limits.min_hessian_leaf, limits.is_bounded
    numbers[6], numbers[7], numbers[8] = limits.category_smoothing, limits.category_l2, limits.max_category_set
    return limits


@inlined_kernel
def _scaled_plan(plan, total, exponent):
    """The plan of a tree with these sums, and leaf values of units of 2^exponent."""
    return Plan(
        plan.n_leaves,
        plan.max_depth,
        plan.most_parts,
        plan.n_docs,
        plan.n_counting,
        total,
        plan.words_per_slab,
        math.ldexp(1.0, exponent),
        plan.learning_rate,
        plan.node_features,
        plan.seed,
        plan.number,
    )


@inlined_kernel
def _largest_found(found):
    largest_g, largest_h = 0.0, 0.0
    for part in range(len(found)):
        largest_g, largest_h = max(largest_g, found[part, 0]), max(largest_h, found[part, 1])
    return largest_g, largest_h


@inlined_kernel
def _sum_of_parts(units):
    first, second = np.int64(0), np.int64(0)
    for part in range(len(units)):
        first += units[part, 0]
        second += units[part, 1]
    return first, second


@inlined_kernel
def _keep_tree(number, n_leaves, a, b, space, grown):
    grown.numbers[number, LEAVES] = n_leaves
    grown.numbers[number, GRADIENT_EXPONENT], grown.numbers[number, HESSIAN_EXPONENT] = a, b
    for field in range(space.whole.shape[0]):
        for leaf in range(n_leaves):
            grown.whole[number, field, leaf] = space.whole[field, leaf]
    for field in range(space.real.shape[0]):
        for leaf in range(n_leaves):
            grown.real[number, field, leaf] = space.real[field, leaf]


@kernel
def grow_rounds(worker, control, space, columns, settings, plan, given, grown):
    """Grow a tree in each of some rounds; worker 0 leads and returns how many there are, the others help.

    There are fewer than `grown` has room for if gradients are 0 or a tree has one leaf.

    settings : Limits, before they are multiplied by powers of two, but min_hessian_leaf a float64
    plan : of which total and scale are not used
    given : RoundGradients; grown : GrownRounds, written
    """
    times, number, n_leaves, leaf, small, large, n_tasks = 0, 0, 1, 0, 0, 0, 1
    a, b = 0, 0
    limits, own = read_limits(space.limits), plan
    stage = GRADIENTS
    if worker == 0:
        publish(control, stage, len(given.found))
    while read_place(control, STOP) == 0:
        worked = _work_off(worker, control, space, columns, plan, given)
        if worker > 0:
            times = 0 if worked else times + 1
            wait_a_little(times)
            continue
        wait_for_tasks(control)
        if stage == GRADIENTS:
            largest_g, largest_h = _largest_found(given.found)
            if largest_g <= 0.0 or largest_h <= 0.0:
                write_place(control, STOP, 1)
                continue
            a, b = first_exponent(largest_g), first_exponent(largest_h)
            given.scales[0], given.scales[1] = math.ldexp(1.0, a), math.ldexp(1.0, b)
            stage = UNITS
            publish(control, stage, len(given.units))
        elif stage == UNITS:
            total_g, total_h = _sum_of_parts(given.units)
            a = final_exponent(a, total_g, plan.n_docs, rules.GRADIENT_BITS)
            b = final_exponent(b, total_h, plan.n_docs, rules.HESSIAN_BITS)
            given.scales[0], given.scales[1] = math.ldexp(1.0, a), math.ldexp(1.0, b)
            stage = PACK
            publish(control, stage, len(given.units))
        elif stage == PACK:
            total, _ = _sum_of_parts(given.units)
            limits, own = _scaled_limits(settings, a, b, space.limits), _scaled_plan(plan, total, b - a)
            control[ROUND] = number
            n_leaves, leaf, small, large = 1, 0, 0, 0
            begin(control, space.whole, space.real, space.live, limits, own)
            n_tasks = prepare_stage(COUNT, leaf, n_leaves, control, space, columns, limits, own)
            stage, n_tasks = choose_counting(n_tasks, control, space, limits)
            publish(control, stage, n_tasks)
        elif stage != ADD:
            stage, n_tasks, n_leaves, leaf, small, large = follow(
                stage, n_tasks, n_leaves, leaf, small, large, control, space, columns, limits, own
            )
        elif n_leaves < 2:
            write_place(control, STOP, 1)
        else:
            _keep_tree(number, n_leaves, a, b, space, grown)
            number += 1
            if number == len(grown.numbers):
                write_place(control, STOP, 1)
                continue
            stage = GRADIENTS
            publish(control, stage, len(given.found))
    return number
