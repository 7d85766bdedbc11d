"""Which language a collection is in, from a sample of its text.

The script decides where only one language of `languages` uses it; where several do, the common words: about every third
word of a running text is one of its language, and few of them are words of another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice

from rankwell.corpus.document import Document
from rankwell.index.text.languages import LANGUAGES, Language

# Characters and documents that are looked at.
SAMPLE_CHARACTERS = 200_000
SAMPLE_DOCUMENTS = 1_000
# A language is taken if this share of the words, and at least so many, are common words of it, and if the next one has
# fewer by more than chance. Danish and Norwegian share most of theirs.
LEAST_SHARE = 0.05
LEAST_WORDS = 10
CLEARLY_MORE = 1.05

_WORD = re.compile(r"[^\W\d_]+")
_SCRIPTS: Mapping[str, str] = {
    "ja": r"[\u3040-\u30ff]",
    "zh": r"[\u3400-\u9fff]",
    "ko": r"[\uac00-\ud7a3]",
    "th": r"[\u0e00-\u0e7f]",
    "lo": r"[\u0e80-\u0eff]",
    "my": r"[\u1000-\u109f]",
    "km": r"[\u1780-\u17ff]",
    "hy": r"[\u0530-\u058f]",
    "ta": r"[\u0b80-\u0bff]",
    "el": r"[\u0370-\u03ff]",
}
_SCRIPT_PATTERNS = {code: re.compile(pattern) for code, pattern in _SCRIPTS.items()}
# Japanese is written in Kana and Han: so much of it is Kana.
_LEAST_KANA = 0.1


def sample_of(documents: Iterable[Document]) -> list[str]:
    """The texts of the first documents, up to the sample's size."""
    texts: list[str] = []
    room = SAMPLE_CHARACTERS
    for document in islice(documents, SAMPLE_DOCUMENTS):
        for value in document.texts.values():
            for text in [value] if isinstance(value, str) else value:
                texts.append(text[:room])
                room -= len(texts[-1])
                if room <= 0:
                    return texts
    return texts


def detect_language(texts: Iterable[str]) -> Language | None:
    """The language of most of the text; None where it is not clear, or not one of `LANGUAGES`."""
    text = "\n".join(texts)
    return _by_script(text) or _by_common_words(Counter(word.lower() for word in _WORD.findall(text)))


def _by_script(text: str) -> Language | None:
    """The language whose script at least half of the letters are in, if only it is written in that script."""
    n_letters = sum(map(str.isalpha, text))
    found = {code: len(pattern.findall(text)) for code, pattern in _SCRIPT_PATTERNS.items()}
    if found["ja"] >= _LEAST_KANA * (found["ja"] + found["zh"]):
        found["ja"] += found.pop("zh")
    code = max(found, key=found.__getitem__)
    return LANGUAGES[code] if 2 * found[code] >= n_letters > 0 else None


def _by_common_words(words: Counter[str]) -> Language | None:
    total = words.total()
    counts = sorted(
        ((sum(words[word] for word in language.common_words), language.code) for language in LANGUAGES.values()),
        reverse=True,
    )
    (most, code), (second, _) = counts[:2]
    is_clear = most >= max(LEAST_WORDS, LEAST_SHARE * total) and most >= CLEARLY_MORE * second
    return LANGUAGES[code] if is_clear else None
