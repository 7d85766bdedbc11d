"""Where the pages of a corpus are on the web: which links with a host lead to pages of the corpus itself."""

from __future__ import annotations

import posixpath
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from rankwell.errors import ParameterError

PAGE_ENDINGS = ("", ".html", ".htm", ".xhtml", ".md", ".markdown")
"""What the name of a page may have that its address lacks."""

FOLDER_PAGES = ("index.html", "index.htm", "index.xhtml", "index.md", "README.md")
"""The names of a page whose address is that of its folder."""


class Site(NamedTuple):
    """An address below which the pages of a corpus are: its host, and its folder, empty or with a slash at its end."""

    host: str
    folder: str = ""


def given_site(address: str) -> Site:
    """The site of an address that a user gives, as https://example.org/docs/."""
    try:
        parts = urlsplit(address)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ParameterError(f"must be an address like https://example.org/docs/, got {address!r}.", parameter="site")
    folder = unquote(parts.path).strip("/")
    return Site(host_of(parts.netloc), f"{folder}/" if folder else "")


def host_of(netloc: str) -> str:
    """The host of an address, with its port and without a user's name; upper case does not matter."""
    return netloc.rpartition("@")[2].lower()


def site_of_page(name: str, base: str, canonical: str) -> Site | None:
    """The site that a page says it is on; None if it says nothing, or names an address that its own path does not end.

    name : the page's path in the corpus; base, canonical : addresses from its elements <base> and
    <link rel="canonical">, empty without
    """
    for address, own_names in ((canonical, _addresses_of(name)), (base, (f"{posixpath.dirname(name)}/".lstrip("/"),))):
        try:
            parts = urlsplit(address)
        except ValueError:
            continue
        path = unquote(parts.path).lstrip("/")
        if address is base:
            path = path[: path.rfind("/") + 1]
        for own in own_names:
            folder = path.removesuffix(own)
            if parts.netloc and path.endswith(own) and (not folder or folder.endswith("/")):
                return Site(host_of(parts.netloc), folder)
    return None


def _addresses_of(name: str) -> tuple[str, ...]:
    """The addresses that a page may have below its site, the longest first: with and without its ending."""
    folder, page = posixpath.split(name)
    stem, ending = posixpath.splitext(name)
    found = [name, stem] if ending in PAGE_ENDINGS else [name]
    if page in FOLDER_PAGES:
        found += [f"{folder}/", folder] if folder else [""]
    return tuple(found)
