"""Months named in languages that the tables do not know, read by dateparser."""

from datetime import datetime
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=256)
def foreign_month(word: str) -> int | None:
    """The month, 1 to 12, that `word` names in Dutch, a Scandinavian or a Slavic language or in Turkish, or None."""
    found = date_parser().get_date_data(f"2 {word} 2000").date_obj
    return int(found.month) if found else None


@lru_cache(maxsize=1)
def date_parser() -> Any:
    """The parser, loaded at the first need; it reads nothing of the machine's own zone and clock."""
    from dateparser.date import DateDataParser

    settings = {"TIMEZONE": "UTC", "STRICT_PARSING": True, "DATE_ORDER": "DMY", "RELATIVE_BASE": datetime(2000, 1, 1)}
    return DateDataParser(
        languages=["nl", "sv", "da", "nb", "pl", "cs", "ru", "uk", "tr"], try_previous_locales=False, settings=settings
    )
