"""The Python code in the README and the guide runs as it is."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import sklearn

import rankwell

ROOT = Path(__file__).parents[1]


def write_part(path: Path, seed: int) -> None:
    """Twelve queries of eight documents as LETOR text; the first feature says a good deal about the label."""
    generator = np.random.default_rng(seed)
    features = generator.standard_normal((96, 5)).round(3)
    labels = np.clip(np.round(features[:, 0] + 0.3 * generator.standard_normal(96)), 0, 2)
    with open(path, "w") as stream:
        for row, (label, values) in enumerate(zip(labels, features, strict=True)):
            pairs = " ".join(f"{number}:{value}" for number, value in enumerate(values, start=1))
            stream.write(f"{label:g} qid:{row // 8} {pairs}\n")


@pytest.mark.parametrize("page", ["README.md", "docs/guide/python.md"])
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo-output").mkdir()
    for seed, part in enumerate(("train", "vali", "test")):
        write_part(tmp_path / "demo-output" / f"{part}.txt", seed)
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert examples
    names: dict[str, object] = {}
    with sklearn.config_context():
        for example in examples:
            exec(compile(example, page, "exec"), names)
    again, ranker, test = names["again"], names["ranker"], names["test"]
    assert isinstance(again, rankwell.RankBoost)
    assert isinstance(ranker, rankwell.RankBoost)
    np.testing.assert_array_equal(again.predict(test), ranker.predict(test))
