"""The arrays of keyword columns and their types; `keyword_columns` says what they hold."""

from __future__ import annotations

KEYWORD_ARRAYS = {
    "keywords.text": "<u1",
    "keywords.offsets": "<i8",
    "keywords.first_value": "<i8",
    "keywords.first_entry": "<i8",
    "keywords.entries": "<i4",
    "keywords.entry_ptr": "<i8",
}
