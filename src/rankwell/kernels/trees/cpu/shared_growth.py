"""A tree by several processes that share no memory, each with some of the documents: see `growth`.

Each leads a tree of its own through the same stages. Between them, the histograms of the leaf that was counted, and how
many documents went left, are added up over processes: every decision is then that of one process with all documents.
"""

from __future__ import annotations

from rankwell.kernels.cpu.lean_compilation import kernel
from rankwell.kernels.cpu.team import STOP, publish, read_place, wait_a_little, wait_for_tasks
from rankwell.kernels.trees.cpu.growth import (
    begin,
    bound_sides,
    choose_leaf,
    count_left,
    divide_leaf,
    is_joined_by_all,
    join_alone,
    keep_best,
    order_children,
    prepare_stage,
)
from rankwell.kernels.trees.cpu.tasks import (
    ADD,
    COUNT,
    JOIN,
    LARGE_DOCS,
    PART,
    SEARCH,
    SMALL_DOCS,
    work_off,
)
from rankwell.kernels.trees.cpu.workspace import DEPTH, NODE_DOCS

BEGIN = 0
# Places in `state`: where the tree is; the leaf being cut, and the leaves searched; documents that went left, of this
# process and of all, those that count and the others.
STAGE, LEAVES, LEAF, SMALL_LEAF, LARGE_LEAF, OWN_LEFT, OWN_OTHERS_LEFT, ALL_LEFT, ALL_OTHERS_LEFT = range(9)
N_STATE = 9


@kernel
def lead_tree(state, docs, control, space, columns, limits, plan):
    """What worker 0 does after a stage, and the tasks of the next one; returns that one, BEGIN if the tree is grown.

    After COUNT the histograms of the smaller leaf are to be added up over processes; after PART OWN_LEFT and
    OWN_OTHERS_LEFT, into ALL_LEFT and ALL_OTHERS_LEFT.

    docs : int64 (2, n_leaves), documents of each leaf over all processes, those that count and the others; those of
        leaf 0 are set at first
    """
    whole, real, live = space.whole, space.real, space.live
    stage, n_leaves, following = state[STAGE], state[LEAVES], BEGIN
    if stage == ADD:
        return BEGIN
    if stage == BEGIN:
        begin(control, whole, real, live, limits, plan)
        control[SMALL_DOCS] = docs[0, 0] + docs[1, 0]
        n_leaves, following = 1, COUNT
    elif stage == COUNT:
        following = SEARCH
    elif stage == SEARCH:
        keep_best(space.found, space.found_gain, 0, state[SMALL_LEAF], whole, real)
        if n_leaves > 1:
            keep_best(space.found, space.found_gain, 1, state[LARGE_LEAF], whole, real)
    else:
        leaf, new = state[LEAF], n_leaves
        bound_sides(leaf, new, whole, real, live, space, columns, limits)
        divide_leaf(leaf, new, state[OWN_LEFT], state[OWN_OTHERS_LEFT], whole, real)
        whole[NODE_DOCS, new - 1] = docs[0, leaf] + docs[1, leaf]
        docs[0, new], docs[1, new] = docs[0, leaf] - state[ALL_LEFT], docs[1, leaf] - state[ALL_OTHERS_LEFT]
        docs[0, leaf], docs[1, leaf] = state[ALL_LEFT], state[ALL_OTHERS_LEFT]
        small, large = order_children(leaf, new, docs[0, leaf] <= docs[0, new], control, whole)
        control[SMALL_DOCS] = docs[0, small] + docs[1, small]
        control[LARGE_DOCS] = docs[0, large] + docs[1, large]
        state[SMALL_LEAF], state[LARGE_LEAF] = small, large
        n_leaves += 1
        is_deepest = plan.max_depth > 0 and whole[DEPTH, leaf] >= plan.max_depth
        if n_leaves < plan.n_leaves and not is_deepest:
            following = COUNT
    if following == BEGIN:
        leaf = choose_leaf(real, n_leaves) if n_leaves < plan.n_leaves else -1
        state[LEAF] = leaf
        following = PART if leaf >= 0 else ADD
    n_tasks = prepare_stage(following, state[LEAF], n_leaves, control, space, columns, limits, plan)
    state[STAGE], state[LEAVES] = following, n_leaves
    publish(control, following, n_tasks)
    work_off(0, control, space, columns, plan)
    wait_for_tasks(control)
    if following == PART and is_joined_by_all(control):
        publish(control, JOIN, n_tasks)
        work_off(0, control, space, columns, plan)
        wait_for_tasks(control)
    elif following == PART:
        join_alone(control, space, n_tasks)
    if following == PART:
        state[OWN_LEFT], state[OWN_OTHERS_LEFT] = count_left(control, space.sides, n_tasks)
    return following


@kernel
def help_tree(worker, control, space, columns, plan):
    """What the other workers do: tasks of every stage, until the team stops."""
    times = 0
    while read_place(control, STOP) == 0:
        times = 0 if work_off(worker, control, space, columns, plan) else times + 1
        wait_a_little(times)
