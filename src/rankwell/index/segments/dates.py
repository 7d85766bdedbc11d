"""Dates: texts of ISO 8601 to seconds since 1970, in UTC. A text means the whole year, month, day, ... it names."""

from __future__ import annotations

import calendar
import math
import re
from datetime import UTC, date, datetime, timedelta, timezone

_DATE = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,6})\d*)?)?(Z|[+-]\d\d:?\d\d)?)?)?)?",
    re.ASCII,
)
EXAMPLES = "2024, 2024-05, 2024-05-31 or 2024-05-31T12:30:00Z"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def date_span(text: str) -> tuple[float, float]:
    """The first second that a text names, and the first after it; ValueError if it is not a date."""
    found = _DATE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"a date is written {EXAMPLES}, got {text!r}.")
    year, month, day, hour, minute, second = (int(part) if part else None for part in found.groups()[:6])
    try:
        start = datetime(year or 0, month or 1, day or 1, hour or 0, minute or 0, second or 0, tzinfo=_zone(found[8]))
    except ValueError as cause:
        raise ValueError(f"there is no date {text!r} ({cause}).") from cause
    seconds = (start - _EPOCH).total_seconds()
    if found[7]:
        seconds += int(found[7].ljust(6, "0")) / 1e6
        return seconds, math.nextafter(seconds, math.inf)
    return seconds, seconds + _length(start, month, day, hour, second)


def seconds_of(value: date) -> float:
    """A date, or a date with time (UTC if it has no zone), as seconds since 1970."""
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def date_text(seconds: float) -> str:
    """Seconds since 1970 as a date, with time where that is not midnight."""
    moment = _EPOCH + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%d") if seconds % 86_400 == 0 else moment.isoformat().replace("+00:00", "Z")


def _zone(text: str | None) -> timezone:
    if text is None or text == "Z":
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-offset if text[0] == "-" else offset)


def _length(start: datetime, month: int | None, day: int | None, hour: int | None, second: int | None) -> float:
    """The seconds of what was named: a year if there is no month, and so on."""
    if month is None:
        return (366 if calendar.isleap(start.year) else 365) * 86_400.0
    if day is None:
        return calendar.monthrange(start.year, start.month)[1] * 86_400.0
    if hour is None:
        return 86_400.0
    return 60.0 if second is None else 1.0
