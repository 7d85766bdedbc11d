"""Indexes whose bytes were changed and whose checksums are right again, as an author with bad intentions makes them.

As a program it is a victim: ``python -m tests.index.forged_indexes SOURCE FOLDER SEED FIRST COUNT`` forges indexes from
SOURCE one after another and uses each as a reader and a writer would. A forged index may be refused by a RankwellError,
or answer something; anything else (another exception, a signal) ends the program. The last line of its output says
which index it was.
"""

from __future__ import annotations

import json
import shutil
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from rankwell.errors import RankwellError
from rankwell.index.commits.checked_file import PAGE_BYTES
from rankwell.index.commits.storage import digest_of
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.search.bm25 import BM25, BM25F
from rankwell.index.segments.segment import ARRAYS
from rankwell.index.writer import IndexWriter

# Conditions on fields, prefixes, words near each other: they read columns and other lists.
CONDITIONS = (
    "kind:a* common",
    "tags:new -kind:b",
    "year:[2 TO 5] w*",
    '"w1 w2"~3',
    "day:2020 OR tags:old",
    "title:w1^2",
)
QUERIES = ("common", "common w1 w2 w3", '"w1 w2" common', "+w1 +w2 w3", "common -w5", 'w4 -"w2 w1"', "absent w7")


def make_index(path: Path, n_docs: int = 400) -> None:
    """Two segments with several blocks in a list, positions, columns, stored fields and deletions."""
    rng = np.random.default_rng(3)

    def text(most: int) -> str:
        return " ".join(["common", *(f"w{number}" for number in rng.zipf(1.4, int(rng.integers(1, most))) % 40)])

    def fields(n: int) -> dict[str, Any]:
        tags = [tag for tag in ("new", "old", "rare") if rng.random() < 0.4]
        return {"year": n % 7, "kind": "abc"[n % 3], "tags": tags, "day": f"202{n % 3}-0{1 + n % 9}-11"}

    schema = Schema(["title", "body"], ["year"], keywords=["kind", "tags"], dates=["day"], forward="all")
    with IndexWriter(path, schema=schema) as writer:
        for part in range(2):
            writer.add({"id": f"{part}-{n}", "title": text(4), "body": text(30), **fields(n)} for n in range(n_docs))
            writer.commit()
        writer.delete([f"0-{n}" for n in range(0, n_docs, 9)])
        writer.commit()


