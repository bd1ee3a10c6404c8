"""The rules: patterns of words that tell a time, and how each is read."""

import re
from collections.abc import Iterable
from functools import lru_cache, partial
from typing import NamedTuple

from sharpwave.memory.when import readings
from sharpwave.memory.when.names import NAMES
from sharpwave.memory.when.words import (
    CJK_UNIT_OF,
    COUNTED,
    DAY_OF,
    MONTH_OF,
    NUMBER_OF,
    PART_OF,
    SEASON_OF,
    SHIFTED,
    SHORT_WEEKDAY_OF,
    UNIT_WORDS,
    UNITS,
    VERBS,
    WEEKDAY_OF,
    WEEKENDS,
)

_CJK = "\u2e80"
"""From here on, scripts put no spaces between words."""
_THE = r"(?:\b(?:on the|on|the|at the|am|den|el|la|le|il|lo|o|a|no|na)\s{1,3}|\bl['’])?"
_CAPITAL_MONTH = r"(?-i:\b(?:May|MAY|March|MARCH)\b)"
_CAPITAL_DAY = r"(?-i:\b(?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\b)"
_COUNTS = r"(?:people|percent|km|kg|feet|(?!(?:was|is|has|as|this|its|his)\b)[a-z]{2,}s)\b"
"""What a number before it counts, so that it is neither a day nor a year."""
_GOES_ON = (
    r"(?=\s{0,3}(?:$|[.,;:!?)]|(?:at|and|i|we|of (?:this|last|next) month"
    r"|because|but|so|when|with|my|he|she|they|for|to)\b))"
)
"""What follows "the 5th" where that is a day, and not a floor."""


class Rule(NamedTuple):
    """A pattern, what its match tells, and what that needs (see `Term.needs`)."""

    pattern: re.Pattern[str]
    read: readings.Reading
    needs: int


def _rule(pattern: str, read: readings.Reading, needs: int = 0) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE), read, needs)


@lru_cache(maxsize=1)
def rules() -> tuple[Rule, ...]:
    """All rules; where two match the same words, the earlier one counts."""
    return (*_counted(), *_moved(), *_names(), *_cjk(), *_dates(), *_clock())


def _any(phrases: Iterable[str]) -> str:
    """A pattern for any of `phrases`, the longest first; scripts without spaces have no word ends to look for."""
    ordered = sorted(phrases, key=len, reverse=True)
    spaced = [_spaces(re.escape(p).replace(r"\ ", " ")).replace("'", "['’]") for p in ordered if p < _CJK]
    joined = [p for p in ordered if p >= _CJK]
    return "(?:" + "|".join(([rf"\b(?:{'|'.join(spaced)})\b"] if spaced else []) + joined) + ")"


def _spaces(phrase: str) -> str:
    return phrase.replace(" ", r"\s{1,3}")


def _counted() -> list[Rule]:
    number = rf"(?P<n>\d{{1,3}}|{_any(NUMBER_OF)})"
    found = []
    for language, direction, phrase in COUNTED:
        units = f"(?P<u>{_any(UNIT_WORDS[language].lower().replace('/', ',').split(','))})"
        start, gap = (r"(?<!\d)", r"\s?") if language == "zh" else (r"(?<![\w.,])", "")
        pattern = start + _spaces(phrase).replace("{n}", number + gap).replace("{u}", units)
        found.append(_rule(pattern, partial(readings.counted, direction=direction)))
    return found


def _moved() -> list[Rule]:
    names = _any(word for word in NAMES if word not in (*PART_OF, *SHORT_WEEKDAY_OF, *VERBS))
    found = []
    for language, offset, phrase in SHIFTED:
        longer = [same.split(",")[0] for same in UNIT_WORDS[language].split("/")[UNITS.index("week") :]]
        units = _any([*longer, "an"] if language == "fr" else longer)
        word = rf"(?P<x>{units}|{names}|{_CAPITAL_MONTH}|{_CAPITAL_DAY})"
        pattern = _THE + r"\b" + _spaces(phrase).replace("{x}", word)
        found.append(_rule(pattern, partial(readings.moved, offset=offset)))
    return found


