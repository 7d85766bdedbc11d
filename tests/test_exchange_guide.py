"""The Python code of docs/guide/exchange.md runs as it is, in a folder with the files that it names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import sklearn
from tests.cli.test_trec import QRELS, QUERIES, TEXTS
from tests.test_documentation import write_part

import rankwell
from rankwell.features.feature_set import make_feature_set
from rankwell.features.queries import QueryText
from rankwell.features.training_data import judged_features

GUIDE = Path(__file__).parents[1] / "docs/guide/exchange.md"


def examples_of_the_guide() -> list[str]:
    return re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for seed, part in enumerate(("train", "test")):
        write_part(tmp_path / f"{part}.txt", seed)
    ranker = rankwell.LambdaMART(n_rounds=5).fit(rankwell.read("train.txt"))
    ranker.save("model.rank")
    rankwell.export(ranker, "model.txt", to="lightgbm")
    with rankwell.IndexWriter("idx") as writer:
        writer.add([{"id": name, "text": text} for name, text in TEXTS.items()])
        writer.commit()
    index = rankwell.Index.open("idx")
    features = make_feature_set("mslr", index.schema.streams, index.schema.statics)
    queries = [QueryText(name, text) for name, text in QUERIES.items()]
    rankwell.LeastSquares(normalize="none").fit(judged_features(index, queries, QRELS, features).dataset).save(
        "ltr.rank"
    )
    rankwell.write_qrels(QRELS, "qrels.txt")
    rankwell.write_run({query: {"d1": 1.0, "d2": 0.5} for query in QUERIES}, "run.txt")
    return tmp_path


def test_onnx_gives_the_scores_of_a_ranker_that_compares_documents(folder: Path) -> None:
    """The README's ranker does: RankBoost with its normaliser."""
    for module in ("onnx", "onnxruntime"):
        pytest.importorskip(module)
    ranker = rankwell.RankBoost(n_rounds=5).fit(rankwell.read("train.txt"))
    assert ranker.description_.needs_queries
    rankwell.export(ranker, "model.onnx", to="onnx")
    (example,) = (example for example in examples_of_the_guide() if "import onnxruntime" in example)
    names: dict[str, object] = {"rankwell": rankwell}
    exec(compile(example, str(GUIDE), "exec"), names)
    expected = ranker.predict(rankwell.read("test.txt"))
    np.testing.assert_allclose(names["scores"], expected, rtol=1e-6, atol=1e-9)  # type: ignore[arg-type]


def test_examples_run(folder: Path) -> None:
    for module in ("onnx", "onnxruntime", "pandas"):
        pytest.importorskip(module)
    examples = examples_of_the_guide()
    names: dict[str, object] = {}
    with sklearn.config_context():
        for example in examples:
            exec(compile(example, str(GUIDE), "exec"), names)
    ranker, data, imported = names["ranker"], names["data"], names["imported"]
    assert isinstance(ranker, rankwell.Ranker)
    assert isinstance(imported, rankwell.ImportedRanker)
    np.testing.assert_allclose(names["scores"], ranker.predict(data), rtol=1e-6)  # type: ignore[arg-type]
    np.testing.assert_allclose(imported.predict(data), ranker.predict(data), rtol=1e-12)
    assert (folder / "model.onnx").exists()
    assert (folder / "again.txt").exists()
    assert len(names["results"]) > 0  # type: ignore[arg-type]