class Forgery:
    """The files of an index, to be changed and written with new checksums."""

    def __init__(self, source: Path) -> None:
        header, _, body = (source / "manifest").read_bytes().partition(b"\n")
        self.manifest: Any = json.loads(body)
        self._version = header.split()[1].decode()
        self.files: dict[str, bytearray] = {}
        self.tables: dict[str, Any] = {}
        self._pages: dict[str, list[str]] = {}
        self._places: dict[str, Any] = {}
        self._deletions: dict[str, str] = {}
        for entry in self.manifest["segments"]:
            name = entry["name"]
            self.tables[name] = json.loads((source / f"{name}.table").read_bytes().partition(b"\n")[0])
            for key in self.tables[name]["files"]:
                self.files[f"{name}.{key}"] = bytearray((source / f"{name}.{key}").read_bytes())
            self._pages[name] = [f"{name}.{key}" for key in self.tables[name]["files"]]
            # Not the lists themselves: the table is changed too.
            self._places[name] = {key: tuple(place) for key, place in self.tables[name]["arrays"].items()}
            if entry["deletions"]:
                file = entry["deletions"]["file"]
                self.files[file] = bytearray((source / file).read_bytes())
                self._deletions[name] = file

    def array(self, segment: str, name: str) -> np.ndarray:
        """A writable view of an array."""
        file, start, size = self._places[segment][name]
        dtype = np.dtype(ARRAYS[name])
        return np.frombuffer(self.files[f"{segment}.{file}"], dtype, size, start)

    def write(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        entries = self.manifest["segments"] if isinstance(self.manifest["segments"], list) else []
        for name, entry in zip(self.tables, entries, strict=False):
            checksums = [
                zlib.crc32(self.files[file][start : start + PAGE_BYTES])
                for file in self._pages[name]
                for start in range(0, len(self.files[file]), PAGE_BYTES)
            ]
            content = json.dumps(self.tables[name]).encode() + b"\n" + np.array(checksums, "<u4").tobytes()
            (folder / f"{name}.table").write_bytes(content)
            if isinstance(entry, dict):
                entry["digest"] = digest_of(content)
                if name in self._deletions and isinstance(entry["deletions"], dict):
                    entry["deletions"]["digest"] = digest_of(bytes(self.files[self._deletions[name]]))
        body = json.dumps(self.manifest).encode()
        (folder / "manifest").write_bytes(f"rankwell-index {self._version} {digest_of(body)}\n".encode() + body)


NUMBERS = [0, 1, -1, 2, 127, 128, 255, 2**15, 2**31 - 1, -(2**31), 2**32, 2**40, 2**62, -(2**62), 2**63 - 1]


def change(rng: np.random.Generator, forgery: Forgery) -> None:
    """One change: a value of an array, a byte of it, a stretch of zeros or noise; or a number of a table."""
    segment = str(rng.choice(sorted(forgery.tables)))
    if rng.random() < 0.1:
        _change_json(rng, forgery.tables[segment] if rng.random() < 0.7 else forgery.manifest)
        return
    array = forgery.array(segment, str(rng.choice(list(ARRAYS))))
    if not len(array):
        return
    place, kind = int(rng.integers(len(array))), int(rng.integers(5))
    if kind == 0 and array.dtype.kind != "f":
        limits = np.iinfo(array.dtype)
        array[place] = min(max(NUMBERS[rng.integers(len(NUMBERS))], int(limits.min)), int(limits.max))
    elif kind == 1:
        raw = array.view(np.uint8)
        raw[rng.integers(len(raw))] ^= 1 << int(rng.integers(8))
    elif kind == 2:
        array[place : place + int(rng.integers(1, 50))] = 0
    elif kind == 3:
        part = array[place : place + int(rng.integers(1, 20))].view(np.uint8)
        part[:] = rng.integers(0, 256, len(part))
    else:
        array[place] = array[int(rng.integers(len(array)))]


def _change_json(rng: np.random.Generator, tree: Any) -> None:
    """Replace one value somewhere in a tree of JSON."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else range(len(tree))
        if not len(keys):
            return
        key = keys[int(rng.integers(len(keys)))]
        if isinstance(tree[key], dict | list) and rng.random() < 0.85:
            tree = tree[key]
            continue
        values = [None, -1, 0, 1, 7, 2**31, 2**62, 10**30, 1.5, "x", "../x", [], {}, True]
        tree[key] = values[rng.integers(len(values))]
        return


def use(folder: Path) -> bool:
    """Do what users do with an index; whether it was accepted throughout."""
    accepted = [_accepted(step, folder) for step in (_search, _search_columns, _features, _write)]
    return all(accepted)


def _accepted(step: Any, folder: Path) -> bool:
    try:
        step(folder)
    except RankwellError:
        return False
    return True


def _search(folder: Path) -> None:
    index = Index.open(folder)
    for query in QUERIES:
        for model in (BM25(), BM25F({"title": 2.0, "body": 1.0})):
            for k in (3, 500):
                try:
                    found = index.search(query, k=k, model=model)
                    for doc in found.docs[:5].tolist():
                        index.find(index.id_of(doc))
                        index.stored(doc)
                    for document_id in found.ids[:2]:
                        index.more_like(document_id)
                except RankwellError:
                    # The next query may read other lists.
                    continue


def _search_columns(folder: Path) -> None:
    index = Index.open(folder)
    for query in CONDITIONS:
        for sort in (None, "year:desc", "kind", ["tags:desc", "day"]):
            try:
                index.search(query, sort=sort, filter="year:>=1", facets=["kind", "tags", "day", "year"])
                index.count(query)
            except RankwellError:
                # The next query may read other columns.
                continue


def _features(folder: Path) -> None:
    from rankwell.features.extraction import extract
    from rankwell.features.feature_set import make_feature_set
    from rankwell.features.feedback import with_feedback
    from rankwell.features.hit_reading import collect_hits
    from rankwell.index.query.query import parse_query

    index = Index.open(folder)
    features = make_feature_set("full", index.schema.streams, index.schema.statics)
    queries = [parse_query(text, index.analysis) for text in QUERIES[:3]]
    candidates = [np.arange(0, int(index.bases[-1]), 5)] * len(queries)
    found = [index.search(query) for query in queries]
    with np.errstate(all="ignore"):
        hits = collect_hits(index, queries, candidates)
        extract(with_feedback(hits, features, index, found, candidates), features)


def _write(folder: Path) -> None:
    with IndexWriter(folder) as writer:
        writer.add([{"id": "0-1", "title": "common new", "body": "w1 w2"}])
        writer.delete(["1-3"])
        writer.commit()
        writer.merge()
    Index.open(folder).search("common w1")


def main(source: str, folder: str, seed: str, first: str, count: str) -> None:
    accepted = 0
    for number in range(int(first), int(first) + int(count)):
        print(f"seed {seed}, number {number}", flush=True)
        rng = np.random.default_rng([int(seed), number])
        forgery = Forgery(Path(source))
        for _ in range(int(rng.integers(1, 4))):
            change(rng, forgery)
        forgery.write(Path(folder))
        accepted += use(Path(folder))
    print(f"{accepted} accepted", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
