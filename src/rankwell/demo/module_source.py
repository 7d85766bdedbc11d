"""ModuleSource: what one module defines, re-exports and uses, by its source. The module is parsed, never run."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from rankwell.demo.definitions import Definition, is_public

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class ModuleSource:
    """One parsed module.

    Attributes
    ----------
    name : str
    definitions : list of Definition
        The module itself if it has a docstring, then its documented public classes, methods and functions.
    exports : list of (str, str, str)
        Imports at its top level: the module imported from, the name there ("*" for all), the name here.
    listed : tuple of str, or None
        What `__all__` lists, if it is a literal.
    uses : Counter of str
        How often the code names something it imported, by the name it was imported under: ``os.path.join``.
    """

    name: str
    definitions: list[Definition] = field(default_factory=list)
    exports: list[tuple[str, str, str]] = field(default_factory=list)
    listed: tuple[str, ...] | None = None
    uses: Counter[str] = field(default_factory=Counter)

    def members(self) -> list[Definition]:
        """The definitions without the module itself."""
        return [definition for definition in self.definitions if definition.kind != "module"]

    def is_exported(self, name: str) -> bool:
        """Whether `__all__` lists a name; without `__all__`, whether the name is public."""
        return is_public(name) if self.listed is None else name in self.listed


def parse_module(text: bytes, name: str, is_package: bool) -> ModuleSource:
    """Read a module's text.

    Raises
    ------
    SyntaxError, ValueError
        The text is not Python of this interpreter's version.
    """
    tree = ast.parse(text)
    source = ModuleSource(name)
    documented = ast.get_docstring(tree)
    if documented:
        source.definitions.append(Definition(name, name, "module", documented))
    seen: set[str] = set()
    for node in _statements(tree.body):
        if isinstance(node, ast.ImportFrom):
            origin = _imported_module(node, name, is_package)
            source.exports.extend((origin, alias.name, alias.asname or alias.name) for alias in node.names)
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            source.listed = _literal_names(node.value)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            source.definitions.extend(_definitions(node, name, name, seen))
    source.uses = _uses(tree, name, is_package)
    return source


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a body, those inside `if` and `try` as well."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _statements([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _statements([*node.body, *(s for handler in node.handlers for s in handler.body), *node.orelse])
        else:
            yield node


def _definitions(node: ast.stmt, prefix: str, module: str, seen: set[str]) -> Iterator[Definition]:
    """A class or function that is public and documented, and the members of a class; the first of a name counts."""
    if isinstance(node, ast.ClassDef):
        yield from _class_definitions(node, prefix, module, seen)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        name = f"{prefix}.{node.name}"
        documented = ast.get_docstring(node)
        if documented and not node.name.startswith("_") and name not in seen:
            seen.add(name)
            signature, n_parameters = _signature(node, is_method=prefix != module)
            yield Definition(name, module, "function", documented, signature, n_parameters)


def _class_definitions(node: ast.ClassDef, prefix: str, module: str, seen: set[str]) -> Iterator[Definition]:
    """A class, documented by its own docstring and its constructor's, and its members."""
    name = f"{prefix}.{node.name}"
    if node.name.startswith("_") or name in seen:
        return
    seen.add(name)
    members = list(_statements(node.body))
    constructor = next((m for m in members if isinstance(m, Function) and m.name == "__init__"), None)
    texts = [ast.get_docstring(node), None if constructor is None else ast.get_docstring(constructor)]
    documented = "\n\n".join(text for text in texts if text)
    if documented:
        signature, n_parameters = ("", 0) if constructor is None else _signature(constructor, is_method=True)
        yield Definition(name, module, "class", documented, signature, n_parameters)
    for member in members:
        yield from _definitions(member, name, module, seen)


def _signature(node: Function, is_method: bool) -> tuple[str, int]:
    """A function's parameters as they are written, without annotations, and how many there are."""
    arguments = node.args
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    if is_method and "staticmethod" not in decorators:
        del (arguments.posonlyargs or arguments.args)[:1]
    if "property" in decorators:
        return "", 0
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    named = [argument for argument in every if argument is not None]
    for argument in named:
        argument.annotation = None
    return f"({ast.unparse(arguments)})", len(named)


def _imported_module(node: ast.ImportFrom, name: str, is_package: bool) -> str:
    """The module of a `from ... import`, relative ones resolved."""
    if not node.level:
        return node.module or ""
    package = name.split(".") if is_package else name.split(".")[:-1]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def _literal_names(value: ast.expr) -> tuple[str, ...] | None:
    if not isinstance(value, ast.List | ast.Tuple):
        return None
    return tuple(e.value for e in value.elts if isinstance(e, ast.Constant) and isinstance(e.value, str))


def _uses(tree: ast.Module, name: str, is_package: bool) -> Counter[str]:
    """Dotted names in the code whose first part was imported, as the names they were imported under."""
    imported: dict[str, str] = {}
    uses: Counter[str] = Counter()
    dotted: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                imported[alias.asname or first] = alias.name if alias.asname else first
                uses[alias.name] += 1
        elif isinstance(node, ast.ImportFrom):
            origin = _imported_module(node, name, is_package)
            imported.update((alias.asname or alias.name, f"{origin}.{alias.name}") for alias in node.names)
            uses[origin] += 1
        elif isinstance(node, ast.Attribute | ast.Name):
            dotted.append(node)
    for node in dotted:
        first, _, rest = _dotted_name(node).partition(".")
        if first in imported:
            uses[f"{imported[first]}.{rest}" if rest else imported[first]] += 1
    return Counter({used: count for used, count in uses.items() if is_public(used) and used})


def _dotted_name(node: ast.expr) -> str:
    """``a.b.c`` of an expression that consists of names and dots; empty for any other."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])
