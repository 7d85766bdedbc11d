"""Ranker files and models of other libraries that were made to do harm: they are refused, or score as they say.

A seeded fuzz changes the contents of files of every kind and keeps their checksums right. A file that loads must give
the scores of the slow reference, which cannot read beyond an array: a kernel that read foreign memory would differ.
"""

import copy
import json
import shutil
import time

import numpy as np
import pytest
from tests.scoring.ranker_files import N_FEATURES, content_of, envelope_of, forge, write_forged, write_rankers
from tests.scoring.text_models import MODELS as TEXT_MODELS

import rankwell
from rankwell import FileFormatError, RankwellError
from rankwell.rankers.imported import ImportedRanker
from rankwell.scoring.expression import parse_expressions
from rankwell.scoring.reference_scores import reference_scores

QUICK, LARGE = 300, 10_000


@pytest.fixture(scope="module")
def rankers(tmp_path_factory):
    return write_rankers(tmp_path_factory.mktemp("rankers"))


@pytest.fixture
def ranker(rankers, tmp_path):
    """A copy of the file of one kind, to be altered."""

    def copy_of(name):
        source = next(path for path in rankers if path.stem == name)
        return shutil.copy(source, tmp_path / "model.rank")

    return copy_of


def replaced(name, array):
    def change(content, arrays):
        assert name in arrays
        arrays[name] = array(arrays[name])

    return change


def set_value(name, value):
    """Change the first value of an array."""

    def changed(array):
        array = array.copy()
        array.reshape(-1)[0] = value
        return array

    return replaced(name, changed)


def as_json_list(name):
    def change(content, arrays):
        part, number, field = name.split(".")
        content["description"][part][int(number)][field] = arrays.pop(name).tolist()

    return change


def far_away(offsets):
    """Offsets that ascend only if their differences may overflow: the second is far outside the array."""
    offsets = offsets.astype(np.uint64)
    offsets[1] = 2**62
    return offsets


FORGERIES = {
    "uint64 offsets": ("rankboost", replaced("inputs.0.edge_ptr", far_away), "type uint64, not int64"),
    "offsets that overflow": (
        "rankboost",
        replaced("inputs.0.edge_ptr", lambda a: np.concatenate((a[:1], [2**62, -(2**62)], a[3:]))),
        "does not ascend",
    ),
    "edges of two dimensions": ("rankboost", replaced("inputs.0.edges", lambda a: a[:, None]), "wrong shape"),
    "edges that descend": ("rankboost", replaced("inputs.0.edges", lambda a: a[::-1]), "do not ascend"),
    "edges that are NaN": ("rankboost", set_value("inputs.0.edges", np.nan), "do not ascend"),
    "values as integers": ("rankboost", replaced("inputs.0.values", lambda a: a.astype(np.int64)), "type int64"),
    "values that are infinite": ("rankboost", set_value("inputs.0.values", np.inf), "not finite"),
    "features as a list": ("rankboost", as_json_list("inputs.0.feature"), "incomplete"),
    "features as floats": ("rankboost", replaced("inputs.0.feature", lambda a: a.astype("f4")), "type float32"),
    "a feature of a round": ("rankboost", set_value("state.feature", 2**30), "feature that does not exist"),
    "the smallest r": ("rankboost", set_value("state.r", -(2**31)), "rounds are damaged"),
    "weights as a list": ("ranksvm", as_json_list("layers.0.weights"), "incomplete"),
    "weights that are NaN": ("ranksvm", set_value("layers.0.weights", np.nan), "not finite"),
    "a bias that is infinite": ("listnet", set_value("layers.0.bias", -np.inf), "not finite"),
    "no C": ("ranksvm", lambda content, arrays: arrays.pop("state.C"), "state.C is not an array"),
    "a mean that is NaN": ("standard", set_value("normaliser.mean", np.nan), "not finite"),
    "a scale of zero": ("standard", set_value("normaliser.scale", 0.0), "not above 0"),
    "no mean": ("standard", lambda content, arrays: arrays.pop("normaliser.mean"), "unreadable"),
    "leaves that are NaN": ("trees", set_value("inputs.0.leaf_value", np.nan), "not finite"),
    "columns of two dimensions": ("trees", replaced("inputs.0.column_feature", lambda a: a[None]), "not a list"),
    "categories that descend": ("every-input", replaced("inputs.1.categories", lambda a: a[::-1]), "do not ascend"),
    "no dimension at all": ("trees", replaced("inputs.0.node_ptr", lambda a: a[:1].reshape(())), "not a list"),
}


