"""Every public name has an example in its docstring, and the examples are right."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import pytest
from tests.serving.server_process import serving_from

import rankwell

# A text, not an object with a docstring.
NAMES = [name for name in rankwell.__all__ if name != "__version__"]
# The methods of public classes that have examples.
METHODS = [
    f"{name}.{method}"
    for name in NAMES
    if inspect.isclass(getattr(rankwell, name))
    for method, function in vars(getattr(rankwell, name)).items()
    if not method.startswith("_") and ">>>" in (function.__doc__ or "")
]
ADDRESS = "http://127.0.0.1:8080"


def examples_of(name: str) -> str:
    return attrgetter(name)(rankwell).__doc__ or ""


@pytest.fixture
def address(name: str, tmp_path: Path) -> Iterator[str]:
    """Where a server of two notes is, for examples that call one; otherwise the address that they name."""
    if ADDRESS not in examples_of(name):
        yield ADDRESS
        return
    pytest.importorskip("starlette")
    with rankwell.IndexWriter(tmp_path / "index", language="en") as writer:
        writer.add([{"id": "n1", "body": "buy milk"}, {"id": "n2", "body": "call the dentist on Monday"}])
        writer.commit()
    (tmp_path / "words.yaml").write_text("inputs: [{expression: bm25.body}]")
    rankwell.MadeRanker.from_yaml(tmp_path / "words.yaml").save(tmp_path / "words.rank")
    with serving_from(tmp_path / "index", "--ranker", tmp_path / "words.rank") as (_, client):
        yield client.address


@pytest.mark.parametrize("name", NAMES + METHODS)
def test_the_example_of_a_public_name_is_right(
    name: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "import lightgbm" in examples_of(name):
        pytest.importorskip("lightgbm")
    monkeypatch.chdir(tmp_path)
    text = examples_of(name).replace(ADDRESS, address)
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert example.examples, f"rankwell.{name} has no example"
    assert not any(doctest.SKIP in line.options for line in example.examples)
    printed: list[str] = []
    doctest.DocTestRunner().run(example, out=printed.append)
    assert not printed, "".join(printed)
