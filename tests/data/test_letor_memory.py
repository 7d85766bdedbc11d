"""How much memory reading takes in addition to the arrays that it returns."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# A row of 100 values is 400 bytes as float32, and here about 1,100 as text.
N_ROWS, N_FEATURES = 60_000, 100
MEASURE = """
import sys
from rankwell.data.files import read

def status(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))

read(sys.argv[1])
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = status("VmRSS")
data = read(sys.argv[2])
arrays = data.features.nbytes + data.labels.nbytes + data.query_ptr.nbytes + data.comments.buffer.nbytes
arrays += data.comments.offsets.nbytes
print((status("VmHWM") - before) / arrays)
"""


def make_text() -> bytes:
    values = np.random.default_rng(0).random((1000, N_FEATURES)).tolist()
    bodies = [" ".join(f"{index}:{value:.6f}" for index, value in enumerate(row, start=1)) for row in values]
    return "".join(
        f"{row % 5} qid:{row // 100} {bodies[row % 1000]} #docid = GX-{row}\n" for row in range(N_ROWS)
    ).encode()


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from /proc, which is absent"
)
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_the_peak_is_at_most_one_and_a_half_times_the_arrays(tmp_path: Path, suffix: str) -> None:
    text = make_text()
    large, small = tmp_path / f"large{suffix}", tmp_path / f"small{suffix}"
    for path, content in ((large, text), (small, text[: text.index(b"\n") + 1])):
        path.write_bytes(gzip.compress(content, 1) if suffix == ".txt.gz" else content)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(small), str(large)], capture_output=True, text=True, check=True
    )
    assert 0.9 < float(done.stdout) <= 1.5
