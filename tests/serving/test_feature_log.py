"""A log gives back what was served, bit for bit, and detects every altered byte."""

import os

import numpy as np
import pytest

from rankwell.errors import DataError, FileFormatError
from rankwell.features.feature_set import FeatureSet
from rankwell.serving.ranking.feature_log import FeatureLog, FeatureLogReader

FEATURES = FeatureSet(["bm25.title", "static.age"])
ROWS = np.array([[1.5, np.nan], [-0.0, 1e-45]], np.float32)


def make_log(path, n_records=2):
    with FeatureLog(path, FEATURES) as log:
        for number in range(n_records):
            log.append(f"q{number}", ["déjà", "b"], ROWS)
    return path


def test_what_was_logged_comes_back_bit_for_bit(tmp_path):
    reader = FeatureLogReader(make_log(tmp_path / "log"))
    assert reader.feature_set == FEATURES
    records = list(reader)
    assert [record.query_id for record in records] == ["q0", "q1"]
    assert records[0].document_ids == ("déjà", "b")
    np.testing.assert_array_equal(records[0].features.view(np.uint32), ROWS.view(np.uint32))


def test_no_documents_and_empty_ids(tmp_path):
    with FeatureLog(tmp_path / "log", FEATURES) as log:
        log.append("", [], np.empty((0, 2), np.float32))
        log.append("q", ["", "x"], ROWS)
    first, second = FeatureLogReader(tmp_path / "log")
    assert (first.query_id, first.document_ids, first.features.shape) == ("", (), (0, 2))
    assert second.document_ids == ("", "x")


def test_a_log_is_appended_to(tmp_path):
    make_log(tmp_path / "log", 1)
    make_log(tmp_path / "log", 2)
    assert [record.query_id for record in FeatureLogReader(tmp_path / "log")] == ["q0", "q0", "q1"]


def test_two_writers_share_a_log(tmp_path):
    with FeatureLog(tmp_path / "log", FEATURES) as one, FeatureLog(tmp_path / "log", FEATURES) as other:
        one.append("a", ["x", "y"], ROWS)
        other.append("b", ["x", "y"], ROWS)
        one.append("c", ["x", "y"], ROWS)
    assert [record.query_id for record in FeatureLogReader(tmp_path / "log")] == ["a", "b", "c"]


def test_half_a_record_is_passed_over_and_cut_off(tmp_path):
    path = make_log(tmp_path / "log", 1)
    whole = os.path.getsize(path)
    make_log(path, 1)
    content = path.read_bytes()
    for cut in range(whole, len(content)):
        path.write_bytes(content[:cut])
        assert [record.query_id for record in FeatureLogReader(path)] == ["q0"]
    make_log(path, 1)
    assert [record.query_id for record in FeatureLogReader(path)] == ["q0", "q0"]
    assert path.read_bytes() == content


def test_every_altered_byte_is_detected(tmp_path):
    path = make_log(tmp_path / "log", 2)
    content = path.read_bytes()
    for place in range(len(content)):
        altered = bytearray(content)
        altered[place] ^= 4
        path.write_bytes(altered)
        with pytest.raises(FileFormatError):
            list(FeatureLogReader(path))


def test_rows_of_another_set_are_refused(tmp_path):
    path = make_log(tmp_path / "log")
    with pytest.raises(DataError, match=f"has rows of the feature set {FEATURES.fingerprint}, not of"):
        FeatureLog(path, FeatureSet(["bm25.title"]))
    with (
        FeatureLog(path, FEATURES) as log,
        pytest.raises(DataError, match=r"float32 rows of shape \(1, 2\), got float64"),
    ):
        log.append("q", ["a"], np.zeros((1, 2)))


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "text"
    path.write_text("1 qid:1 1:2")
    for opened in (FeatureLogReader, lambda where: FeatureLog(where, FEATURES)):
        with pytest.raises(FileFormatError, match="is not a feature log"):
            opened(path)
    with pytest.raises(DataError, match="cannot read"):
        FeatureLogReader(tmp_path / "absent")


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    path = make_log(tmp_path / "log", 1)
    log = FeatureLog(path, FEATURES)
    before = path.read_bytes()
    real = os.write

    def half(file, content):
        if len(content) > 20:
            return real(file, content[:20])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(DataError, match="No space left on device"):
        log.append("q", ["a", "b"], ROWS)
    assert path.read_bytes() == before
    log.close()
