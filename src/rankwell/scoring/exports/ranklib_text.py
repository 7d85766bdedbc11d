"""RankLib's model files, by what the ranker is:

| ranker | model |
| --- | --- |
| linear, without a constant | Coordinate Ascent: `feature:weight ...` |
| linear | Linear Regression: the same, with the constant as feature 0 |
| a sum of step functions (RankBoost) | RankBoost: `feature:threshold:weight ...` |
| a sum of trees | LambdaMART: an ensemble in XML |

Features are counted from 1. RankLib has no missing values: a feature that a document lacks counts as 0. Its trees are
float32, so that their sums differ from ours by rounding; linear models and RankBoost are float64.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankwell.scoring.description import RankerDescription
from rankwell.scoring.exports.numbers_as_text import float32_text, float64_text
from rankwell.scoring.exports.refusal import cannot_say
from rankwell.scoring.exports.tree_sum import TreeSum, check_by_document, check_plain_columns, tree_sum
from rankwell.scoring.inputs import BucketInputs
from rankwell.scoring.linear_form import LinearForm, is_linear, linear_form
from rankwell.scoring.trees import TreeInputs

TITLE = "RankLib"


def write_ranklib(description: RankerDescription) -> bytes:
    """The model as RankLib's `-save` writes it."""
    return ranklib_text(description).encode()


def ranklib_text(description: RankerDescription) -> str:
    check_by_document(description, TITLE)
    if is_linear(description):
        return _linear_text(linear_form(description))
    whole = tree_sum(description, TITLE)
    if whole.activation != "identity":
        raise cannot_say(TITLE, f"{whole.activation} of the sum")
    if all(isinstance(group, BucketInputs) for group in description.inputs):
        return _rankboost_text(whole)
    check_plain_columns(whole, TITLE)
    return _lambdamart_text(whole)


def _linear_text(form: LinearForm) -> str:
    weights = " ".join(f"{number}:{float64_text(weight)}" for number, weight in enumerate(form.coef, start=1))
    if form.intercept == 0:
        return f"## Coordinate Ascent\n{weights}\n"
    return f"## Linear Regression\n## Lambda = 0.0\n0:{float64_text(form.intercept)} {weights}\n"


def _rankboost_text(whole: TreeSum) -> str:
    """Each step up or down of a step function is a weak ranker; its lowest value is one that every document has."""
    steps = [step for group in whole.groups for t in range(len(group)) for step in _steps(group, t)]
    if whole.bias:
        steps.append((0, -np.inf, whole.bias))
    weak = (f"{feature + 1}:{_threshold_text(above)}:{float64_text(weight)}" for feature, above, weight in steps)
    return f"## RankBoost\n## Iteration = {len(steps)}\n## No. of threshold candidates = 0\n{' '.join(weak)}\n"


def _threshold_text(threshold: float) -> str:
    # Java's word for it.
    return "-Infinity" if threshold == -np.inf else float64_text(threshold)


def _steps(trees: TreeInputs, t: int) -> Iterator[tuple[int, float, float]]:
    """(feature, threshold, added above it) of a step function, from the leaves of its tree left to right."""
    start, first_leaf = int(trees.node_ptr[t]), int(trees.leaf_ptr[t])
    below, height = -np.inf, 0.0
    feature = 0
    waiting = [(0 if trees.node_ptr[t + 1] > start else -1, np.inf)]
    while waiting:
        place, upper = waiting.pop()
        if place < 0:
            value = float(trees.leaf_value[first_leaf - 1 - place])
            # The leaf of missing values is above every value.
            if below < np.finfo(np.float32).max and value != height:
                yield feature, below, value - height
                height = value
            below = upper
        else:
            node = start + place
            feature = int(trees.column_feature[trees.column[node]])
            waiting += [(int(trees.right[node]), upper), (int(trees.left[node]), float(trees.threshold[node]))]


def _lambdamart_text(whole: TreeSum) -> str:
    trees = [(group, t) for group in whole.groups for t in range(len(group))]
    lines = ["## LambdaMART", f"## No. of trees = {len(trees) + bool(whole.bias)}", "", "<ensemble>"]
    for number, (group, t) in enumerate(trees, start=1):
        lines += [f'\t<tree id="{number}" weight="1.0">', "\t\t<split>", *_tree_lines(group, t), "\t\t</split>"]
        lines.append("\t</tree>")
    if whole.bias:
        lines += [f'\t<tree id="{len(trees) + 1}" weight="1.0">', "\t\t<split>", f"\t\t\t{_output(whole.bias)}"]
        lines += ["\t\t</split>", "\t</tree>"]
    return "\n".join([*lines, "</ensemble>", ""])


def _tree_lines(trees: TreeInputs, t: int) -> Iterator[str]:
    """The elements inside a tree's outermost split; a text in `waiting` is a line that closes a split."""
    start, first_leaf = int(trees.node_ptr[t]), int(trees.leaf_ptr[t])
    waiting: list[tuple[int, int] | str] = [(0 if trees.node_ptr[t + 1] > start else -1, 3)]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
            continue
        place, depth = item
        indent = "\t" * depth
        if place < 0:
            yield indent + _output(float(trees.leaf_value[first_leaf - 1 - place]))
            continue
        node = start + place
        yield f"{indent}<feature>{int(trees.column_feature[trees.column[node]]) + 1} </feature>"
        yield f"{indent}<threshold> {float32_text(trees.threshold[node])} </threshold>"
        yield f'{indent}<split pos="left">'
        waiting += [
            f"{indent}</split>",
            (int(trees.right[node]), depth + 1),
            f'{indent}</split>\n{indent}<split pos="right">',
            (int(trees.left[node]), depth + 1),
        ]


def _output(value: float) -> str:
    return f"<output>{float64_text(value)} </output>"
