"""How the CPU kernels of boosting are compiled: RankBoost's and those that grow trees.

None of them allocates memory or divides by 0, so they are compiled without the code for either, and once for all
constants they are called with. Numba optimises a kernel again inside every kernel that calls it, and makes it callable
from Python, with code that unpacks every array of every tuple; if many arrays are passed on, that takes longer than
everything else. So there are three kinds:

`kernel`          called from Python too, or from several places
`inner_kernel`    called only by kernels
`inlined_kernel`  called only by kernels, from one place: becomes a part of the caller
"""

from __future__ import annotations

from functools import partial

from rankwell.kernels.cpu.compilation import kernel as any_kernel

kernel = partial(any_kernel, for_any_constant=True, error_model="numpy", _nrt=False)
inner_kernel = partial(kernel, no_cpython_wrapper=True)
inlined_kernel = partial(kernel, inline="always")
