"""A stable sort of keys within one query, by insertion and merging."""

from __future__ import annotations

from rankwell.kernels.cpu.compilation import inlined_kernel, inner_kernel

_INSERTION_RUN = 16


@inlined_kernel
def _merge(keys, order, start, middle, end, scratch):
    if middle >= end or keys[order[middle - 1]] <= keys[order[middle]]:
        return
    for k in range(start, middle):
        scratch[k - start] = order[k]
    left = 0
    right = middle
    for k in range(start, end):
        if left == middle - start:
            return
        if right < end and keys[order[right]] < keys[scratch[left]]:
            order[k] = order[right]
            right += 1
        else:
            order[k] = scratch[left]
            left += 1


@inner_kernel
def sort_keys(keys, order, scratch):
    """Fill `order` with the places of `keys` in ascending order, stably: insertion sort of runs, then merges."""
    n_keys = keys.shape[0]
    for start in range(0, n_keys, _INSERTION_RUN):
        for i in range(start, min(start + _INSERTION_RUN, n_keys)):
            k = i
            while k > start and keys[order[k - 1]] > keys[i]:
                order[k] = order[k - 1]
                k -= 1
            order[k] = i
    width = _INSERTION_RUN
    while width < n_keys:
        for start in range(0, n_keys, 2 * width):
            middle = min(start + width, n_keys)
            _merge(keys, order, start, middle, min(start + 2 * width, n_keys), scratch)
        width *= 2
