"""`--set` and `--grid`: text becomes what the constructor's annotations say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Optional, Union

import pytest

from rankwell.cli.figures import value_text
from rankwell.cli.settings import parameters_of, parse_grid, parse_settings
from rankwell.errors import ParameterError
from rankwell.rankers.least_squares import LeastSquares
from rankwell.rankers.registry import RANKERS, ranker_class


class Everything:
    """A constructor with every kind of parameter."""

    name = "everything"

    def __init__(
        self,
        rounds: int = 10,
        rate: float = 0.1,
        verbose: bool = False,
        normalize: str = "none",
        hidden: tuple[int, ...] = (15,),
        seed: int | None = None,
        limit: Optional[float] = None,  # noqa: UP045
        ridge: Union[float, str] = "auto",  # noqa: UP007
        layers: int | tuple[int, ...] = 1,
        loss: Literal["hinge", "squared"] = "hinge",
        degree: Literal[1, 2] = 1,
        plain=5,
        open_=None,
        pair=(1, 2.5, "a"),
        hook: Callable[[int], int] | None = None,
        anything: Any = None,
    ) -> None: ...


@pytest.mark.parametrize(
    ("setting", "key", "value"),
    [
        ("rounds=300", "rounds", 300),
        ("rounds= 300 ", "rounds", 300),
        ("rate=1", "rate", 1.0),
        ("rate=1e-3", "rate", 0.001),
        ("verbose=true", "verbose", True),
        ("verbose=No", "verbose", False),
        ("normalize=none", "normalize", "none"),
        ("normalize=a=b", "normalize", "a=b"),
        ("hidden=15,15", "hidden", (15, 15)),
        ("hidden=7", "hidden", (7,)),
        ("hidden=", "hidden", ()),
        ("seed=none", "seed", None),
        ("seed=3", "seed", 3),
        ("limit=None", "limit", None),
        ("limit=2", "limit", 2.0),
        ("ridge=auto", "ridge", "auto"),
        ("ridge=0.5", "ridge", 0.5),
        ("layers=3", "layers", 3),
        ("layers=3,4", "layers", (3, 4)),
        ("loss=squared", "loss", "squared"),
        ("degree=2", "degree", 2),
        ("plain=6", "plain", 6),
        ("open_=text", "open_", "text"),
        ("open_=2.5", "open_", 2.5),
        ("pair=1,2.5,a", "pair", (1, 2.5, "a")),
        ("hook=none", "hook", None),
        ("anything=gain,1e-4,fixed8", "anything", ("gain", 1e-4, "fixed8")),
        ("anything=none", "anything", None),
        ("anything=7", "anything", 7),
    ],
)
def test_text_becomes_the_annotated_type(setting: str, key: str, value: object) -> None:
    parsed = parse_settings(Everything, [setting])[key]
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("rounds=ten", "--set rounds must be a whole number, got 'ten'."),
        ("rounds=1.5", "--set rounds must be a whole number, got '1.5'."),
        ("rate=fast", "--set rate must be a number, got 'fast'."),
        ("verbose=maybe", "--set verbose must be true or false, got 'maybe'."),
        ("seed=x", "--set seed must be a whole number or none, got 'x'."),
        ("hidden=15,x", "--set hidden must be a list of values separated by commas, each a whole number, got '15,x'."),
        ("loss=log", "--set loss must be one of hinge, squared, got 'log'."),
        ("hook=print", "set in Python"),
        ("rounds", "--set takes key=value, got 'rounds'."),
        ("=3", "--set takes key=value, got '=3'."),
        ("round=3", "everything has no such parameter. Did you mean rounds? It has rounds, rate,"),
        ("__class__=3", "everything has no such parameter."),
        ("rounds=__import__('os')", "--set rounds must be a whole number"),
    ],
)
def test_a_wrong_setting_says_what_is_allowed(setting: str, message: str) -> None:
    with pytest.raises(ParameterError) as raised:
        parse_settings(Everything, [setting])
    assert message in str(raised.value)


def test_a_parameter_set_twice_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"--set rounds=\.\.\. is given more than once"):
        parse_settings(Everything, ["rounds=1", "rounds=2"])


def test_dashes_in_a_key_are_underscores() -> None:
    assert parse_settings(Everything, ["open-=1"]) == {"open_": 1}


@pytest.mark.parametrize(
    ("entry", "key", "values"),
    [
        ("rounds=1,2,3", "rounds", [1, 2, 3]),
        ("rate=0.1", "rate", [0.1]),
        ("seed=none,4", "seed", [None, 4]),
        ("hidden=15,15;30", "hidden", [(15, 15), (30,)]),
        ("hidden=15,15", "hidden", [(15, 15)]),
        ("rounds=1;2", "rounds", [1, 2]),
        ("normalize=none,letor", "normalize", ["none", "letor"]),
    ],
)
def test_a_grid_lists_values(entry: str, key: str, values: list[object]) -> None:
    assert parse_grid(Everything, [entry]) == {key: values}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["rounds=1,,2"], "--grid rounds must be a whole number, got ''."),
        (["rounds"], "--grid takes key=a,b,c, got 'rounds'."),
        (["round=1"], "Did you mean rounds?"),
        (["rounds=1", "rounds=2"], "more than once"),
    ],
)
def test_a_wrong_grid_says_what_is_allowed(entries: list[str], message: str) -> None:
    with pytest.raises(ParameterError) as raised:
        parse_grid(Everything, entries)
    assert message in str(raised.value)


def test_a_ranker_is_read_by_its_own_constructor() -> None:
    assert parameters_of(LeastSquares) == {"ridge": float, "normalize": str}


@pytest.mark.parametrize("name", RANKERS)
def test_every_default_of_every_ranker_can_be_written_and_read_again(name: str) -> None:
    ranker = ranker_class(name)()
    for key in parameters_of(type(ranker)):
        default = getattr(ranker, key)
        assert parse_settings(type(ranker), [f"{key}={value_text(default)}"]) == {key: default}
