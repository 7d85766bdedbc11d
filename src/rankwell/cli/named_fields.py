"""Fields that the options of `rankwell index` name, and that no document has: their names may be misspelt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rankwell.cli.console import say


def warn_of_absent_fields(path: Path, named: Mapping[str, Sequence[str]]) -> None:
    """Warn of each field that an option names and no document of the index has; documents added later may have it.

    named : the names that each option gives
    """
    from difflib import get_close_matches

    from rankwell.index.query.query import query_of
    from rankwell.index.query.tree import Exists
    from rankwell.index.reader import Index

    index = Index.open(path)
    if not index.n_docs:
        return
    options = {name: option for option, names in named.items() for name in names}
    absent = [name for name in options if not index.count(query_of(Exists(name), False))]
    present = [name for name in index.schema.fields() if name not in absent]
    for name in absent:
        near = get_close_matches(name, present, 1)
        guess = f"; is it {near[0]!r}?" if near else "."
        say(
            f"warning: no document has the field {name!r}, which {options[name]} names{guess} The fields of the "
            f"documents are {', '.join(present) or 'none'}."
        )


def note_missing_statics(path: Path, name: str, *, quiet: bool) -> None:
    """Say how many documents have no value of the static order, if some have one."""
    from rankwell.index.query.query import query_of
    from rankwell.index.query.tree import Exists
    from rankwell.index.reader import Index

    index = Index.open(path)
    n_known = index.count(query_of(Exists(name), False))
    if 0 < n_known < index.n_docs:
        say(
            f"{index.n_docs - n_known:,} of {index.n_docs:,} documents have no {name!r}, which --static-order names: "
            "they are last.",
            quiet=quiet,
        )
