"""What `rankwell warm` compiles, and what a wheel is built from."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rankwell
from rankwell.warming.subjects import SUBJECTS, warm

COMMANDS = [
    "convert data.txt data.csv",
    "train rankboost data.txt --vali data.txt --set n_rounds=3 --out boosted.rank",
    "train lambdamart data.txt --vali data.txt --set n_rounds=3 --out trees.rank",
    "train lambdamart data.txt --set n_rounds=3 --set growth=symmetric --set query_fraction=0.5 --out symmetric.rank",
    "train ranksvm data.txt --out linear.rank",
    "train listnet data.txt --set n_epochs=2 --out network.rank",
    "train lambdarank data.txt --set n_epochs=2 --out lambda.rank",
    "train lambdarank data.txt --set n_epochs=2 --set loss=xendcg --out softmax.rank",
    "train least-squares data.txt --out squares.rank",
    "evaluate data.txt boosted.rank",
    "compare data.txt boosted.rank linear.rank",
    "predict trees.rank data.txt --out tree-scores.txt",
    "predict network.rank data.txt --out scores.txt",
    "index build documents.jsonl --out index --forward all",
    "index build documents.jsonl --out ordered --static-order year",
    "search index +wing heat",
    "search ordered wing --stop-after 1",
    "search index --like 1",
    "features index queries.tsv qrels --out features.txt",
    "index check index",
]


@pytest.fixture
def files(tmp_path):
    """Data, documents, queries and judgments for the commands."""
    data = rankwell.make_ranking(n_queries=20, n_docs=160, n_features=4)
    rankwell.write(data, tmp_path / "data.txt")
    texts = ["heat of a wing", "wing and flow", "the boundary layer"]
    documents = [json.dumps({"id": str(number), "body": text, "year": number}) for number, text in enumerate(texts)]
    (tmp_path / "documents.jsonl").write_text("\n".join(documents))
    (tmp_path / "queries.tsv").write_text("1\twing\n2\tboundary layer\n")
    (tmp_path / "qrels").write_text("1 0 0 1\n2 0 2 2\n")
    return tmp_path


def run(command, folder, package, cache):
    environment = os.environ | {"PYTHONPATH": str(package), "RANKWELL_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-m", *command.split()],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )


def test_an_unknown_subject_is_refused_before_anything_is_compiled():
    begun = []
    with pytest.raises(rankwell.ParameterError, match=r"subject must be one of .*'rankboost'.* got 'nonsense'"):
        warm(["metrics", "nonsense"], begun.append)
    assert begun == []


def test_each_subject_is_named_before_its_turn():
    begun = []
    warm(["reading", "metrics"], begun.append)
    assert begun == ["reading", "metrics"]
    assert set(begun) < set(SUBJECTS)


@pytest.mark.slow
def test_an_installation_with_machine_code_compiles_nothing(files, tmp_path_factory):
    package = tmp_path_factory.mktemp("package")
    source = Path(rankwell.__file__).parent
    shutil.copytree(source, package / "rankwell", ignore=shutil.ignore_patterns("__pycache__"))
    prebuilt = package / "rankwell" / "kernels" / "prebuilt"
    run(f"rankwell.warming.prebuilt {prebuilt} x86-64-v3", files, package, package / "scratch")
    cache = package / "cache"
    for command in COMMANDS:
        run(f"rankwell {command}", files, package, cache)
        compiled = sorted(path.name for path in cache.iterdir()) if cache.exists() else []
        assert compiled == [], command
    versions = prebuilt / "versions.json"
    versions.write_text(versions.read_text().replace('"numba": "', '"numba": "0.'))
    result = run("rankwell evaluate data.txt boosted.rank", files, package, cache)
    assert "kernels are compiled on first use" in result.stderr
    assert any(cache.iterdir())