def _names() -> list[Rule]:
    weekdays, weekends = _any(WEEKDAY_OF), _any(WEEKENDS)
    return [
        _rule(rf"{_THE}(?P<x>{weekdays})", readings.named),
        _rule(rf"\bon\s(?P<x>{_CAPITAL_DAY})", readings.named),
        _rule(
            rf"\b(?:(?:on|at|over|during|for) the|am|el|le|no|nel|il)\s{{1,3}}(?P<x>{weekends})",
            readings.named,
        ),
        _rule(rf"(?P<x>{weekends})", readings.named, 1),
        _rule(rf"(?P<x>{_any(MONTH_OF)})", readings.named, 1),
        _rule(rf"(?P<x>{_any(SEASON_OF)})", readings.named, 1),
        _rule(rf"(?P<x>{_any(PART_OF)})", readings.named, 2),
        _rule(rf"(?<!\bla )(?<!\bam )(?<!guten )(?<!jeden )(?P<x>{_any(DAY_OF)})", readings.day),
    ]


def _cjk() -> list[Rule]:
    return [
        _rule(_any(CJK_UNIT_OF), readings.cjk_unit),
        _rule(r"(?P<m>\d{1,2}|[一二三四五六七八九]|十[一二]?)月(?:(?P<d>\d{1,2})[日号號])?", readings.cjk_date),
        _rule(
            r"(?P<w>[上下这這本先来今])(?:个|個)?(?:周|週|星期|礼拜)の?(?P<d>[一二三四五六日天])", readings.cjk_weekday
        ),
        _rule(r"(?P<y>(?:19|20)\d\d)年", readings.year),
    ]


def _dates() -> list[Rule]:
    month = f"(?P<m>{_any(m for m in MONTH_OF if m not in VERBS)}|{_CAPITAL_MONTH}|(?-i:\\bMar\\b))"
    verb, ordinal, year = r"(?P<m>\b(?:may|march)\b)", "(?:st|nd|rd|th)", r"(?P<y>(?:19|20)\d\d)"
    day, the, of = r"(?<![\d.,:/-])(?P<d>\d{1,2})", r"\.?\s{1,3}(?:the\s)?", r"\s{0,3}(?:(?:of|de|di|do)\s{1,3})?"
    time = r"[T ](?P<t>\d\d:\d\d(?::\d\d)?)(?:\.\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?"
    written = readings.date_in_words
    return [
        _rule(rf"(?<![\w-])\d{{4}}-\d\d-\d\d(?:{time})?(?![\w-])", readings.iso),
        _rule(
            rf"(?<![\d./-])(?P<a>\d{{1,2}})(?P<s>[./-])(?P<b>\d{{1,2}})(?P=s){year}(?![./-]?\d)", readings.numeric_date
        ),
        _rule(rf"{_THE}{day}(?:{ordinal}|\.|er|º)?{of}{month}", written),
        _rule(rf"{_THE}{day}{ordinal}{of}{verb}", written),
        _rule(rf"{_THE}{month}{the}(?P<d>\d{{1,2}}){ordinal}?\b(?!:\d|[.,]\d|\s?{_COUNTS})", written),
        _rule(rf"{_THE}{verb}{the}(?P<d>\d{{1,2}}){ordinal}\b", written),
        _rule(rf"(?<![\d.])(?P<d>\d{{1,2}})\.?\s(?P<m>[^\W\d_]{{3,12}})\s{year}\b", readings.foreign_date),
        _rule(rf"\bon the\s(?P<d>\d{{1,2}}){ordinal}{_GOES_ON}", readings.the_day),
        _rule(rf"(?<!\bin )\bthe\s(?P<d>\d{{1,2}}){ordinal}{_GOES_ON}", readings.the_day, 1),
        _rule(
            r"(?:\b(?:the year|el año|l['’]an(?:née)?)\s)?(?<![\d$€£#.,:/-])"
            rf"\b{year}\b(?!%|[.,:/-]\d|\s?{_COUNTS})",
            readings.year,
            1,
        ),
    ]


def _clock() -> list[Rule]:
    at = r"\b(?:at|around|by|um|gegen|a las?|à|às|alle|vers)\s{1,3}"
    hour, minute = r"(?<![\d:.,])(?P<h>\d{1,2})", r":(?P<i>\d\d)(?![\d:])(?:\s?uhr\b)?"
    full = r"\s?(?:uhr\b|h(?P<i>\d\d)?\b)"
    return [
        _rule(rf"(?:{at})?{hour}(?:[:.](?P<i>\d\d))?\s?(?P<p>[ap])(?:m\b|\.\s?m\.)", readings.time_of_day),
        *(_rule(at + hour + end, readings.time_of_day) for end in (minute, full)),
        *(_rule(hour + end, readings.time_of_day, 2) for end in (minute, full)),
        _rule(rf"(?:{at})?\b(?:noon|midday)\b", readings.noon),
    ]
