"""The role of a term, told by the words around it: since then, until then, from one to another, or simply then."""

import re
from datetime import UTC, datetime

from sharpwave.memory.records import EventTime, Precision
from sharpwave.memory.when.names import Name, settle
from sharpwave.memory.when.tense import Saying
from sharpwave.memory.when.terms import Term

_FINE = ("second", "minute", "hour", "day", "week")
_LEAD = re.compile(
    r"(?:(?P<since>\b(?:ever since|since|seit(?: dem)?|desde|depuis|dal(?:la|lo)?)\s|\bdall['’]|自从|自|从)"
    r"|(?P<until>\b(?:until|till|til|bis(?: zum)?|hasta|jusqu['’](?:en|au|à)|até|ao|fino (?:al?|alla|ad))\s|直到)"
    r"|(?P<span>\b(?:from|between|von|vom|entre|zwischen)\s)|(?P<ahead>\b(?:for|für|para|pour)\s)"
    r"|\b(?:back in|in|during|over the|by|starting(?: in)?|im(?: jahre?)?|en|em|au|nel"
    r"|ad?(?=\s+\w+(?:aio|rzo|ile|ggio|gno|glio|sto|bre)\b)"
    r"|ab|ende|anfang|mitte|early|late|mid|(?:start|beginning|middle|rest|end) of)\s|\b(?:nell|l|d)['’])\s{0,3}(?P<more>(?:the|early|late|mid|anfang|mitte|ende)[\s-]\s?)?",
    re.IGNORECASE,
)
_AFTER = re.compile("(?P<since>以来|から|起)|(?P<until>まで|为止)")
_TO = re.compile(
    r"\s{0,3}(?:(?:to|and|until|till|through|bis|a|al|à|au|e|et|y|und|até|hasta)\s{1,3}|[-–—]\s{0,3}|到|から)",
    re.IGNORECASE,
)
_RECURS = re.compile(
    r"\b(?:every|each|jede[nrs]?|cada|chaque|ogni|los|todos? [oa]s)"
    r"\s+(?:(?:other|second|single|zweite[nrs]?)\s+)?$|[每毎]$",
    re.IGNORECASE,
)
_USUALLY = re.compile(
    r"\b(?:every|each|daily|usually|always|often|normally|typically|consistently|sometimes"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun|week)days|mornings|evenings|nights"
    r"|jeden|immer|meistens|siempre|toujours|sempre)\b",
    re.IGNORECASE,
)


def leads(text: str, low: int, high: int) -> dict[int, re.Match[str]]:
    """The words in text[low:high] that lead to a time, such as "in" or "since", by where a term may begin after them."""
    found = _LEAD.finditer(text, low, high)
    return {end: lead for lead in found for end in (lead.end(), lead.start("more"))}


def recurs(text: str, term: Term) -> bool:
    """Whether the term comes after a word such as "every"."""
    return _RECURS.search(text, max(0, term.at - 24), term.at) is not None


def told(
    saying: Saying, term: Term, lead: re.Match[str] | None, following: Term | None, default_past: bool
) -> EventTime | None:
    """Return the time that `term` tells after `lead` and before the term that is `following`, or None.

    Without a word of a tense a name is the nearest one to come, or past with `default_past`. Raises `ValueError` or
    `OverflowError` for a time beyond the years 1 to 9999.
    """
    text, said, to, role = saying.text, saying.moment, term.to, _role(lead)
    at = lead.start() if lead and (role in ("since", "until") or term.bare) else term.at
    if after := _AFTER.match(text, to):
        to, role = after.end(), after.lastgroup
    tense = False if role == "ahead" else saying.past(term.at, term.to)
    past = role == "since" or (default_past if tense is None else tense)
    habit = isinstance(term.what, Name) and term.what.habit and role is None
    if habit and ((tense is None and not default_past) or _USUALLY.search(text)):
        return None
    if (span := settle(term.what, said, past)) is None:
        return None
    if role in ("span", "since") and following and _TO.fullmatch(text, term.to, following.at):
        last = settle(following.what, span.start, past=False)
        if last is not None and last.end > span.start:
            return _event(span.start, last.end, last.unit, text[lead.start() if lead else at : following.to])
    if role == "since" and span.start <= said:
        return _event(span.start, said, span.unit, text[at:to])
    if role == "until" and (limit := settle(term.what, said, past, strict=True)):
        end = limit.end if limit.unit in _FINE else limit.start
        if end > said:
            return _event(said, end, limit.unit, text[at:to])
    return _event(span.start, span.end, span.unit, text[at:to])


def _role(lead: re.Match[str] | None) -> str | None:
    return next((role for role in ("since", "until", "span", "ahead") if lead[role]), None) if lead else None


def _event(start: datetime, end: datetime, precision: Precision, phrase: str) -> EventTime | None:
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    return EventTime(start=start, end=end, precision=precision, phrase=phrase.strip()) if start <= end else None
