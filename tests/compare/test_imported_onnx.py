"""Tree ensembles in ONNX score here as they do in ONNX Runtime, and as in the library that trained them."""

import numpy as np
import pytest
from tests.scoring.exports.exported_rankers import RANKERS, expected_scores, rows_for

import rankwell
from rankwell import FileFormatError
from rankwell.scoring.imports.reader import import_model, model_format

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

N_DOCS = 300


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(N_DOCS, 5)).astype(np.float32)
    return X, X[:, 0] + X[:, 1] ** 2 + rng.normal(size=N_DOCS) / 10


def run(content, X):
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {session.get_inputs()[0].name: X})[0]).reshape(-1)


def models(X, y):
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
    from sklearn.tree import DecisionTreeRegressor

    yield GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    yield RandomForestRegressor(n_estimators=10, max_depth=5, random_state=0).fit(X, y)
    yield DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)


def test_scikit_learn(data, tmp_path):
    X, y = data
    for model in models(X, y):
        content = skl2onnx.to_onnx(model, X[:1], target_opset={"": 17, "ai.onnx.ml": 3}).SerializeToString()
        (tmp_path / "model.onnx").write_bytes(content)
        assert model_format(tmp_path / "model.onnx").title == "an ONNX model"
        scores = rankwell.ImportedRanker.from_model(tmp_path / "model.onnx").predict(X)
        in_memory = rankwell.ImportedRanker.from_model(onnx.load_from_string(content)).predict(X)
        np.testing.assert_array_equal(in_memory, scores)
        np.testing.assert_allclose(scores, run(content, X), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(scores, model.predict(X), rtol=1e-5, atol=1e-5)


def test_lightgbm_with_missing_values(data, tmp_path):
    lightgbm, onnxmltools = pytest.importorskip("lightgbm"), pytest.importorskip("onnxmltools")
    from onnxmltools.convert.common.data_types import FloatTensorType

    X, y = data
    rng = np.random.default_rng(0)
    X = np.where(rng.random(X.shape) < 0.2, np.float32(np.nan), X)
    booster = lightgbm.train({"verbose": -1, "num_threads": 1, "num_leaves": 12}, lightgbm.Dataset(X, y), 15)
    initial = [("input", FloatTensorType([None, 5]))]
    model = onnxmltools.convert_lightgbm(booster, initial_types=initial, target_opset=15, zipmap=False)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    scores = rankwell.ImportedRanker.from_model(tmp_path / "model.onnx").predict(X)
    np.testing.assert_allclose(scores, run(model.SerializeToString(), X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["trees", "trees of one leaf", "buckets", "mean of trees", "weighted trees"])
def test_exports_come_back(name, tmp_path):
    if name in ("mean of trees", "weighted trees"):
        # Their sum is divided, or weighted, by operators after the trees.
        rankwell.export(RANKERS[name], tmp_path / "model.onnx", to="onnx")
        with pytest.raises(FileFormatError, match=r"which cannot be imported|numbers per document"):
            import_model(tmp_path / "model.onnx")
        return
    rankwell.export(RANKERS[name], tmp_path / "model.onnx", to="onnx")
    features = rows_for(name)
    back = rankwell.ImportedRanker.from_model(tmp_path / "model.onnx").predict(features)
    np.testing.assert_allclose(back, expected_scores(RANKERS[name], features), rtol=1e-13, atol=1e-14)


MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"]


def ensemble(**changes):
    """A tree of one test, x0 against 0.1, with leaves 1 and 2, as a model's bytes."""
    attributes = {
        "n_targets": 1,
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_values": [0.1, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "nodes_missing_value_tracks_true": [0, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
    } | changes
    helper = onnx.helper
    node = helper.make_node("TreeEnsembleRegressor", ["X"], ["Y"], domain="ai.onnx.ml", **attributes)
    rows = helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, ["n", 2])
    scores = helper.make_tensor_value_info("Y", onnx.TensorProto.FLOAT, ["n", 1])
    graph = helper.make_graph([node], "trees", [rows], [scores])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, ir_version=8, opset_imports=opsets).SerializeToString()


@pytest.mark.parametrize("tracks_true", [0, 1])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_decides_as_onnx_runtime(mode, tracks_true, tmp_path):
    content = ensemble(nodes_modes=[mode, "LEAF", "LEAF"], nodes_missing_value_tracks_true=[tracks_true, 0, 0])
    (tmp_path / "model.onnx").write_bytes(content)
    border = np.float32(0.1)
    values = [np.nextafter(border, np.float32(-1)), border, np.nextafter(border, np.float32(1)), np.nan, -5, 5]
    X = np.array([[value, 0] for value in values], np.float32)
    scores = rankwell.ImportedRanker.from_model(tmp_path / "model.onnx").predict(X)
    np.testing.assert_array_equal(scores, run(content, X))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"nodes_modes": ["BRANCH_EQ", "LEAF", "LEAF"]}, "the mode 'BRANCH_EQ'"),
        ({"nodes_falsenodeids": [0, 0, 0]}, "contain a cycle"),
        ({"nodes_falsenodeids": [7, 0, 0]}, "damaged"),
        ({"nodes_featureids": [-1, 0, 0]}, "read a feature outside"),
        ({"nodes_featureids": [9, 0, 0]}, "feature that does not exist"),
        ({"nodes_values": [0.1, 0.0]}, "differ in length"),
        ({"nodes_values": [float("nan"), 0.0, 0.0]}, "not a number"),
        ({"target_nodeids": [1, 9]}, "damaged"),
        ({"target_weights": [1.0, float("inf")]}, "not finite"),
        ({"n_targets": 2}, "2 numbers per document"),
        ({"aggregate_function": "MAX"}, "go through MAX"),
        ({"post_transform": "SOFTMAX"}, "SOFTMAX, which cannot be imported"),
    ],
)
def test_hostile_trees_are_refused(changes, complaint, tmp_path):
    (tmp_path / "model.onnx").write_bytes(ensemble(**changes))
    with pytest.raises(FileFormatError, match=complaint):
        import_model(tmp_path / "model.onnx")


def test_hostile_trees_in_memory_are_refused():
    with pytest.raises(FileFormatError, match="feature that does not exist"):
        rankwell.ImportedRanker.from_model(onnx.load_from_string(ensemble(nodes_featureids=[9, 0, 0])))


def test_altered_and_cut_files_are_refused_or_safe(tmp_path):
    whole, rng, path = ensemble(), np.random.default_rng(0), tmp_path / "model.onnx"
    refused = 0
    for attempt in range(300):
        content = bytearray(whole)
        if attempt % 2:
            del content[int(rng.integers(len(content))) :]
        else:
            content[int(rng.integers(len(content)))] = int(rng.integers(256))
        path.write_bytes(content)
        try:
            import_model(path)
        except FileFormatError:
            refused += 1
    assert refused > 100


def test_numbers_in_another_file_are_refused(tmp_path):
    model = onnx.load_from_string(ensemble())
    tensor = onnx.numpy_helper.from_array(np.zeros(3), "elsewhere")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    model.graph.initializer.append(tensor)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(FileFormatError, match="numbers in another file"):
        import_model(tmp_path / "model.onnx")


def test_other_graphs_are_named(data, tmp_path):
    from sklearn.linear_model import LinearRegression

    X, y = data
    content = skl2onnx.to_onnx(LinearRegression().fit(X, y), X[:1]).SerializeToString()
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(FileFormatError, match="0 operators TreeEnsembleRegressor"):
        import_model(tmp_path / "model.onnx")
