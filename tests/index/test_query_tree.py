"""Nodes of a query's tree as keys: equal are only two of one kind that have equal parts."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args

import pytest

from rankwell.index.query import tree
from rankwell.index.query.tree import (
    And,
    Everything,
    Exists,
    Group,
    Keyword,
    Leaf,
    Near,
    Node,
    Not,
    Nothing,
    Or,
    Phrase,
    Prefix,
    Range,
    Similar,
    Word,
    both,
    either,
)

A = Word(b"a")
NODES: list[Any] = [
    A,
    Phrase((b"a",), (0,)),
    Prefix(b"a"),
    Near(b"a", 0),
    Similar(((b"a", 1.0),)),
    Range("a", 0.0, 1.0),
    Keyword("a", b"a"),
    Exists("a"),
    Everything(),
    Nothing(),
    And((A,)),
    Or((A,)),
    Not(A),
    Group((A,)),
]


def test_every_kind_of_node_is_here() -> None:
    kinds = {kind for kind in vars(tree).values() if isinstance(kind, type) and kind.__module__ == tree.__name__}
    assert {type(node) for node in NODES} == kinds == {*get_args(Leaf), And, Or, Not, Group}
    assert all(map(is_dataclass, kinds))


@pytest.mark.parametrize("kind", get_args(Node), ids=lambda kind: kind.__name__)
def test_nodes_of_two_kinds_differ_whatever_they_hold(kind: Any) -> None:
    """The same values in the places of the parts, as many as a kind has."""
    for other in get_args(Node):
        for value in ((), (A,), A, b"a", 0):
            one, two = (made(*[value] * len(fields(made))) for made in (kind, other))
            assert (one == two) is (kind is other)
            assert len({one, two}) == 1 + (kind is not other)
            assert one != tuple(getattr(one, part.name) for part in fields(one))


def test_equal_nodes_are_one_key() -> None:
    for node in NODES:
        for same in (replace(node), copy.deepcopy(node), pickle.loads(pickle.dumps(node))):
            assert same == node
            assert {node: 1}[same] == 1


def test_joined_parts_of_two_kinds_are_both_kept() -> None:
    every, none = And((A, Word(b"b"))), Or((A, Word(b"b")))
    assert either(every, none, every) == Or((every, *none.parts))
    assert both(Not(every), Not(none), Not(none)) == And((Not(every), Not(none)))
    assert both(Everything(), Nothing()) == And((Everything(), Nothing()))
