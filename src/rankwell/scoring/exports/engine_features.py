"""What the features of an index are in other search engines: where one has the same formula, or a stored number.

BM25 here has the factor k1 + 1 of its papers. Vespa has it too; Lucene, and so OpenSearch and Elasticsearch, left it
out, and rounds lengths of more than 40 words to one byte. Words are cut by the engine's own analysis, so that values
agree only as far as that does.
"""

from __future__ import annotations

import re
from typing import Any

# Settings that differ from the usual ones are part of a name, in parentheses.
_USUAL_BM25 = re.compile(r"bm25\.(?P<stream>[A-Za-z_]\w*)", re.ASCII)
_STATIC = re.compile(r"static\.(?P<name>[A-Za-z_]\w*)", re.ASCII)
_OWN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_K1 = 1.2
# The stream that is the whole document is no field of an engine.
_WHOLE = "whole"


def opensearch_template(feature: str) -> dict[str, Any] | None:
    """The query whose score is the feature; None if there is none."""
    stream = _plain_bm25(feature)
    if stream is not None:
        return {"match": {stream: {"query": "{{keywords}}", "boost": _K1 + 1}}}
    static = _STATIC.fullmatch(feature)
    if static is None:
        return None
    value = {"field": static["name"], "missing": 0}
    return {"function_score": {"query": {"match_all": {}}, "field_value_factor": value, "boost_mode": "replace"}}


def vespa_feature(feature: str) -> str | None:
    """The rank feature; a number of the document's own for a name that is a plain word; None if there is none."""
    stream = _plain_bm25(feature)
    if stream is not None:
        return f"bm25({stream})"
    static = _STATIC.fullmatch(feature)
    if static is not None:
        return f"attribute({static['name']})"
    return f"attribute({feature})" if _OWN.fullmatch(feature) else None


def _plain_bm25(feature: str) -> str | None:
    """The field of a BM25 with the usual settings, which are also the engines'."""
    found = _USUAL_BM25.fullmatch(feature)
    return found["stream"] if found and found["stream"] != _WHOLE else None
