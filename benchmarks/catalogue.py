"""The benchmarks: one module per question, found by parsing the files, without importing any.

A benchmark is a module of this folder with a docstring (the question) and a top-level function ``run``; everything
else here is machinery. A name that ends in ``_cuda`` needs a CUDA device.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Question:
    """One benchmark: the name of its module, and the question its docstring asks."""

    name: str
    text: str

    @property
    def needs_cuda(self) -> bool:
        return self.name.endswith("_cuda")


def find_questions(folder: Path = FOLDER) -> list[Question]:
    """Every benchmark of the folder, by name."""
    found = (_question_of(path) for path in sorted(folder.glob("*.py")))
    return [question for question in found if question is not None]


def _question_of(path: Path) -> Question | None:
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    if not any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body):
        return None
    docstring = ast.get_docstring(tree)
    if not docstring:
        raise ValueError(f"{path.name} has a run() but no docstring. Its first line must be the question it answers.")
    first_paragraph = docstring.split("\n\n")[0]
    return Question(path.stem, " ".join(first_paragraph.split()))
