"""Numbers as texts that read back as the same number."""

from __future__ import annotations

import numpy as np

_LARGEST = float(np.finfo(np.float32).max)


def float64_text(value: float) -> str:
    """The shortest text that reads back as the same float64."""
    return repr(float(value))


def float32_text(value: float) -> str:
    """The shortest text that reads back as the same float32; an infinity becomes the largest finite number.

    Thresholds may be infinite. Features are finite, so that the largest number decides as infinity does.
    """
    limited = np.float32(min(max(float(value), -_LARGEST), _LARGEST))
    return np.format_float_scientific(limited, trim="0") if _is_long(limited) else str(limited)


def _is_long(value: np.float32) -> bool:
    return value != 0 and not 1e-4 <= abs(float(value)) < 1e16
