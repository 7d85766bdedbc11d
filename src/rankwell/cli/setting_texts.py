"""What each setting of a ranker means: from the section Parameters of its class's docstring and those it inherits."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

from rankwell.cli.settings import parameters_of

_SECTION = re.compile(r"^(?P<title>\w+)\n-+$", re.MULTILINE)
_ENTRY = re.compile(r"^(?P<names>[\w*]+(?:, \w+)*)(?: : (?P<kind>.+))?$")


@dataclass(frozen=True)
class SettingText:
    """kind : what values it takes; meaning : what it does"""

    kind: str
    meaning: str


def setting_texts(ranker: type) -> dict[str, SettingText]:
    """By setting, in the constructor's order. A class's text follows the one of the class it inherits from."""
    found: dict[str, SettingText] = {}
    for cls in reversed(inspect.getmro(ranker)):
        for name, own in _entries(inspect.cleandoc(cls.__doc__ or "")).items():
            inherited = found.get(name, SettingText("", ""))
            found[name] = SettingText(own.kind or inherited.kind, f"{inherited.meaning} {own.meaning}".strip())
    return {name: found.get(name, SettingText("", "")) for name in parameters_of(ranker)}


def summary_text(ranker: type) -> str:
    """The docstring up to its first section."""
    text = inspect.cleandoc(ranker.__doc__ or "")
    section = _SECTION.search(text)
    return text[: section.start()].strip() if section else text


def _entries(docstring: str) -> dict[str, SettingText]:
    """The entries of the section Parameters; names that share an entry share its text, and have a kind each or one."""
    sections = list(_SECTION.finditer(docstring))
    for place, section in enumerate(sections):
        if section["title"] == "Parameters":
            end = sections[place + 1].start() if place + 1 < len(sections) else len(docstring)
            return _section_entries(docstring[section.end() : end].strip("\n").split("\n"))
    return {}


def _section_entries(lines: list[str]) -> dict[str, SettingText]:
    entries: dict[str, SettingText] = {}
    names: list[str] = []
    for line in lines:
        entry = _ENTRY.match(line)
        if entry is not None:
            names = entry["names"].split(", ")
            kinds = (entry["kind"] or "").split(", ")
            kinds = kinds if len(kinds) == len(names) else [entry["kind"] or ""] * len(names)
            entries |= {name: SettingText(kind, "") for name, kind in zip(names, kinds, strict=True)}
        elif line.startswith(" "):
            for name in names:
                before = entries[name]
                entries[name] = SettingText(before.kind, f"{before.meaning} {line.strip()}".strip())
        elif line:
            break  # a paragraph after the last entry
    return entries
