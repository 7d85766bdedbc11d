"""What Python and C share is written once, and sources are put together from files."""

from types import SimpleNamespace

import numpy as np
import pytest

from rankwell.kernels import source_text as module
from rankwell.kernels.boosting.declarations import CONTROL
from rankwell.kernels.c_declarations import Struct, constants, enumeration, numbered
from rankwell.kernels.extraction.cpu.features import TermWeights
from rankwell.kernels.extraction.declarations import HIT_ARRAYS, WEIGHT_ARRAYS
from rankwell.kernels.extraction.rules import HitArrays
from rankwell.kernels.source_text import source_text


def test_constants_lose_no_digit():
    assert constants(BINS=256, UNIT=2.0**-30) == "#define BINS 256\n#define UNIT 0x1.0000000000000p-30\n"


def test_enumerations_have_pythons_numbers():
    assert enumeration("Kind", numbered(["first", "second"], first=2)) == "enum Kind { FIRST = 2, SECOND = 3 };\n"


def test_a_struct_has_the_layout_of_c():
    """An int before a double leaves 4 bytes empty, and one at the end as well: 8 + 8 + 8."""
    struct = Struct("Pair", (("int", "n", "how many"), ("double", "x", ""), ("int", "last", "")))
    assert struct.dtype.itemsize == 24
    assert struct.bytes_of("last") == slice(16, 20)
    assert 'static_assert(sizeof(Pair) == 24, "Pair has 24 bytes on the host");' in struct.declaration()
    packed = struct.pack(n=3, x=0.5, last=7)
    assert packed.tolist() == [(3, 0.5, 7)]


def test_pointers_are_packed_as_addresses():
    on_device = SimpleNamespace(data=SimpleNamespace(ptr=4096))
    struct = Struct("Arrays", (("const float*", "values", ""), ("float", "rate", "")), alignment=16)
    assert struct.declaration().startswith("struct __align__(16) Arrays {\n  const float* values;")
    assert struct.pack(values=on_device, rate=0.1).tolist() == [(4096, float(np.float32(0.1)))]


def test_the_control_of_a_run_has_ten_integers_and_three_doubles():
    assert CONTROL.dtype.itemsize == 10 * 4 + 3 * 8


def test_a_batch_of_hits_is_packed_from_arrays_that_exist():
    assert set(HIT_ARRAYS) <= set(HitArrays._fields)
    assert TermWeights._fields == WEIGHT_ARRAYS


def test_includes_are_written_out_once(monkeypatch):
    texts = {
        "main.cu": 'first\n#include "a.cuh"\n#include "b.cuh"  // why\nlast\n',
        "a.cuh": 'of a\n#include "b.cuh"\n',
        "b.cuh": "of b\n",
    }
    monkeypatch.setattr(module, "_read", lambda subject, device, name: texts[name])
    lines = source_text("any", "cuda", "main.cu").splitlines()
    assert [line for line in lines if not line.startswith("#line")] == ["first", "of a", "of b", "last"]
    assert lines[-2] == '#line 4 "main.cu"'


@pytest.mark.parametrize("subject", ["boosting", "pair_loss", "lists", "scoring", "extraction"])
def test_declarations_take_the_place_of_their_include(subject):
    names = {"boosting": "boosting.cu", "pair_loss": "rows.cu", "lists": "network_training.cu"}
    text = source_text(subject, "cuda", names.get(subject, f"{subject}.cu"))
    assert '#include "' not in text
    assert '#line 1 "declarations.h"' in text
