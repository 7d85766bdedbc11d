"""A ranker description as YAML that `reader` reads back: the same scores, to the bit.

Trees and parts are references to the ranker's file; everything else is written out. Numbers are the shortest that
read back as the same float64 (edges of buckets: float32).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from rankwell.scoring.description import RankerDescription
from rankwell.scoring.inputs import BucketInputs, ExpressionInputs, InputGroup, LinearInputs, LogLinearInputs
from rankwell.scoring.layers import Dense, Layer, Sum
from rankwell.scoring.trees import TreeInputs
from rankwell.scoring.written.transforms import constant_of

_WIDTH = 110
_PLAIN = re.compile(r"[A-Za-z_./][\w./-]*", re.ASCII)

_Entry = tuple[str, str | list[str]]
"""A key and its value: a text, or the items of a list."""


def format_description(description: RankerDescription, file: str) -> str:
    """The description in YAML.

    file : the path of a ranker file that holds the description, relative to where the YAML will be
    """
    lines = _list("features:", map(_text, description.feature_names), 0)
    lines += _normaliser_lines(description)
    if description.parts:
        lines.append("rankers:")
    for part in description.parts:
        here = tuple(description.feature_names[f] for f in part.features)
        entries: list[_Entry] = [("file", _text(file)), ("part", _text(part.name))]
        if here != part.description.feature_names:
            entries.append(("features", [_text(name) for name in here]))
        lines += _entry_lines(f"  {_text(part.name)}:", entries, 4)
    if description.first_pass is not None:
        first = description.parts[description.first_pass.part].name
        lines.append(f"first-pass: {{ranker: {_text(first)}, keep: {description.first_pass.keep}}}")
    lines.append("inputs:")
    n_tree_groups = sum(isinstance(group, TreeInputs) for group in description.inputs)
    tree_group = 0
    for group in description.inputs:
        if isinstance(group, TreeInputs):
            tree_group += 1
            which: list[_Entry] = [("group", str(tree_group))] if n_tree_groups > 1 else []
            lines += _entry_lines("  - trees:", [("file", _text(file)), *which], 6)
        else:
            lines += _input_lines(group, description.column_names)
    if description.layers:
        lines.append("layers:")
    for layer in description.layers:
        lines += _layer_lines(layer)
    return "\n".join(lines) + "\n"


def _normaliser_lines(description: RankerDescription) -> list[str]:
    normaliser = description.normaliser
    if normaliser.name != "standard":
        return [] if normaliser.name == "none" else [f"normaliser: {normaliser.name}"]
    lines = ["normaliser:", "  standard:"]
    for name in ("mean", "scale"):
        lines += _list(f"{name}:", map(_number, normaliser.arrays[name]), 4)
    return lines


def _input_lines(group: InputGroup, columns: Sequence[str]) -> Iterator[str]:
    for i in range(len(group)):
        if isinstance(group, ExpressionInputs):
            yield _expression_line(group.expressions[i], float(group.missing[i]))
        elif isinstance(group, BucketInputs):
            yield from _entry_lines("  - bucket:", _bucket_entries(group, i, columns), 6)
        elif isinstance(group, LinearInputs | LogLinearInputs):
            numbers = {"scale": (group.scale[i], 1.0), "offset": (group.offset[i], 0.0)}
            numbers["missing"] = (group.missing[i], 0.0)
            entries: list[_Entry] = [("feature", _text(columns[int(group.feature[i])]))]
            entries += [(key, _number(value)) for key, (value, usual) in numbers.items() if not _same(value, usual)]
            yield from _entry_lines(f"  - {group.kind}:", entries, 6)


def _bucket_entries(group: BucketInputs, i: int, columns: Sequence[str]) -> list[_Entry]:
    start, end = int(group.edge_ptr[i]), int(group.edge_ptr[i + 1])
    entries: list[_Entry] = [
        ("feature", _text(columns[int(group.feature[i])])),
        ("edges", [_edge(edge) for edge in group.edges[start:end]]),
        ("values", [_number(value) for value in group.values[start + i : end + i + 1]]),
    ]
    return entries if _same(group.missing[i], 0.0) else [*entries, ("missing", _number(group.missing[i]))]


def _expression_line(text: str, missing: float) -> str:
    if constant_of(text) is not None and _same(missing, 0.0):
        return f"  - constant: {text.strip()}"
    if _same(missing, 0.0):
        return f"  - expression: {_quoted(text)}"
    return f"  - expression: {{text: {_quoted(text)}, missing: {_number(missing)}}}"


def _layer_lines(layer: Layer) -> list[str]:
    if isinstance(layer, Sum):
        return ["  - sum"] if _same(layer.bias, 0.0) else [f"  - sum: {{bias: {_number(layer.bias)}}}"]
    if not isinstance(layer, Dense):
        return ["  - mean"]
    lines = ["  - dense:", "      weights:"]
    for row in np.asarray(layer.weights):
        lines += _list("-", map(_number, row), 8)
    lines += _list("bias:", map(_number, layer.bias), 6)
    return [*lines, f"      activation: {layer.activation}"]


def _entry_lines(head: str, entries: Sequence[_Entry], indent: int) -> list[str]:
    """A mapping after `head`: on one line if it fits, else a line for each key."""
    flat = ", ".join(f"{key}: {value if isinstance(value, str) else _flow(value)}" for key, value in entries)
    if len(head) + len(flat) + 3 <= _WIDTH:
        return [f"{head} {{{flat}}}"]
    lines = [head]
    for key, value in entries:
        if isinstance(value, str):
            lines.append(f"{' ' * indent}{key}: {value}")
        else:
            lines += _list(f"{key}:", value, indent)
    return lines


def _flow(items: Sequence[str]) -> str:
    return f"[{', '.join(items)}]"


def _list(head: str, items: Iterable[str], indent: int) -> list[str]:
    """A list in brackets after `head`, on as many lines as it needs."""
    lines, line = [], " " * indent + head + " ["
    rest = list(items)
    for number, item in enumerate(rest, start=1):
        piece = item + ("," if number < len(rest) else "]")
        if len(line) + len(piece) > _WIDTH:
            lines.append(line.rstrip())
            line = " " * (indent + 2)
        line += piece + " "
    lines.append(line.rstrip() if rest else line + "]")
    return lines


def _text(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else _quoted(text)


def _quoted(text: str) -> str:
    """In single quotes, in which a feature's double quotes need no escapes, unless there are control characters."""
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text, ensure_ascii=False)


def _number(value: Any) -> str:
    number = float(value)
    if np.isinf(number):
        return ".inf" if number > 0 else "-.inf"
    return repr(number)


def _edge(edge: np.float32) -> str:
    """The shortest text that is this float32; through float64, as the reader reads it."""
    short = str(edge)
    is_same = np.isfinite(edge) and np.float32(float(short)) == edge
    return repr(float(short)) if is_same else _number(edge)


def _same(value: Any, usual: float) -> bool:
    """Whether a number is the default, and not minus zero."""
    return float(value) == usual and bool(np.signbit(value) == np.signbit(usual))
