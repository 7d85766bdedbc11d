"""Model files that are none, damaged or cut short: a clear error that names the file, never anything else."""

import json
import struct

import numpy as np
import pytest

from rankwell.errors import FileFormatError
from rankwell.scoring.imports.reader import import_model
from rankwell.scoring.imports.ubjson import read_ubjson

GOLDEN = ["lightgbm.txt", "lightgbm.json", "xgboost.json", "xgboost.ubj", "catboost.json"]


@pytest.mark.parametrize("name", GOLDEN)
def test_every_cut_is_refused(golden, tmp_path, name):
    whole = (golden / name).read_bytes()
    path = tmp_path / name
    trees_end = whole.find(b"end of trees") if name == "lightgbm.txt" else len(whole) - 1
    for length in np.linspace(0, trees_end, 60).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match=name):
            import_model(path)


@pytest.mark.parametrize("name", GOLDEN)
def test_altered_bytes_are_refused_or_still_a_model(golden, tmp_path, name):
    """Another library's file has no checksum; whatever is read from it must at least be safe to evaluate."""
    whole = (golden / name).read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / name
    complaints = []
    for _ in range(150):
        content = bytearray(whole)
        content[int(rng.integers(len(content)))] = int(rng.integers(256))
        path.write_bytes(content)
        try:
            import_model(path)
        except FileFormatError as error:
            complaints.append(str(error))
    assert len(complaints) > 10
    assert all(name in complaint for complaint in complaints)


@pytest.mark.parametrize(
    "content", [b"", b"binf", b"\x80\x04pickle", b"[]", b"{}", b'{"learner": 3}', b"{L", b"tree\n"]
)
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="model"):
        import_model(path)


def test_deep_json_is_refused(tmp_path):
    path = tmp_path / "deep.json"
    path.write_text('{"learner":' * 100_000)
    with pytest.raises(FileFormatError, match="damaged or cut short"):
        import_model(path)


def test_unknown_objectives_are_named(golden, tmp_path):
    content = json.loads((golden / "xgboost.json").read_text())
    content["learner"]["objective"]["name"] = "binary:hinge"
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(FileFormatError, match="objective is 'binary:hinge'"):
        import_model(tmp_path / "model.json")


def test_what_is_lacking_is_told_in_words(golden, tmp_path):
    path = tmp_path / "model"
    text, content = (golden / "lightgbm.txt").read_text(), json.loads((golden / "lightgbm.json").read_text())
    path.write_text(text.replace("num_class=", "classes="))
    with pytest.raises(FileFormatError, match=r"header is incomplete \(it has no entry 'num_class'\)\.$"):
        import_model(path)
    path.write_text(text.replace("leaf_value=", "values="))
    with pytest.raises(FileFormatError, match=r"tree 0 is damaged \(it has no entry 'leaf_value'\)\.$"):
        import_model(path)
    del content["num_class"]
    path.write_text(json.dumps(content))
    with pytest.raises(FileFormatError, match=r"header is incomplete \(it has no entry 'num_class'\)\.$"):
        import_model(path)
    path.write_text("solver_type L2R_L2LOSS_SVR\nnr_feature 2\nbias -1\nw\n1\n2\n")
    with pytest.raises(FileFormatError, match=r"header is incomplete \(it has no entry 'nr_class'\)\.$"):
        import_model(path)
    path.write_text('{"learner": {}}')
    with pytest.raises(FileFormatError, match=r"incomplete or damaged \(it has no entry 'learner_model_param'\)\.$"):
        import_model(path)


def test_ubjson_values():
    number = b"i\x07"
    assert read_ubjson(b"{i\x01a" + number + b"U\x01b[" + number + b"TFZ]}") == {"a": 7, "b": [7, True, False, None]}
    assert read_ubjson(b"[$l#i\x02" + struct.pack(">ii", 5, -6)).tolist() == [5, -6]
    assert read_ubjson(b"[#i\x02" + number + b"Si\x02hi") == [7, "hi"]
    assert read_ubjson(b"D" + struct.pack(">d", 0.1)) == 0.1
    assert read_ubjson(b"{#i\x01i\x01a" + number) == {"a": 7}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[$l#L" + struct.pack(">q", 2**60),
        b"[#L" + struct.pack(">q", 2**60),
        b"[$Z#L" + struct.pack(">q", 2**40),
        b"Si\xff",
        b"i\x01i",
        b"[" * 1000,
        b"X",
        b"[$l",
        b"Si\x02\xff\xff",
    ],
)
def test_damaged_ubjson_is_refused(content):
    with pytest.raises(FileFormatError, match="UBJSON"):
        read_ubjson(content)