def set_header(*path, value):
    def change(content, arrays):
        part = content
        for name in path[:-1]:
            part = part[name]
        part[path[-1]] = value

    return change


FORGERIES |= {
    "a round of 10^30 trees": (
        "trees",
        set_header("description", "inputs", 0, "round_size", value=10**30),
        "round_siz",
    ),
    "a bias of 10^400": ("trees", set_header("description", "layers", 0, "bias", value=10**400), "finite"),
    "a name that is no text": (
        "ranksvm",
        set_header("description", "feature_names", 0, value="\ud800"),
        "altered|text",
    ),
    "names as a text": ("ranksvm", set_header("description", "feature_names", value="abcdefg"), "list of names"),
    "a history of texts": ("listnet", set_header("history", "loss", value=["a"]), "not a list of numbers"),
    "a history of lists": ("listnet", set_header("history", "loss", value=[[1.0]]), "not a list of numbers"),
    "a history of 10^400": ("listnet", set_header("history", "loss", value=[10**400]), "not a list of numbers"),
    "metrics as a list": ("ranksvm", set_header("metrics", value=[["a", 1]]), "not an object"),
    "layers as a number": ("ranksvm", set_header("description", "layers", value=3), "incomplete"),
    "a kind that is a list": ("ranksvm", set_header("description", "layers", 0, "kind", value=["sum"]), "incomplete"),
    "NaN in the header": ("ranksvm", set_header("metrics", "a", value=float("nan")), "NaN is not a JSON number"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_ranker_file_is_refused(ranker, name):
    kind, change, complaint = FORGERIES[name]
    path = ranker(kind)
    forge(path, change)
    with pytest.raises(FileFormatError, match=rf"model\.rank.*({complaint})"):
        rankwell.load(path)


@pytest.mark.parametrize(
    "version",
    ["Infinity", "1e999", "NaN", "true", '"1"', "1.5", "null", "[1]", "[" * 100_000],
    ids=lambda text: text[:9],
)
def test_a_version_that_is_no_whole_number_is_refused(ranker, version):
    path = ranker("ranksvm")
    _, arrays = content_of(path)
    text = json.dumps(envelope_of(path)).replace('"version": 1', f'"version": {version}')
    from safetensors.numpy import save_file

    save_file(arrays, path, metadata={"rankwell-ranker": text})
    with pytest.raises(FileFormatError, match="was altered"):
        rankwell.load(path)


@pytest.mark.parametrize("depth", [400, 100_000])
@pytest.mark.parametrize("brackets", ["[]", ('{"a":', "}")], ids=["lists", "objects"])
def test_deep_nesting_is_refused(ranker, depth, brackets):
    path = ranker("ranksvm")
    content, arrays = content_of(path)
    nested = brackets[0] * depth + "1" + brackets[1] * depth
    for part in ("parameters", "metrics", "history", "description"):
        write_forged(path, json.dumps(content | {part: "HERE"}).replace('"HERE"', f'{{"C": {nested}}}'), arrays)
        with pytest.raises(FileFormatError, match=r"nested more than 100 deep"):
            rankwell.load(path)


def test_many_expressions_take_time_in_proportion():
    """The time is that of the texts: not of the texts times the features."""

    def seconds(size):
        names = [f"feature{number}" for number in range(size)]
        texts = [f"{name} + 1" for name in names]
        best = np.inf
        for _ in range(3):
            start = time.process_time()
            parse_expressions(texts, names)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(8_000) < 3 * 8 * seconds(1_000)


def test_expressions_are_parsed_once(rankers, monkeypatch):
    from rankwell.scoring import inputs

    loaded = rankwell.load(next(path for path in rankers if path.stem == "every-input"))
    monkeypatch.setattr(inputs, "parse_expressions", None)
    loaded.predict(np.zeros((3, N_FEATURES), np.float32))


# --- Fuzz: seeded changes of the contents, with a right checksum.

DTYPES = ["i1", "u1", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "?"]
NUMBERS = [0, 1, -1, 2, 255, 2**31 - 1, -(2**31), 2**62, -(2**62), np.nan, np.inf, -np.inf, 0.5, 1e300]
VALUES = [None, True, -1, 0, 2**31, 10**30, 1e300, "", "\x1b[2J", "sum", [], [1, 2], {}, {"kind": "mean"}]


def changed_array(rng, array):
    """The array with a value, its order, its shape, its type or its size changed."""
    array = array.copy()
    kind = int(rng.integers(7))
    if kind == 0:
        with np.errstate(all="ignore"):
            return array.astype(rng.choice(DTYPES))
    if kind == 1:
        return array[..., None] if rng.integers(2) else array.reshape(-1, order="F")[::-1]
    if kind == 2:
        return array.reshape(-1)[: rng.integers(array.size + 1)]
    if kind == 3:
        return np.concatenate((array.reshape(-1), array.reshape(-1)[:1]))
    if kind == 4 and array.size:
        array.reshape(-1)[rng.integers(array.size)] = array.reshape(-1)[rng.integers(array.size)]
        return array
    if kind == 5:
        raw = bytearray(array.tobytes() or b"\0")
        raw[rng.integers(len(raw))] ^= 1 << int(rng.integers(8))
        return np.frombuffer(bytes(raw)[: array.nbytes], array.dtype).reshape(array.shape)
    if array.size:
        value = NUMBERS[rng.integers(len(NUMBERS))]
        if array.dtype.kind != "f":
            value = int(np.nan_to_num(value, posinf=2**31, neginf=-(2**31)))
            value = (
                min(max(value, int(np.iinfo(array.dtype).min)), int(np.iinfo(array.dtype).max))
                if array.dtype != bool
                else bool(value)
            )
        with np.errstate(over="ignore"):
            array.reshape(-1)[rng.integers(array.size)] = value
    return array


def places_of(tree, path=()):
    """The paths to every value of a JSON tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places_of(value, (*path, key))


def change_tree(rng, tree):
    """Replace, remove or double one value of a JSON tree in place."""
    places = list(places_of(tree))
    *path, last = places[rng.integers(len(places))]
    for key in path:
        tree = tree[key]
    kind = rng.integers(4)
    if kind == 0:
        del tree[last]
    elif kind == 1 and isinstance(tree, list):
        tree.append(copy.deepcopy(tree[last]))
    elif kind == 2 and isinstance(tree[last], int | float):
        tree[last] = [-1, tree[last] + 1, tree[last] * 10**20, str(tree[last])][rng.integers(4)]
    else:
        tree[last] = VALUES[rng.integers(len(VALUES))]


def fuzz_ranker_files(paths, folder, seed, count):
    """Forge `count` files; returns how many loaded. They must score as the reference does; the others are refused."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(65, N_FEATURES)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    contents = [content_of(path) for path in paths]
    loaded = 0
    for number in range(count):
        content, arrays = copy.deepcopy(contents[number % len(contents)])
        for _ in range(int(rng.integers(1, 3))):
            if arrays and rng.random() < 0.7:
                name = sorted(arrays)[rng.integers(len(arrays))]
                arrays[name] = changed_array(rng, arrays[name])
            else:
                change_tree(rng, content)
        path = folder / "forged.rank"
        write_forged(path, content, arrays)
        loaded += scores_are_right(path, rows, f"seed {seed}, number {number}")
    return loaded


def scores_are_right(path, rows, label):
    """Whether the file loads; what it then scores must be what its description says."""
    try:
        ranker = rankwell.load(path)
        with np.errstate(all="ignore"):
            scores = ranker.predict(rows[:, : ranker.n_features_in_], group=[len(rows)])
    except RankwellError:
        return False
    description = ranker.description_
    if description.normaliser.name == "none" and not description.parts:
        check_scores(description, rows, scores, label)
    assert scores.shape == (len(rows),), label
    return True


def check_scores(description, rows, scores, label):
    with np.errstate(all="ignore"):
        expected = reference_scores(description, rows[:, : description.n_features])
    moderate = np.isfinite(expected) & (np.abs(expected) < 1e200)
    scale = 1e-9 * max(1.0, np.abs(expected[moderate]).max(initial=0))
    np.testing.assert_allclose(scores[moderate], expected[moderate], rtol=1e-6, atol=scale, err_msg=label)


def test_forged_ranker_files_are_refused_or_score_as_they_say(rankers, tmp_path):
    loaded = fuzz_ranker_files(rankers, tmp_path, seed=1, count=QUICK)
    assert 0 < loaded < QUICK


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_forged_ranker_files(rankers, tmp_path, seed):
    assert fuzz_ranker_files(rankers, tmp_path, seed, LARGE // 4) > 0


# --- Models of other libraries.

MODELS = ["lightgbm.txt", "lightgbm.json", "xgboost.json", "xgboost.ubj", "catboost.json", "trees.onnx"]
# A number in a few bytes is a feature here, and so the width of a row.
MOST_SCORED_FEATURES = 10_000
WORDS = [
    b"0",
    b"-1",
    b"9" * 30,
    b"9" * 5000,
    b"nan",
    b"inf",
    b"1e400",
    b"",
    b"[",
    b"{",
    b'"a"',
    b"null",
    b"\xff",
    b"1.5",
]


def imports_or_refuses(path, content, label):
    path.write_bytes(content)
    try:
        with np.errstate(all="ignore"):
            ranker = ImportedRanker.from_model(path)
    except RankwellError:
        return False
    if ranker.n_features_in_ > MOST_SCORED_FEATURES:
        return True
    rows = np.random.default_rng(0).normal(size=(65, ranker.n_features_in_)).astype(np.float32)
    with np.errstate(all="ignore"):
        check_scores(ranker.description_, rows, ranker.predict(rows), label)
    return True


def changed_text(rng, content):
    """Bytes with some removed, doubled, flipped, or a number replaced by another word."""
    kind, place = rng.integers(4), int(rng.integers(len(content)))
    length = int(rng.integers(1, 30))
    if kind == 0:
        return content[:place] + content[place + length :]
    if kind == 1:
        return content[:place] + content[place : place + length] + content[place:]
    if kind == 2:
        return content[:place] + bytes([content[place] ^ 1 << int(rng.integers(8))]) + content[place + 1 :]
    end = place
    while end < len(content) and content[end : end + 1] in b"0123456789.-+e":
        end += 1
    return content[:place] + WORDS[rng.integers(len(WORDS))] + content[max(end, place + 1) :]


def fuzz_imports(golden, folder, seed, count):
    rng = np.random.default_rng(seed)
    originals = [(golden / name).read_bytes() for name in MODELS]
    originals += [text.encode() for text in TEXT_MODELS.values()]
    loaded = 0
    for number in range(count):
        content = originals[number % len(originals)]
        for _ in range(int(rng.integers(1, 4))):
            content = changed_text(rng, content)
        loaded += imports_or_refuses(folder / "model", content, f"seed {seed}, number {number}")
    return loaded


def test_altered_models_are_refused_or_score_as_they_say(golden, tmp_path):
    loaded = fuzz_imports(golden, tmp_path, seed=1, count=QUICK)
    assert 0 < loaded < QUICK


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_altered_models(golden, tmp_path, seed):
    assert fuzz_imports(golden, tmp_path, seed, LARGE // 4) > 0


@pytest.mark.parametrize("name", ["max_feature_idx", "split_feature", "left_child", "decision_type", "num_leaves"])
def test_huge_integers_of_lightgbm_are_refused(golden, tmp_path, name):
    lines = (golden / "lightgbm.txt").read_text().splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith(f"{name}="))
    values = lines[place].partition("=")[2].split()
    lines[place] = f"{name}={' '.join([str(10**30), *values[1:]])}"
    path = tmp_path / "model.txt"
    path.write_text("\n".join(lines))
    with pytest.raises(FileFormatError, match=r"model\.txt"):
        ImportedRanker.from_model(path)


def test_a_model_of_a_trillion_features_is_refused(golden, tmp_path):
    model = json.loads((golden / "xgboost.json").read_text())
    model["learner"]["learner_model_param"]["num_feature"] = str(10**12)
    model["learner"]["feature_names"] = []
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    with pytest.raises(FileFormatError, match="1000000000000 features; at most"):
        ImportedRanker.from_model(path)
