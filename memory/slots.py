"""The slots that a fact can fill: ("user", "home_city", "Lisbon").

A slot says what contradicts what: a single-valued one holds one value at a time, so a new value takes the old one's
place; a many-valued one collects values. Some slots are families: `favourite_<thing>`, `deadline:<thing>`,
`date:<thing>`, `schedule:<activity>`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from sharpwave.memory.records import Kind


@dataclass(frozen=True, slots=True)
class SlotRule:
    """What is known about an attribute before any value is seen."""

    many: bool = False
    """Several values hold at once."""
    standing: bool = False
    """Never grows stale by mere time: an allergy, a birthday."""
    importance: float = 0.5
    """Default importance of a memory in this slot, 0..1."""
    kind: Kind = "fact"
    aliases: str = ""
    """Words that people use for it, which help a search to find it."""


SLOTS: Mapping[str, SlotRule] = MappingProxyType(
    {
        "name": SlotRule(standing=True, importance=0.9, aliases="name called call who"),
        "age": SlotRule(importance=0.8, aliases="age old years turned"),
        "birthday": SlotRule(standing=True, importance=0.8, aliases="birthday born birth date"),
        "origin": SlotRule(
            many=True, standing=True, importance=0.7, aliases="from originally grew up raised born hometown"
        ),
        "nationality": SlotRule(
            many=True, standing=True, importance=0.7, aliases="nationality from country citizen passport"
        ),
        "home_city": SlotRule(
            importance=0.7, aliases="live lives living home city town reside based move moved relocated"
        ),
        "home_country": SlotRule(
            importance=0.7, aliases="live lives living home country reside based move moved relocated"
        ),
        "job": SlotRule(
            importance=0.7, aliases="job work works working profession occupation role career trade position"
        ),
        "employer": SlotRule(importance=0.7, aliases="work works working employer company job joined office"),
        "allergy": SlotRule(
            many=True, standing=True, importance=0.95, aliases="allergy allergic intolerant reaction reacts"
        ),
        "diet": SlotRule(importance=0.8, kind="preference", aliases="diet eat eats eating food"),
        "avoids": SlotRule(many=True, importance=0.8, kind="preference", aliases="avoid avoids eat drink not food"),
        "condition": SlotRule(
            many=True, importance=0.9, aliases="health medical condition illness diagnosed suffer have"
        ),
        "medication": SlotRule(
            many=True, importance=0.9, aliases="medication medicine take takes pills tablets health"
        ),
        "handedness": SlotRule(standing=True, importance=0.8, aliases="handed hand"),
        "pet": SlotRule(many=True, importance=0.7, aliases="pet pets animal animals have own adopted named called"),
        "marital_status": SlotRule(importance=0.7, aliases="married single divorced engaged relationship"),
        "partner": SlotRule(
            importance=0.7, aliases="partner girlfriend boyfriend dating seeing relationship together couple"
        ),
        "spouse": SlotRule(importance=0.7, aliases="spouse wife husband married"),
        "child": SlotRule(many=True, importance=0.7, aliases="child children kid kids son daughter baby"),
        "sibling": SlotRule(many=True, importance=0.7, aliases="sibling brother sister twin"),
        "parent": SlotRule(many=True, importance=0.7, aliases="parent mother father mum mom dad parents"),
        "friend": SlotRule(many=True, importance=0.6, aliases="friend friends mate"),
        "colleague": SlotRule(many=True, importance=0.6, aliases="colleague coworker boss manager team"),
        "likes": SlotRule(many=True, kind="preference", aliases="like likes love loves enjoy prefer favourite"),
        "dislikes": SlotRule(many=True, kind="preference", aliases="dislike hate hates stand bear like not"),
        "hobby": SlotRule(many=True, kind="preference", aliases="hobby hobbies play plays free time sport pastime fun"),
        "language": SlotRule(
            many=True, standing=True, importance=0.6, aliases="language languages speak speaks fluent learning"
        ),
        "vehicle": SlotRule(aliases="car vehicle drive drives bike motorbike"),
        "phone": SlotRule(importance=0.7, aliases="phone number mobile call"),
        "email": SlotRule(importance=0.7, aliases="email mail address"),
        "address": SlotRule(importance=0.8, aliases="address street live home"),
        "commute": SlotRule(aliases="commute travel work get go to by bus train cycle drive walk office"),
        "weight": SlotRule(aliases="weigh weight kilos pounds"),
        "workplace": SlotRule(aliases="work works working office home remote remotely"),
        "school": SlotRule(importance=0.6, aliases="school university college study studies attend student graduated"),
        "studies": SlotRule(importance=0.6, aliases="study studies studying degree major subject course"),
        "plan": SlotRule(many=True, importance=0.5, kind="event", aliases="plan plans planning going will intend goal"),
        "possession": SlotRule(many=True, importance=0.5, aliases="own owns have has bought got"),
        "reading": SlotRule(importance=0.4, aliases="reading book read novel"),
        "project": SlotRule(many=True, importance=0.6, aliases="project working building writing"),
        "habit": SlotRule(many=True, importance=0.5, aliases="habit usually always every routine"),
    }
)

_FAMILIES: Mapping[str, SlotRule] = MappingProxyType(
    {
        "favourite_": SlotRule(importance=0.5, kind="preference", aliases="favourite favorite best prefer"),
        "deadline:": SlotRule(importance=0.6, kind="event", aliases="deadline due"),
        "date:": SlotRule(importance=0.6, kind="event", aliases="date when day time"),
        "schedule:": SlotRule(importance=0.5, aliases="when day days schedule every week"),
    }
)
_UNKNOWN = SlotRule()
FORMER = "former:"
"""Before an attribute: its value held once, and says nothing about the present."""
_DERIVED_WORD = re.compile(r"[^\W_]+")


def slot(attribute: str) -> SlotRule:
    """Return the rule of `attribute`: its own, its family's, or that of an unlisted attribute (single-valued).

    What once held (`former:…`) is many-valued.
    """
    if attribute.startswith(FORMER):
        return replace(slot(attribute.removeprefix(FORMER)), many=True)
    if attribute in SLOTS:
        return SLOTS[attribute]
    return next((rule for prefix, rule in _FAMILIES.items() if attribute.startswith(prefix)), _UNKNOWN)


def aliases(attribute: str) -> str:
    """Return words that help to find facts of `attribute`, separated by spaces; its own words for an unlisted one."""
    attribute = attribute.removeprefix(FORMER)
    own = " ".join(_DERIVED_WORD.findall(attribute))
    known = slot(attribute).aliases
    return known if attribute in SLOTS else f"{own} {known}".strip()
