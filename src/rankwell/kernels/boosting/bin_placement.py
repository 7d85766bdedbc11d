"""Which features' bins stay on a device, and which pass through it in every round: the CUDA paper's γ and 1 − γ."""

from __future__ import annotations

from dataclasses import dataclass

from rankwell.errors import DeviceError

_BLOCK_BYTES = 256 * 2**20


@dataclass(frozen=True)
class BinPlacement:
    """Where the bins of each feature are.

    resident : tuple of range
        The features of each array that stays on the device: the first ones.
    streamed : tuple of range
        The features of each block that is sent in every round: those after them. None is longer than the first.
    """

    resident: tuple[range, ...]
    streamed: tuple[range, ...]

    @property
    def n_resident(self) -> int:
        return sum(map(len, self.resident))

    @property
    def share(self) -> float:
        """γ."""
        return self.n_resident / (self.n_resident + sum(map(len, self.streamed)))


def place_bins(n_features: int, column_bytes: int, memory: int, largest_array: int | None = None) -> BinPlacement:
    """As many features on the device as fit in `memory` bytes, the others in blocks.

    A device through which blocks pass also holds two of them, so that one is sent while the other is read, and the
    column of the chosen feature. That column is needed, too, where there is more than one resident array.

    largest_array : bytes that one array may have; unlimited by default
    """
    n_columns = memory // column_bytes
    per_array = n_features if largest_array is None else max(1, largest_array // column_bytes)
    n_resident, streamed = n_features, range(0)
    per_block = 1
    if n_features + (n_features > per_array) > n_columns:
        per_block = min(per_array, max(1, min(_BLOCK_BYTES, memory // 4) // column_bytes))
        n_resident = n_columns - 2 * per_block - 1
        if n_resident < 0:
            raise DeviceError(
                f"the device has no room for RankBoost's bins: three feature columns take {3 * column_bytes} bytes, "
                f"{memory} are free. Use device='cpu', or train on fewer documents."
            )
        streamed = range(n_resident, n_features)
    return BinPlacement(_cut(range(n_resident), per_array), _cut(streamed, per_block))


def _cut(features: range, length: int) -> tuple[range, ...]:
    return tuple(features[start : start + length] for start in range(0, len(features), length))
