"""What an index holds, as a table or as JSON."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankwell.cli.console import print_json, show


def describe_index(path: Path, *, as_json: bool) -> None:
    """Print the summary of the index's newest generation."""
    summary = _summary(path)
    if as_json:
        print_json(summary)
        return
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _rows(summary).items():
        table.add_row(name, text)
    show(table)


def _summary(path: Path) -> dict[str, Any]:
    from rankwell.index.reader import Index
    from rankwell.index.statistics import Statistics

    index = Index.open(path)
    n_numbers = int(index.bases[-1])
    return {
        "index": str(path),
        "generation": index.generation,
        "n_docs": index.n_docs,
        "n_deleted": n_numbers - index.n_docs,
        "n_words": int(Statistics.of(index).tokens[-1]),
        "streams": list(index.schema.streams),
        "statics": list(index.schema.statics),
        "keywords": list(index.schema.keywords),
        "dates": list(index.schema.dates),
        "vectors": {name: list(kind) for name, kind in index.schema.vectors.items()},
        "static_order": index.schema.static_order,
        "forward": list(index.schema.streams) if index.schema.forward == "all" else list(index.schema.forward),
        "analysis": index.analysis.to_json(),
        "n_shards": len(getattr(index, "shards", ())),
        "n_bytes": _folder_bytes(path),
        # As stored on disk, deleted documents included.
        "segments": [
            {"name": one.name, "n_docs": one.n_docs, "n_terms": one.n_terms, "n_words": one.tokens[-1]}
            for one in index.segments
        ],
    }


def _vectors(vectors: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} of {size:,} {kind}" for name, (size, kind) in vectors.items())


def _folder_bytes(path: Path) -> int:
    """The size of a folder's files; a writer may remove some of them meanwhile."""
    n_bytes = 0
    for file in path.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            n_bytes += file.stat().st_size
    return n_bytes


def _rows(summary: Mapping[str, Any]) -> dict[str, str]:
    analysis, segments = summary["analysis"], summary["segments"]
    deleted = f" ({summary['n_deleted']:,} deleted, on disk until a merge)" if summary["n_deleted"] else ""
    return {
        "index": summary["index"],
        "documents": f"{summary['n_docs']:,}{deleted}",
        "words": f"{summary['n_words']:,}",
        "streams": ", ".join(summary["streams"]) or "none",
        "statics": ", ".join(summary["statics"]) or "none",
        "keywords": ", ".join(summary["keywords"]) or "none",
        "dates": ", ".join(summary["dates"]) or "none",
        **({"vectors": _vectors(summary["vectors"])} if summary["vectors"] else {}),
        "forward": ", ".join(summary["forward"]) or "none",
        "static order": summary["static_order"] or "none",
        "language": analysis["language"] or "none",
        "stemmer": analysis["stemmer"] or "none",
        "accents": "folded" if analysis.get("fold_accents") else "kept",
        "stop words": f"{len(analysis['stop_words']):,}",
        "common words": f"{len(analysis['common_words']):,}",
        **({"shards": f"{summary['n_shards']:,}"} if summary["n_shards"] else {}),
        "segments": f"{len(segments)}{_sizes([one['n_docs'] for one in segments])}",
        "bytes": f"{summary['n_bytes']:,}",
        "generation": f"{summary['generation']:,}",
    }


def _sizes(sizes: list[int]) -> str:
    return f" of {', '.join(f'{size:,}' for size in sizes)} documents" if sizes else ""
