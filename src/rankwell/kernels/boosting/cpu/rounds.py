"""RankBoost on the CPU: rounds in compiled code.

A round: π, best weak ranker, α, new weights. It is a sequence of stages; `run_rounds` does the tasks of one, then asks
for the next. So a batch of rounds is one call from Python. Processes that train together call `lead_stage` for each
stage instead, and exchange results in between.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankwell.kernels.boosting.cpu.bounded_search import continue_search
from rankwell.kernels.boosting.cpu.histograms import choose_weak_ranker
from rankwell.kernels.boosting.cpu.tasks import (
    BEGIN,
    BY_DOCUMENTS,
    BY_FEATURES,
    CHANGES,
    CHOICE,
    CHOSEN_R,
    COMMON,
    DIVISION,
    DOWN_FACTOR,
    EXPONENTS,
    FEATURE,
    FINISHED,
    HISTOGRAMS,
    INTEGRALS,
    POTENTIALS,
    ROUNDS_DONE,
    STAGE,
    SUMS,
    THRESHOLD,
    TOTAL,
    UP_FACTOR,
    WEIGHTS,
    count_tasks,
    work_off,
)
from rankwell.kernels.boosting.cpu.weights import level_ratios, query_sum
from rankwell.kernels.boosting.precision import LARGEST_R, RECENTRE_ROUNDS, weight_factors
from rankwell.kernels.cpu.lean_compilation import inlined_kernel, inner_kernel, kernel
from rankwell.kernels.cpu.team import (
    STOP,
    publish,
    read_place,
    wait_a_little,
    wait_for_tasks,
    write_place,
)

_weight_factors = kernel(weight_factors)


class Plan(NamedTuple):
    """The input of a batch of rounds.

    first_round : rounds done before
    n_rounds : rounds to do
    n_bins : int
    margin : how much two r may differ and still count as equal, in units of 2^−30
    query_tasks : tasks that queries are divided into
    n_halvings : of the learning rate
    """

    first_round: int
    n_rounds: int
    n_bins: int
    margin: int
    query_tasks: int
    n_halvings: int


class Record(NamedTuple):
    """The rounds of a batch, written: see `BoostedRounds`."""

    feature: np.ndarray
    bin: np.ndarray
    r: np.ndarray
    loss: np.ndarray


@kernel
def run_rounds(worker, team, documents, search, bounds, intervals, record, plan):
    """Run rounds until `plan`'s number is done or training ends; worker 0 leads, the others help.

    bounds, intervals : Bounds and Intervals, or None if every round searches every feature
    """
    control, times = team.control, 0
    while read_place(control, STOP) == 0:
        worked = work_off(worker, team, documents, search, bounds, intervals)
        if worker > 0:
            times = 0 if worked else times + 1
            wait_a_little(times)
            continue
        wait_for_tasks(control)
        if _lead(team, documents, search, bounds, intervals, record, plan) == BEGIN:
            write_place(control, STOP, 1)


@kernel
def lead_stage(team, documents, search, bounds, intervals, record, plan):
    """What worker 0 does after a stage, and the tasks of the next one; returns that one, BEGIN if there is none.

    CHOICE has no tasks: FEATURE, THRESHOLD, CHOSEN_R, both factors and the marked documents are then to be set, or
    FINISHED, before the next call.
    """
    stage = _lead(team, documents, search, bounds, intervals, record, plan)
    if stage not in (BEGIN, CHOICE):
        work_off(0, team, documents, search, bounds, intervals)
        wait_for_tasks(team.control)
    return stage


@kernel
def help_stages(worker, team, documents, search, bounds, intervals):
    """What the other workers do: tasks of every stage, until the team stops."""
    times = 0
    while read_place(team.control, STOP) == 0:
        times = 0 if work_off(worker, team, documents, search, bounds, intervals) else times + 1
        wait_a_little(times)


@inlined_kernel
def _lead(team, documents, search, bounds, intervals, record, plan):
    control = team.control
    stage = control[STAGE]
    if stage == CHOICE:
        stage = BEGIN if control[FINISHED] else WEIGHTS
    elif stage >= POTENTIALS:
        stage = _continue_search(stage, control, documents.pi, search, bounds, intervals, plan.margin)
        if stage == BEGIN:
            stage = CHOICE if control[DIVISION] == BY_FEATURES else _choose(team, search, plan)
    else:
        stage = _continue_round(stage, team, documents, record, plan)
        if bounds is not None:
            stage = CHANGES if stage == POTENTIALS else stage
    if stage != BEGIN:
        control[STAGE] = stage
        if stage != CHOICE:
            publish(control, stage, count_tasks(stage, plan.query_tasks, control, search, bounds))
    return stage


@inlined_kernel
def _continue_search(stage, control, pi, search, bounds, intervals, margin):
    """The next stage of the search, or BEGIN if it is done."""
    if bounds is not None:
        return continue_search(stage, control, pi, search, bounds, intervals, margin)
    if stage == INTEGRALS:
        return BEGIN
    return HISTOGRAMS if stage == POTENTIALS else INTEGRALS


@inlined_kernel
def _choose(team, search, plan):
    """Choose the weak ranker of the round: new weights are next, or BEGIN if none helps."""
    control, numbers = team.control, team.numbers
    feature, threshold = choose_weak_ranker(search.table, search.largest, plan.n_bins, plan.margin)
    if feature < 0:
        control[FINISHED] = 1
        return BEGIN
    control[FEATURE], control[THRESHOLD] = feature, threshold
    r = search.table[feature, threshold]
    r = r if r < LARGEST_R else LARGEST_R
    control[CHOSEN_R] = r if r > -LARGEST_R else -LARGEST_R
    numbers[UP_FACTOR], numbers[DOWN_FACTOR] = _weight_factors(control[CHOSEN_R], plan.n_halvings)
    return WEIGHTS


@inlined_kernel
def _continue_round(stage, team, documents, record, plan):
    """The stage after the new weights: in some rounds exponents; then the record, and π of the next round or BEGIN."""
    control, numbers = team.control, team.numbers
    t = control[ROUNDS_DONE]
    if stage == WEIGHTS and (plan.first_round + t + 1) % RECENTRE_ROUNDS == 0:
        return EXPONENTS
    if stage == EXPONENTS:
        control[COMMON] = _ratios(documents)
        return SUMS
    if stage != BEGIN:
        if control[DIVISION] != BY_DOCUMENTS:  # there the sum is that of all processes
            numbers[TOTAL] = query_sum(documents.share, documents.lanes)
        r = control[CHOSEN_R]
        record.feature[t], record.bin[t], record.r[t] = control[FEATURE], control[THRESHOLD], r
        record.loss[t] = math.ldexp(numbers[TOTAL], control[COMMON])
        t += 1
        control[ROUNDS_DONE] = t
        control[FINISHED] = abs(r) >= LARGEST_R
    return BEGIN if t == plan.n_rounds or control[FINISHED] else POTENTIALS


@inner_kernel
def _ratios(documents):
    return level_ratios(
        documents.query_segments,
        documents.query_weight,
        documents.up_exponent,
        documents.down_exponent,
        documents.up_ratio,
        documents.down_ratio,
        documents.bridge,
    )
