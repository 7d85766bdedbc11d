"""The figures that Microsoft published for LETOR 4.0, by fold and metric, from the tables if they are present."""

from __future__ import annotations

from benchmarks.harness import Benchmark


def published_figures(bench: Benchmark, algorithm: str, collection: str) -> dict[tuple[str, str], float]:
    """Test figures by fold (``"Fold1"``, ..., ``"average"``) and metric (``"mean_ndcg"``, ``"map"``, ``"ndcg@1"``)."""
    table = bench.data(f"letor/published/{algorithm}.{collection}.txt")
    if table is None:
        return {}
    testing = table.read_text().split("Performance on validation set")[0]
    figures: dict[tuple[str, str], float] = {}
    names: list[str] = []
    for cells in (line.split() for line in testing.splitlines()):
        if cells[:1] == ["Folds"]:
            names = [{"MeanNDCG": "mean_ndcg"}.get(cell, cell.lower()) for cell in cells[1:]]
        elif cells and names and len(cells) == len(names) + 1:
            figures |= {(cells[0], name): float(cell) for name, cell in zip(names, cells[1:], strict=True)}
    return figures
