"""How a corpus is read."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from rankwell.corpus.bad_documents import BadDocuments
from rankwell.corpus.site import given_site
from rankwell.errors import ParameterError

LONGEST_DOCUMENT = 2**26
# Their line feeds are not one byte, so lines cannot be found before decoding.
WIDE_ENCODINGS = ("utf-16", "utf-32", "utf-7")
# Codecs of Python for parts of addresses.
NAME_ENCODINGS = ("idna", "punycode")


@dataclass(frozen=True)
class CorpusOptions:
    """How a corpus is read.

    Attributes
    ----------
    format : "jsonl", "json", "tsv", "csv", "trec", "text", "markdown", "html" or None
        The format of all files; None: by their names.
    id_field : str
        The field, or column, that holds the id.
    columns : tuple of str or None
        The names of a TSV or CSV file's columns, for files whose first line does not name them.
    statics : tuple of str
        Columns of TSV and CSV that hold numbers.
    ignored : tuple of str
        Fields that are neither indexed nor checked.
    encoding : str or None
        The encoding of the text; None: UTF-8, and for HTML the one that the page names.
    longest_document : int
        The largest size in bytes of a line, or of a file that is one document.
    follow_links : bool
        Whether links in a folder are followed, to files and to folders. By default they are skipped: a link can lead
        to any file that this user may read. A path that is given itself is always followed.
    links : bool
        Whether links among the HTML and Markdown files of a folder describe the pages they lead to: by the stream
        `anchor` and the statics `link_score`, `inlinks` and `outlinks` (see `link_graph`).
    site : tuple of str
        The addresses that these pages have on the web, as https://example.org/docs/: links to them are links among the
        pages. Empty: what most pages name by <link rel="canonical"> or <base>.
    on_bad_document : "error", "skip" or BadDocuments
        The first bad document is a DataError, or each is logged with its place and left out. A `BadDocuments` can be
        shared with an `IndexWriter`; the caller that created it reports how many there were.
    """

    format: str | None = None
    id_field: str = "id"
    columns: tuple[str, ...] | None = None
    statics: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    encoding: str | None = None
    longest_document: int = LONGEST_DOCUMENT
    on_bad_document: str | BadDocuments = "error"
    follow_links: bool = False
    links: bool = True
    site: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        BadDocuments.of(self.on_bad_document)
        for address in self.site:
            given_site(address)
        if self.longest_document < 1:
            raise ParameterError(f"must be at least 1, got {self.longest_document}.", parameter="longest_document")
        if self.encoding is not None and text_encoding(self.encoding) is None:
            raise ParameterError(
                f"must be a text encoding that Python knows, such as 'latin-1' or 'cp1252', got {self.encoding!r}.",
                parameter="encoding",
            )

    def encoding_of_lines(self) -> str:
        """The encoding of a file that is read line by line."""
        encoding = codecs.lookup(self.encoding or "utf-8").name
        if encoding.startswith(WIDE_ENCODINGS):
            raise ParameterError(
                f"files of lines cannot be read in {self.encoding}: convert them to UTF-8 first (iconv -t utf-8)."
            )
        return encoding


def text_encoding(name: str) -> str | None:
    """Python's name of an encoding, or None if it is unknown or not an encoding of text (hex)."""
    try:
        encoding = codecs.lookup(name).name
        bytes(4).decode(encoding)
    except (LookupError, ValueError):
        return None
    return None if encoding in NAME_ENCODINGS else encoding
