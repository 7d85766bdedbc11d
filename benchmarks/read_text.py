"""How fast is LETOR text read, and with how much memory?

A file of 300 MB like those of MSLR-WEB30K: 136 features, counts, fractions and negative logarithms with up to six
decimals, and a comment after each row. Speed is bytes of text per second, from the page cache. Memory is the growth of
the process above what it held before the call, relative to the arrays that the call returns.
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.harness import Benchmark, measure
from benchmarks.rivals import sklearn_reader
from rankwell import RankingDataset, read
from rankwell.data.files import convert

TIMES_AS_FAST = 25.0
MOST_MEMORY = 1.5  # times the arrays that are returned
ROWS_A_QUERY = 120


def run(bench: Benchmark) -> None:
    with tempfile.TemporaryDirectory(prefix="rankwell-read-") as folder:
        path = Path(folder) / "mslr.txt"
        small = Path(folder) / "small.txt"
        write_collection(small, 50_000)
        write_collection(path, 3_000_000 if bench.quick else 300_000_000)
        record_compilation(bench, small)
        rival_speed = check_against_rival(bench, path, small)
        record_speed(bench, path, rival_speed)
        record_memory(bench, path, small)
        record_other_files(bench, path)


def record_compilation(bench: Benchmark, small: Path) -> None:
    """The cost of the first use: compiling the kernels, or loading what an earlier run compiled."""
    timing = bench.time("first use", lambda: read(small), repeat=1)
    bench.record("first use", value=timing.first_s, unit="s", note="compiled, or loaded if cached")


def check_against_rival(bench: Benchmark, path: Path, small: Path) -> float:
    """Read the file with scikit-learn too, and compare the numbers bit for bit; returns its speed in MB/s."""
    sklearn_reader.read_text(small)  # so that its import is not timed
    timing = bench.time(sklearn_reader.NAME, lambda: sklearn_reader.read_text(path), repeat=2, warmup=0)
    features, labels = timing.result
    data = read(path)
    bench.check(
        "features equal scikit-learn's bit for bit",
        data.features.shape == features.shape
        and np.array_equal(data.features.view(np.uint32), features.toarray().view(np.uint32)),
        f"{data.features.size:,} numbers",
    )
    bench.check("labels equal scikit-learn's", np.array_equal(data.labels, labels))
    bench.check("queries are those that were written", np.array_equal(data.qid_of_rows(), qids(data.n_docs)))
    bench.check("one thread reads the same", is_same(read(path, n_jobs=1), data))
    return path.stat().st_size / timing.minimum / 1e6


def record_speed(bench: Benchmark, path: Path, rival_speed: float) -> None:
    """Megabytes per second and the factor over the rival, with comments and without."""
    size = path.stat().st_size / 1e6
    forms: dict[str, Callable[[], RankingDataset]] = {
        "comments kept": lambda: read(path),
        "comments left out": lambda: read(path, comments=False),
        "one thread": lambda: read(path, n_jobs=1),
    }
    for form, function in forms.items():
        timing = bench.time(f"read, {form}", function, repeat=7)
        speed = size / timing.minimum
        bench.record(
            f"speed, {form}",
            value=speed,
            unit="MB/s",
            better="higher",
            rival=sklearn_reader.NAME,
            rival_value=rival_speed,
            note=f"{size:.0f} MB in {timing.minimum:.3f} s, median {timing.median:.3f} s",
        )
        if form != "one thread":
            bench.record(
                f"times scikit-learn, {form}",
                value=speed / rival_speed,
                unit="x",
                target=None if bench.quick else TIMES_AS_FAST,
                better="higher",
            )


def record_memory(bench: Benchmark, path: Path, small: Path) -> None:
    """The peak of a reading relative to the arrays it returns, for plain and for compressed text."""
    arrays = size_of_arrays(read(path))
    files = {"plain": (path, small), "compressed": (compress(path), compress(small))}
    for case, (file, small_file) in files.items():
        peak = measure.peak_memory(
            "benchmarks.read_text:read_file", str(file), prepare=("benchmarks.read_text:read_file", str(small_file))
        )
        bench.record(
            f"peak memory, {case}",
            value=peak / arrays,
            unit="x arrays",
            target=None if bench.quick else MOST_MEMORY,
            note=f"{peak / 1e6:.0f} MB for {arrays / 1e6:.0f} MB of arrays",
        )


def record_other_files(bench: Benchmark, path: Path) -> None:
    """Reading the same data from the formats that it can be converted to."""
    expected = read(path)
    for suffix in (".txt.gz", ".txt.zst", ".parquet", ".feather"):
        converted = path.with_name(f"mslr{suffix}")
        if not converted.exists():
            convert(path, converted)
        bench.check(f"{suffix} holds the same", is_same(read(converted), expected))
        timing = bench.time(f"read, {suffix}", lambda converted=converted: read(converted), repeat=3)
        note = f"{converted.stat().st_size / 1e6:.0f} MB on disk" + (", mapped" if suffix == ".feather" else "")
        bench.record(f"the same as {suffix}", value=timing.minimum, unit="s", note=note)


def compress(path: Path) -> Path:
    """Write the file as .gz next to itself."""
    compressed = path.with_name(f"{path.name}.gz")
    with open(path, "rb") as text, gzip.open(compressed, "wb", compresslevel=1) as target:
        shutil.copyfileobj(text, target, 2**20)
    return compressed


def read_file(path: str) -> RankingDataset:
    return read(path)


def is_same(one: RankingDataset, other: RankingDataset) -> bool:
    return (
        np.array_equal(one.features.view(np.uint32), other.features.view(np.uint32))
        and np.array_equal(one.labels, other.labels)
        and np.array_equal(one.qid_of_rows(), other.qid_of_rows())
        and one.comments == other.comments
    )


def size_of_arrays(data: RankingDataset) -> int:
    arrays = [data.features, data.labels, data.query_ptr, data.query_ids]
    if data.comments is not None:
        arrays += [data.comments.buffer, data.comments.offsets]
    return sum(array.nbytes for array in arrays)


def write_collection(path: Path, n_bytes: int) -> None:
    """Write about `n_bytes` of text: some thousand rows of features, again and again under new queries and names."""
    generator = np.random.default_rng(0)
    bodies = feature_texts(generator, 20_000 if n_bytes > 10**8 else 500)
    labels = generator.choice(5, size=len(bodies), p=[0.52, 0.32, 0.13, 0.02, 0.01]).tolist()
    n_rows = written = 0
    with open(path, "w", encoding="ascii") as file:
        while written < n_bytes:
            numbers = range(n_rows, n_rows + len(bodies))
            written += file.write(
                "".join(
                    f"{label} qid:{number // ROWS_A_QUERY + 1} {body} #docid = GX{number % 273:03d}-{number:08d}\n"
                    for number, label, body in zip(numbers, labels, bodies, strict=True)
                )
            )
            n_rows += len(bodies)


def feature_texts(generator: np.random.Generator, n_rows: int) -> list[str]:
    """Rows of 136 features as text: counts that are mostly 0, fractions, sums, negative logarithms and large counts."""
    columns = []
    for index in range(1, 137):
        kind = index % 8
        if kind < 3:
            values = generator.poisson(0.4, n_rows)
        elif kind == 3:
            values = np.round(generator.beta(0.5, 4, n_rows) * (generator.random(n_rows) < 0.6), 6)
        elif kind < 6:
            values = np.round(generator.gamma(2, 8, n_rows), 6)
        elif kind == 6:
            values = np.round(-generator.gamma(6, 2, n_rows), 6)
        else:
            values = generator.negative_binomial(1, 0.002, n_rows)
        columns.append([f"{index}:{text}" for text in map(str, values.tolist())])
    return [" ".join(row) for row in zip(*columns, strict=True)]


def qids(n_docs: int) -> np.ndarray:
    """The query ids that `write_collection` gives its rows."""
    return np.arange(n_docs) // ROWS_A_QUERY + 1
