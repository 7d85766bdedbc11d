"""Definition: one thing that the library documents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["module", "class", "function"]


@dataclass(frozen=True)
class Definition:
    """A module, class, function or method with its documentation.

    Attributes
    ----------
    name : str
        The name a user writes, from the module on: ``zipfile.ZipFile.open``.
    module : str
        The first part of that name: ``zipfile``. The name itself for a module.
    kind : ``"module"``, ``"class"`` or ``"function"``
    docstring : str
        Without the indentation; never empty.
    signature : str
        ``(name, mode='r')``; empty if there is none.
    n_parameters : int
        Parameters of the signature, without `self` and `cls`.
    """

    name: str
    module: str
    kind: Kind
    docstring: str
    signature: str = ""
    n_parameters: int = 0

    @property
    def parent(self) -> str:
        """The class or module that holds it; empty for a module at the top."""
        return self.name.rpartition(".")[0]

    @property
    def local_name(self) -> str:
        """The name inside its module: ``ZipFile.open``; the module's name for a module."""
        return self.name.removeprefix(f"{self.module}.")

    def exported_as(self, module: str) -> Definition:
        """The same definition as another module's: as after `from zipfile import ZipFile` there."""
        return replace(self, name=f"{module}.{self.local_name}", module=module)


def is_public(name: str) -> bool:
    """Whether no part of a dotted name starts with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))
