"""How the CPU kernels of boosting are compiled: RankBoost's and those that grow trees.

None of them allocates memory or divides by 0, so they are compiled without the code for either, and once for all
constants they are called with.
"""

from __future__ import annotations

from functools import partial

from rankwell.kernels.cpu.compilation import inner_kernel as any_inner_kernel
from rankwell.kernels.cpu.compilation import kernel as any_kernel

kernel = partial(any_kernel, for_any_constant=True, error_model="numpy", allocates=False)
inner_kernel = partial(any_inner_kernel, for_any_constant=True, error_model="numpy", allocates=False)
inlined_kernel = partial(inner_kernel, forceinline=True)
