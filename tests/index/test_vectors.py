"""Vectors of documents: kept as they were given (or rounded to int8) through commits, merges and reordering."""

from itertools import pairwise

import numpy as np
import pytest

from rankwell.errors import DataError, ParameterError
from rankwell.index.checking import check_index
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.writer import IndexWriter
from rankwell.kernels.vectors.reference import stored_vector

VECTORS = {"embedding": 5, "image": (3, "int8")}


def rows_of(n_docs, *, seed=1):
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n_docs):
        row = {"id": f"d{number}", "body": f"word{number % 7}", "score": float(rng.integers(9))}
        if number % 4:
            row["embedding"] = rng.normal(size=5).tolist()
        if number % 3:
            row["image"] = rng.normal(size=3)
        rows.append(row)
    return rows


def write(folder, rows, *, cuts=(), deleted=(), **options):
    bounds = [0, *cuts, len(rows)]
    with IndexWriter(folder, schema=Schema(vectors=VECTORS, **options), max_segments=99) as writer:
        for start, stop in pairwise(bounds):
            writer.add(rows[start:stop])
            writer.commit()
        writer.delete(deleted)
        writer.commit()
    return Index.open(folder)


def vector_of(index, document, name):
    segment, local = index.locate(index.find(document))
    return stored_vector(segment.vectors[local], index.schema.vector_places[name])


def assert_vectors(index, rows, deleted=()):
    for row in rows:
        if row["id"] in deleted:
            continue
        embedding, image = (vector_of(index, row["id"], name) for name in VECTORS)
        if "embedding" in row:
            np.testing.assert_array_equal(embedding, np.array(row["embedding"], np.float32))
        else:
            assert embedding is None
        if "image" in row:
            # Half a step of 127 steps to the largest number.
            np.testing.assert_allclose(image, row["image"], atol=np.abs(row["image"]).max() / 254 * 1.001)
        else:
            assert image is None


@pytest.mark.parametrize("options", [{}, {"static_order": "score", "statics": ["score"]}, {"forward": "all"}])
def test_vectors_are_kept_through_commits_merges_and_deletions(tmp_path, options):
    rows, deleted = rows_of(40), ["d5", "d17"]
    index = write(tmp_path / "index", rows, cuts=(7, 20), deleted=deleted, **options)
    assert len(index.segments) == 3
    assert_vectors(index, rows, deleted)
    with IndexWriter(tmp_path / "index") as writer:
        writer.merge()
        writer.add([{"id": "new", "body": "x", "embedding": [1, 2, 3, 4, 5], "image": [0.0, 0.0, 0.0]}])
        writer.commit()
    index = Index.open(tmp_path / "index")
    assert_vectors(index, rows, deleted)
    np.testing.assert_array_equal(vector_of(index, "new", "embedding"), [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(vector_of(index, "new", "image"), [0, 0, 0])
    assert check_index(tmp_path / "index").problems == []
    # Stored fields are shown to users: numbers by the hundred are not.
    assert index.stored(index.find("d1")) == {"id": "d1", "body": "word1", "score": rows[1]["score"]}


def test_an_index_without_vectors_has_none(tmp_path):
    with IndexWriter(tmp_path / "index") as writer:
        writer.add([{"id": 1, "body": "x"}])
        writer.commit()
    index = Index.open(tmp_path / "index")
    assert (index.schema.vectors, index.segments[0].vectors.shape) == ({}, (1, 0))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"embedding": [1.0, 2.0]}, "a vector must have 5 finite numbers, got 2 numbers"),
        ({"embedding": [1.0, 2.0, 3.0, 4.0, 1e300]}, "5 finite numbers, got one that is too large"),
        ({"embedding": [1, 2, 3, 4, 10**400]}, "5 finite numbers, got one that is too large"),
        ({"other": [1.0, 2.0]}, "must be built for: Schema\\(vectors={'other': 2}\\), or --vectors other=2"),
    ],
)
def test_bad_vectors_are_refused(tmp_path, fields, words):
    with IndexWriter(tmp_path / "index", schema=Schema(vectors=VECTORS)) as writer:
        with pytest.raises(DataError, match=words):
            writer.add([{"id": 1, "body": "x", **fields}])
        writer.rollback()
    with IndexWriter(tmp_path / "index", schema=Schema(vectors=VECTORS), on_bad_document="skip") as writer:
        writer.add([{"id": 1, "body": "x", **fields}, {"id": 2, "body": "x", "embedding": [1, 2, 3, 4, 5]}])
        writer.commit()
    index = Index.open(tmp_path / "index")
    assert len(index) == 1
    np.testing.assert_array_equal(vector_of(index, "2", "embedding"), [1, 2, 3, 4, 5])


@pytest.mark.parametrize("given", [{"a": 0}, {"a": (3, "float16")}, {"a": 70_000}])
def test_bad_schemas_are_refused(given):
    with pytest.raises(ParameterError, match="vectors of 'a' must be 1 to 65,536 numbers of float32 or int8"):
        Schema(vectors=given)
    with pytest.raises(ParameterError, match="'a' is named twice"):
        Schema(["a"], vectors={"a": 3})


def test_an_index_keeps_its_vectors(tmp_path):
    write(tmp_path / "index", rows_of(3))
    with pytest.raises(ParameterError, match="An index keeps the vectors that it was built with"):
        IndexWriter(tmp_path / "index", schema=Schema(vectors={"embedding": 6}))
    schema = Index.open(tmp_path / "index").schema
    assert Schema.from_json(schema.to_json()) == schema == schema.copy()
    assert "vectors=" in repr(schema)
