"""What each worker of a RankBoost training has: some documents, or some features.

By documents a round's work is divided whole, and its histograms, 4 bytes for each feature and bin, are summed over
workers. By features the weights of all documents are every worker's work, and a round sends one bit for each document.
So few documents with many features are divided by features, all else by documents.
"""

from __future__ import annotations

from rankwell.errors import Parameter, ParameterError
from rankwell.kernels.boosting.cpu.histograms import GROUP
from rankwell.parameters import check_choice

AUTOMATIC, BY_DOCUMENTS, BY_FEATURES = DIVISIONS = ("auto", "documents", "features")

# Nanoseconds: to renew a document's weights and π, measured on one core of an AMD EPYC; to send a byte at 1 GB/s.
_PER_DOCUMENT, _PER_BYTE = 4.0, 1.0


def choose_division(wanted: str, n_docs: int, n_features: int, n_bins: int, n_workers: int) -> str:
    """How the data are divided; `wanted` may be "auto"."""
    check_choice("division", wanted, DIVISIONS)
    if wanted == BY_FEATURES and n_workers > -(-n_features // GROUP):
        raise ParameterError(
            f"{n_features} features can be divided among {-(-n_features // GROUP)} workers, in groups of {GROUP}, not "
            f"among {n_workers}. Use ",
            Parameter("division", "documents"),
            ", or fewer workers.",
        )
    if wanted != AUTOMATIC:
        return wanted
    if n_workers == 1 or n_workers > n_features // GROUP:
        return BY_DOCUMENTS
    share = (n_workers - 1) / n_workers
    by_documents = 2 * share * 4 * n_features * n_bins * _PER_BYTE
    by_features = share * n_docs * _PER_DOCUMENT + n_docs / 8 * _PER_BYTE
    return BY_FEATURES if by_features < by_documents else BY_DOCUMENTS
