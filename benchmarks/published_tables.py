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
    n_rows = 0
    for cells in (line.split() for line in testing.splitlines()):
        # RankSVM's table has the parameter of each fold instead of its name.
        if cells[:1] in (["Folds"], ["Para"]):
            names, n_rows = [{"MeanNDCG": "mean_ndcg"}.get(cell, cell.lower()) for cell in cells[1:]], 0
        elif cells and names and len(cells) == len(names) + 1:
            n_rows += 1
            fold = "average" if cells[0] in ("average", "Avg") else f"Fold{n_rows}"
            figures |= {(fold, name): float(cell) for name, cell in zip(names, cells[1:], strict=True)}
    return figures
