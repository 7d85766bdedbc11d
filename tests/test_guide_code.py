"""The Python code of the guide is complete: its names are defined or said, and pages run where their files are."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import numpy as np
import pytest
from tests.test_documentation import write_part

import rankwell

GUIDE = Path(__file__).parents[1] / "docs/guide"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
PAGES = sorted(path.name for path in GUIDE.glob("*.md") if BLOCK.search(path.read_text()))


def blocks_of(page: str) -> list[str]:
    return BLOCK.findall((GUIDE / page).read_text())


def run(page: str, names: dict[str, object], *, replaced: tuple[str, str] = ("", "")) -> dict[str, object]:
    for block in blocks_of(page):
        exec(compile(block.replace(*replaced), page, "exec"), names)
    return names


def defined_names(tree: ast.AST) -> set[str]:
    """What the code binds, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(name.asname or name.name).partition(".")[0] for name in node.names}
    return found


@pytest.mark.parametrize("page", PAGES)
def test_names_are_defined_or_said(page: str) -> None:
    """By a block before, or by the text or a comment, which say what they are."""
    known = set(dir(builtins))
    text = (GUIDE / page).read_text()
    said = set(re.findall(r"`(\w+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)))
    for block in blocks_of(page):
        tree = ast.parse(block)
        known |= defined_names(tree)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert used - known <= said


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for seed, part in enumerate(("train", "vali", "test")):
        write_part(tmp_path / f"{part}.txt", seed)
        rankwell.write(rankwell.read(f"{part}.txt"), f"{part}.parquet")
    ranker = rankwell.LambdaMART(n_rounds=100, min_docs_leaf=5).fit(rankwell.read("train.txt"))
    ranker.save("model.rank")
    rankwell.export(ranker, "model.txt", to="lightgbm")
    return tmp_path


def test_large_data(folder: Path) -> None:
    ranker = run("large-data.md", {}, replaced=("/fast-disk/tmp", str(folder)))["ranker"]
    test = rankwell.read("test.txt")
    expected = rankwell.RankBoost().fit(rankwell.read("train.parquet")).predict(test)
    assert isinstance(ranker, rankwell.RankBoost)
    np.testing.assert_array_equal(ranker.predict(test), expected)


def test_cluster(folder: Path) -> None:
    pytest.importorskip("ray")
    train = rankwell.read("train.parquet")
    for number, queries in enumerate((range(6), range(6, 12))):
        rankwell.write(train.subset(list(queries)), f"part-{number}.parquet")
    ranker, test = run("cluster.md", {})["ranker"], rankwell.read("test.txt")
    expected = rankwell.RankBoost().fit(train, eval_set=rankwell.read("vali.txt")).predict(test)
    assert isinstance(ranker, rankwell.RankBoost)
    np.testing.assert_array_equal(ranker.predict(test), expected)


def test_metrics(folder: Path) -> None:
    generator = np.random.default_rng(0)
    features, labels = generator.normal(size=(200, 46)), generator.integers(0, 3, 200)
    rankwell.write(rankwell.RankingDataset(features, labels, group=[10] * 20), "mq2007.txt")
    names = run("metrics.md", {})
    expected = rankwell.evaluate(names["data"], names["scores"], metrics="ndcg@10")
    assert names["evaluation"].mean["ndcg@10"] == expected.mean["ndcg@10"]  # type: ignore[attr-defined]
    assert names["evaluator"].mean(names["scores"]) == expected.mean["ndcg@10"]  # type: ignore[attr-defined]


def test_ranker_files(folder: Path) -> None:
    rows = rankwell.read("test.txt").dense_features()
    names = run("ranker-files.md", {"X": rows, "rows": rows})
    scores = names["scorer"].score(rows)  # type: ignore[attr-defined]
    np.testing.assert_allclose(names["ranker"].predict(rows), scores, rtol=1e-12)  # type: ignore[attr-defined]


def test_ranker_descriptions(folder: Path) -> None:
    page = (GUIDE / "ranker-descriptions.md").read_text()
    (boost,) = re.findall(r"```yaml\n(# boosted.yaml\n.*?)```", page, re.DOTALL)
    Path("boosted.yaml").write_text(boost)
    run("ranker-descriptions.md", {})
    rows = np.column_stack((rankwell.read("test.txt").dense_features(), np.full(96, np.e - 1)))
    scores = rankwell.load("model.rank").predict(rows[:, :-1].astype(np.float32))
    np.testing.assert_allclose(rankwell.load("boosted.rank").predict(rows), 1.1 * scores, rtol=1e-5)
