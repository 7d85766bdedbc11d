"""scikit-learn: `load_svmlight_file`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

NAME = "scikit-learn load_svmlight_file"


def read_text(path: Path | str) -> tuple[Any, Any]:
    """Features as CSR of float32, and labels.

    Without query ids, which is its fastest form: it appends each to an array that it copies every time.
    """
    import numpy as np
    from sklearn.datasets import load_svmlight_file

    features, labels = load_svmlight_file(str(path), dtype=np.float32)
    return features, labels
