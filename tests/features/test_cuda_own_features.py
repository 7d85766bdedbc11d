"""Own features with a CUDA device: vectors are multiplied there, and all values are those of the CPU."""

import numpy as np
import pytest

from rankwell import Index, IndexWriter
from rankwell.features.extraction import extract
from rankwell.features.feature_set import FeatureSet
from rankwell.features.hit_reading import collect_hits
from rankwell.features.own_features import OwnFeatures, with_own
from rankwell.index.schema import Schema
from rankwell.kernels.device_report import report_device

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not report_device("cuda").usable, reason=report_device("cuda").description),
]

NAMES = ["bm25.whole", "own.size(default=0)", "dot.first", "cosine.first(default=0)", "cosine.second", "length.whole"]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Two segments; every fifth document has no vectors."""
    folder, rng = tmp_path_factory.mktemp("own") / "index", np.random.default_rng(1)
    schema = Schema(vectors={"first": 48, "second": (33, "int8")})
    with IndexWriter(folder, schema=schema, max_segments=9) as writer:
        for part in range(2):
            writer.add(
                {"id": f"{part}-{number}", "body": " ".join(f"w{one}" for one in rng.integers(0, 9, 5))}
                | ({"first": rng.normal(size=48), "second": rng.normal(size=33)} if number % 5 else {})
                for number in range(200)
            )
            writer.commit()
    return Index.open(folder)


def test_values_and_features_are_those_of_the_cpu(index):
    own = OwnFeatures(
        functions={"size": lambda query, documents: [len(document) for document in documents]},
        query_vectors={
            "first": lambda text: np.sin(np.arange(48) + len(text)),
            "second": lambda text: np.cos(np.arange(33)) if "w1" in text else None,
        },
    )
    feature_set, rng = FeatureSet(NAMES), np.random.default_rng(2)
    queries = [index.parse(text) for text in ("w1 w2", "w3", "w1 w8 w4")]
    docs = [rng.permutation(400)[:size] for size in (100, 1, 333)]
    rows = {}
    for device in ("cpu", "cuda"):
        hits = collect_hits(index, queries, docs)
        rows[device] = extract(
            with_own(hits, feature_set, index, queries, docs, own, device=device), feature_set, device=device
        )
    np.testing.assert_array_equal(rows["cuda"], rows["cpu"])
    assert np.isfinite(rows["cpu"]).any(axis=0).all()
