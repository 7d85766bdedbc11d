"""The language of an index: as the command line says, or as the first documents show."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from rankwell.cli.console import say
from rankwell.errors import ParameterError

if TYPE_CHECKING:
    from rankwell.corpus.document import Document
    from rankwell.index.text.analysis import Analysis


def given_analysis(
    language: str | None, stemmer: str | None, stop_words: str | tuple[str, ...] | None
) -> Analysis | None:
    """What the options say about words; None if they say nothing."""
    from rankwell.index.text.analysis import Analysis

    if language is None:
        return None if stemmer is None and stop_words is None else Analysis(stemmer, stop_words)
    if language != "none" and (stemmer is not None or stop_words is not None):
        raise ParameterError(
            "--language chooses the stemmer and treats common words: give it alone, or --stemmer and --stop-words "
            "without it."
        )
    return Analysis(stemmer, stop_words) if language == "none" else Analysis.of_language(language)


def detected_analysis(batches: Iterator[list[Document]], *, quiet: bool) -> tuple[Analysis, Iterator[list[Document]]]:
    """The analysis for the language that the first batch is in, and all batches."""
    from rankwell.index.text.analysis import Analysis
    from rankwell.index.text.language_detection import detect_language, sample_of

    first = next(batches, [])
    language = detect_language(sample_of(first))
    if language is None:
        say("language: not recognised, words are indexed as they are written (--language CODE chooses)", quiet=quiet)
    else:
        say(f"language: {language.name} ({language.code}), detected (--language CODE or none chooses)", quiet=quiet)
    return Analysis.of_language(None if language is None else language.code), chain([first], batches)
