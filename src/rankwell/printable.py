"""Text from files as it may be printed: control characters, which a terminal would obey, are shown as escapes.

A feature's name, a document's id or a caption can contain whatever its author put there: an escape sequence in it
could rename the window, recolour the text or hide what follows. Lines and tabs are kept, everything else that is not
text becomes what Python would write for it:

>>> printable("bm25\\x1b[2J")
'bm25\\\\x1b[2J'
"""

from __future__ import annotations

import re

# C0 and C1 control characters without tab and line feed; marks that change the direction of what follows; halves of
# surrogate pairs, which no output can encode.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` with every character that a terminal would obey as its escape."""
    return _UNPRINTABLE.sub(_escape, text)


def printable_json(text: str) -> str:
    """JSON text with the same characters as JSON's own escapes; JSON's characters are never among them."""
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
