"""From one English clause to the slot it fills: who, which attribute, what value, and whether it says so or takes it back.

A clause is read as subject and predicate. The predicates know nothing of the subject, so "I", "my sister Oona" and "she"
share one grammar. No rule fits: no slot, and the clause is kept as it stands.
"""

import re
from dataclasses import dataclass, replace

from sharpwave.memory.extract.endings import given_up, gone
from sharpwave.memory.extract.grammar import ANIMAL, CLAUSES, KIN_WORD, PREDICATES, Row
from sharpwave.memory.extract.quoting import MEDICAL_SOURCE, unquoted
from sharpwave.memory.extract.values import ANIMALS, KIN, clean, is_name, is_vehicle, place_attribute, thing_key
from sharpwave.memory.phrases import expanded, without_adverbs
from sharpwave.memory.slots import SLOTS

USER = "user"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a clause says."""

    subject: str = USER
    attribute: str | None = None
    value: str | None = None
    retract: bool = False
    history: bool = False
    hedged: bool = False


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_NOUN = (
    r"(?:(?:older|elder|younger|little|big|eldest|oldest|youngest|best|other|late|new|old|close|twin|second|first"
    r"|former|upstairs|downstairs"
    r"|dear|good|foster|adopted|step|maternal|paternal|great) )*"
)
_WHO = rf"{_NOUN}(?:{KIN_WORD})s?|{_NOUN}{ANIMAL}"
_NAMED = r"(?P<n>,? (?-i:[A-Z])[\w-]+(?: (?-i:[A-Z])[\w-]+)?,?)"
_PERSON = _re(
    rf"(?:(?P<m>(?-i:[A-Z])[\w-]+), )?(?:(?:my|our) |(?=(?:mum|mom|dad|gran|granny|grandma|grandpa|nan)\b))"
    rf"(?P<k>{_WHO}){_NAMED}?(?:, who (?:is|has)\b[^,]*,|,)?"
    rf" (?P<p>(?!and I\b).+)"
)
_THE_KIN = _re(rf"the (?P<k>(?:{KIN_WORD})s?|twins|boys|girls) (?P<p>.+)")
"""Whom somebody who has been spoken of may be called by."""
_NAME_OF = _re(
    rf"(?:my|our) (?P<k>{_NOUN}(?:{KIN_WORD})s?)(?:'s? name is| is (?:called|named)| are (?:called|named)| goes"
    rf" by) (?P<v>.+)"
)
_MENTION = _re(
    rf"\b(?:my|our|the|an?|another) (?P<k>{_WHO})\b(?:{_NAMED}|,? (?:called|named) (?P<c>(?-i:[A-Z])[\w-]+)|'s"
    rf" name is (?P<d>(?-i:[A-Z])[\w-]+))?"
)
_FRONT = _re(
    r"(?:[^,]{1,60},\s+(?=(?:I|we|my|our)\b)|(?:in|on|at|since|after|before|last|these|this|every|from|for|by"
    r"|during|until|back|now|nowadays|today"
    r"|yesterday|lately|professionally|usually|sometimes|most|once|originally|as|when|about|around|two|three|four"
    r"|five|six|ten|\d+|a|the|some|over|right)"
    r"\b[^,]{0,60}?\s(?=(?:I|we)\s))"
)
_ME = _re(
    r"(?:I|we|both of us|(?:me and )?(?:my|our) [\w-]+(?: (?-i:[A-Z])\w+)? and (?:I|me)|(?-i:[A-Z])\w+ and I|me"
    r" and (?-i:[A-Z])\w+)\s+(?P<p>.+)"
)
_PRONOUN = _re(r"(?:(?:he|she|they|it)|(?:his|her|their|its) (?P<t>\w+)(?= is| are))\s+(?P<p>.+)")
_NAME_FIRST = re.compile(r"(?P<n>[A-Z][\w-]+)\s+(?P<p>.+)")
_LOWER_FIRST = _re(r"(?P<n>[\w-]+) (?:has |just )*(?:died|passed away|was put (?:down|to sleep)|ran away)\b")
_REPLACED = _re(
    r"(?:,? and|,|;|,? then) (?:(?:I|we|have|has|then|instead|my) )*"
    r"(?=(?:moved|got|bought|became|started|joined|switched|adopted|work|live|drive|am|is|took|picked|went)\b)"
)
_PAST = _re(
    r"(?:used to|lived|worked|was|were|owned|drove|dated|formerly|previously|resided|spoke)\b|had (?=an? |two "
    r"|three )"
)
_NOT_PAST = _re(
    r".*\bsince\b|(?:was|were) (?:born|raised|diagnosed|promoted|hired|prescribed|given|told|named)\b|had (?:a"
    r" baby|surgery|an operation|a son|a daughter|twins)\b"
)
_HEDGE = _re(
    r"I (?:think|believe|guess|suppose|am pretty sure|am fairly sure|am quite sure|am almost sure)(?: that)?"
    r" (?=(?:I|my|we|our)\b)"
)
_MAYBE = _re(
    r"\b(?:probably|i think|i believe|i guess|i suppose|might be|apparently|if i remember|pretty sure|fairly sure"
    r"|not certain|more or less)\b"
)

_COMMAND = _re(
    r"\W*(?:(?:please|ok|okay|actually|no|oh|and|also|you can|can you|could you)\W+)*(?:forget|scrap|delete|remove"
    r"|erase|drop|disregard|ignore|unlearn|never mind|strike)"
    r" (?:(?:about|everything about|all) )?(?:the (?:fact|thing|bit|part) )?(?:that )?(?:what I (?:said|told"
    r" you)(?: before)?(?: about)?|what you know about)?\s*(?P<p>.*)"
)
_UNTRUE = _re(
    r"(?:(?:that|the fact that) (?P<p>.+?) (?:is|was) (?:not|no longer) (?:true|right|correct|the case|accurate"
    r"|valid|so)\b|(?:that|it|this)(?: one)? (?:is|was) (?:not|no longer|wrong|outdated)\b)"
)
_NOT_ANY_MORE = _re(
    r"(?:(?P<be>am|is|are|was|were|have been|has been) |(?:do|does|did|have|has|can|will) )?(?:no longer|not)"
    r" (?P<p>.+?)(?: (?:any more|any longer|after all)\b.*)"
)
_NO_LONGER = _re(r"(?:(?P<be>am|is|are|was|were) |(?:do|does|have|has|can|could) )?no longer (?P<p>.+)")
_NOT = _re(
    r"(?:(?P<be>am|is|are) not |(?=(?:have|has|own)s? no )|(?:do|does|have|has|can) not (?=(?:have|own|live|work"
    r"|speak|play|drive|ride|use|take|go|do|study|date|collect|keep)\b))(?P<p>(?:the one )?.+)"
)
_GAVE_UP = _re(
    r"(?:(?:have|has|had to|am|is|decided to) )?(?:given up(?: on)?|gave up(?: on)?|giving up|give up|quit"
    r"|quitting|stopped|stop|ceased|ended(?! up)|terminated|discontinued|came off|come off|went off|let go of|did not renew|have not renewed|(?:finished|completed)(?= (?:the|my|our) (?!degree|phd|master|studies|training))|dropped(?: out of)?|done(?: with|(?= \w+ing\b))|through with|finished with|kicked"
    r"|packed in|retired from|gone off|outgrown|outgrew|lost interest in|cancelled|canceled|resigned from|resigned"
    r" as|cut out|sworn off|stepped down (?:from|as)|left(?= (?:the|our|my) (?:.* )?(?:council|club|team|band"
    r"|group|choir|board|committee|class|course|party|church|union|company|firm|gym|league|society|association"
    r"|employ|project)\b| (?:the|my|our) (?!house|home|office|building|room|flat|apartment|party|airport|hotel|car|door"
    r"|keys|dog|cat|kids|children|baby|phone|lights?|oven|table|country|city|town|shop|meeting)\w+$)|off(?= (?:the|my|all) )|withdrew from|pulled out of|backed out of|opted out of|unsubscribed from) (?P<p>(?!by\b|at\b"
    r"|in\b|for\b|to\b|off\b|my phone).+)"
)
_GAVE_AWAY = _re(
    r"(?:(?:have|has|had to|just) )?(?:sold|sell|got rid of|get rid of|gave away|given away|give away|donated"
    r"|scrapped|rehomed|rehome|parted with|traded in|lost) (?:off )?(?:my |our |the |his |her |all )+(?P<p>.+)"
    r"|(?:have|had)(?: to have| to get)? (?P<s>.+?) (?:put down|put to sleep|rehomed|removed|euthani[sz]ed|disconnected|taken out|cut off|switched off|taken away)\b"
    r"|(?:had to )?let (?:my |our |the )(?P<l>.+?) (?:lapse|expire|run out|go)\b"
    r"|(?:gave|give|given|handed|passed) (?:my |our |the )(?P<q>.+?) (?:away|up|back|over|on)\b"
    r"|(?:have |has )?sold (?P<n>(?-i:[A-Z])[\w-]+)(?! for\b)|forgot all (?:my|the) (?P<r>.+)"
)
_JOBLESS = _re(
    r"(?:(?:have|has) )?(?:(?:quit|left|lost|resigned from|walked away from) (?:my|the|his"
    r"|her) (?:old |current |day )?(?:job|position|post|company)\b|(?:was|got|have been|am being|were) (?:laid off"
    r"|fired|made redundant|let go|sacked)|handed in my notice|(?:took|taken|accepted) (?:voluntary redundancy|early retirement|redundancy|severance)|resigned\b|retired\b(?! from))(?: (?:at|from|as) (?P<p>.+))?"
)
_LEFT = _re(r"(?:(?:have|has) )?(?:left|resigned from|am leaving|am done at) (?P<v>(?-i:[A-Z])[\w&.' -]+)")
_MOVED_OUT = _re(r"(?:have |has )?moved (?:out of|away from) (?P<v>(?!.* (?:to|into) )(?-i:[A-Z]).+)")
_SPLIT = _re(
    r"(?:(?:I|we|have|has|are|got|(?:my [\w-]+|(?P<y>(?-i:[A-Z])\w+)) and I) )*(?:broke up|broken up|split(?: up)?"
    r"|separated|got divorced|divorced|no longer together|not together any more|not a couple any more|called it"
    r" quits|called off (?:our|the|my) engagement)\b(?: with (?P<v>.+))?"
    r"|(?:it is over (?:with|between) (?P<z>(?-i:[A-Z])\w+)|(?P<w>(?-i:[A-Z])\w+|my \w+) (?:left|dumped) me\b)"
)
_DIED = _re(
    r"(?:(?:has|have|was|were|is|had to be) )?(?:died|passed away|passed(?! (?:his|her|my|their|its|our|the|an?|with|on|through|by|it|\w+ (?:exam|test))\b)|dead|put down|put to sleep|ran away|run"
    r" away|gone|crossed the rainbow bridge)\b"
)
_OVER = _re(
    r"(?:no more (?P<v>.+?) for me\b|my time as (?P<x>.+?) (?:is|has)\b|(?!I\b|we\b)(?P<w>.+?) (?:is|are|was|were"
    r"|has|have|got) (?:(?:been )?(?:sold|stolen|put down|removed)|off(?: my list)?(?=$|,)|(?:been )?(?:cancelled|canceled|called off)|a thing of the past|gone(?=$|[.,;!]| (?:for good|forever|now|at last|finally|too)\b)|over(?! (?:the moon|there|here|it|at|by|in)\b)"
    r"|history|vanished|ended|(?:a |been a )?false alarm|not a problem(?: for me)?|scrapped|been scrapped|off the"
    r" table|finished$|ended$|(?:been )?stolen|moved out|cleared up|come to an end|come to nothing|fallen through)\b|(?!I\b|we\b)(?P<u>.+?) (?:fell through|broke up|split up|finished$|ended$|moved out"
    r"|disbanded|came to nothing|came to an end)\b|(?:they|(?:my|the) \w+) (?:took|have taken|has taken) me off (?P<t>.+))"
)
_NEW_ONE = _re(r"^(?:my |our |the )?new (\w+(?: \w+)?): ")
_FADED = _re(
    r"(?P<a>(?:me|us|my|our)\b.*?) (?:(?:is|are|am|do|does|have|has|can) )?(?:no longer|not(?=.* any (?:more|longer)\b))"
    r" (?P<b>.+?)(?: any (?:more|longer)\b.*)?$"
)
_OF_SOMEBODY = {
    "pet": _re(r".*\b(?:lost|buried|goodbye to|put|let)\b"),
    "partner": _re(
        r".*\b(?:dumped|fell out|fallen out|parted|parting|broke|broken|split|over|moved on|ditched|left)\b"
    ),
}
"""Whom one has done with, where it is somebody with a name."""
_MAKES = {"vehicle": frozenset("car bike motorbike motorcycle van truck scooter ride wheels".split())}


def read(
    clause: str, subject: str = USER, antecedent: str | None = None, names: frozenset[str] = frozenset()
) -> Reading | None:
    """Read one clause.

    Args:
        clause: verbatim, as `clauses` yields it.
        subject: whom "I" stands for.
        antecedent: whom "he", "she", "they" or "it" at the start stands for, if anyone.
        names: names in lower case that the user has spoken of before; a clause may start with one of them.

    Returns:
        Who and what, with `attribute` None where nothing but the subject is clear; None when the clause's grammar leads
        nowhere, so that nothing ties it to the user.
    """
    whole = _NEW_ONE.sub(r"my new \1 is ", expanded(unquoted(clause)).strip(" .!,;"))
    hedged = bool(_MAYBE.search(whole))
    said = without_adverbs(_HEDGE.sub("", MEDICAL_SOURCE.sub("", whole)))
    found = _read(said, antecedent, names)
    if found is None:
        return None
    return replace(found, subject=subject if found.subject == USER else found.subject, hedged=hedged)


def mentioned(clause: str) -> str | None:
    """Return the person or animal of the user's that a clause brings up, by name if it has one, for a later "she"."""
    found = _MENTION.search(without_adverbs(expanded(clause)))
    if not found:
        return None
    named = found["c"] or found["d"] or (found["n"] or "").strip(" ,")
    return named or found["k"].casefold()


def _read(said: str, antecedent: str | None, names: frozenset[str]) -> Reading | None:
    if command := _COMMAND.fullmatch(said):
        return _taken_back_by_name(command["p"], names)
    if untrue := _UNTRUE.match(said):
        return _taken_back_by_name(untrue["p"] or "", names)
    for candidate in dict.fromkeys((said, _FRONT.sub("", said, count=1))):
        found = _clause(candidate) or _sentence(candidate, antecedent, names)
        if found:
            return found
    if faded := _FADED.match(said):
        return Reading(value=f"{faded['a']} {faded['b']}".strip(), retract=True)
    return None


def _taken_back_by_name(rest: str, names: frozenset[str]) -> Reading:
    """Read "forget that I live in Rome"; without a readable rest it takes back something unnamed."""
    inner = _read(rest, None, names) if rest else None
    if rest and not inner and (asked := _row(f"{rest} is 1", CLAUSES)):  # "forget my phone number"
        return replace(asked, value=None, retract=True)
    inner = inner or _predicate(rest) or _predicate(f"like {rest}") if rest else None
    return replace(inner, retract=True, history=False) if inner else Reading(retract=True)


def _clause(said: str) -> Reading | None:
    """Read a whole clause: names of kin, things taken back by what became of them, and the table of clauses."""
    if kin := _NAME_OF.match(said):
        kind, value = KIN.get(kin["k"].casefold().split()[-1]), clean(kin["v"], "name")
        if value and kind not in ("spouse", "partner"):
            return Reading(kin["k"].casefold(), "name", value)
    if split := _SPLIT.match(said):
        return _apart(split)
    if over := _OVER.match(said):
        return _object_gone(next(over[g] for g in "vwxut" if over[g]))
    if ended := gone(said):
        return _object_gone(ended)
    return _row(said, CLAUSES)


def _apart(split: re.Match[str]) -> Reading:
    value = next((split[g] for g in "vwyz" if split[g]), "")
    return Reading(attribute="partner", value=clean(value, "partner") or None if value else None, retract=True)


def _sentence(said: str, antecedent: str | None, names: frozenset[str]) -> Reading | None:
    if me := _ME.match(said):
        return _predicate(me["p"]) or Reading()
    if person := _PERSON.match(said):
        who = (person["m"] or person["n"] or "").strip(" ,") or person["k"].casefold()
        if person["a"] and _DIED.match(person["p"]):
            return Reading(attribute="pet", value=who, retract=True)
        return replace(_predicate(person["p"]) or Reading(), subject=who)
    if antecedent and (pronoun := _PRONOUN.match(said)):
        if thing := pronoun["t"]:
            value = clean(re.sub(r"^(?:is|are) (?:called |named )?", "", pronoun["p"]), "name")
            return Reading(antecedent, thing_key(thing), value) if is_name(value) else Reading(antecedent)
        return replace(_predicate(pronoun["p"]) or Reading(), subject=antecedent)
    if (kin := _THE_KIN.match(said)) and kin["k"].casefold() in names:
        return replace(_predicate(kin["p"]) or Reading(), subject=kin["k"].casefold())
    if (named := _NAME_FIRST.match(said)) and named["n"].casefold() in names:
        if _DIED.match(named["p"]):
            return Reading(attribute="pet", value=named["n"], retract=True)
        return replace(_predicate(named["p"]) or Reading(), subject=named["n"])
    if (low := _LOWER_FIRST.match(said)) and low["n"] in names:
        return Reading(attribute="pet", value=low["n"], retract=True)
    return None


def _predicate(predicate: str) -> Reading | None:
    """Read what is said of a subject: something taken back, something past, or something that is."""
    predicate = re.sub(r"^(?:(?:have|has) )?(?:switched|changed|gone over|moved on) to (?=\w+ing\b)", "am ", predicate)
    halves = _REPLACED.split(predicate, maxsplit=1)
    if len(halves) == 2 and (_gone(halves[0]) or _row(halves[0], PREDICATES)):
        after = _row(halves[1], PREDICATES)
        before = _row(halves[0], PREDICATES)
        if after and (_gone(halves[0]) or (before and before.attribute == after.attribute)):
            return after
    if gone := _gone(predicate):
        return gone
    past = bool(_PAST.match(predicate)) and not _NOT_PAST.match(predicate)
    inner = re.sub(
        r"^(?:used to|formerly|previously) (?:be\b)?", lambda m: "was " if m[0].endswith("be") else "", predicate
    ).replace("was  ", "was ")
    found = _row(inner, PREDICATES)
    if found is None:
        return Reading(history=True) if predicate.casefold().startswith("used to ") else None
    return replace(found, history=past)


def _gone(predicate: str) -> Reading | None:
    """Read a predicate that says something is no longer so."""
    if jobless := _JOBLESS.match(predicate):
        value = clean(jobless["p"], "job") if jobless["p"] else None
        return Reading(attribute="job", value=value or None, retract=True)
    if (left := _LEFT.match(predicate)) and not re.search(r"\b(?:for|and)\b", left["v"]):
        return Reading(attribute="employer", value=clean(left["v"], "employer"), retract=True)
    if (out := _MOVED_OUT.match(predicate)) and (place := clean(out["v"], "home")):
        return Reading(attribute=place_attribute(place), value=place, retract=True)
    if split := _SPLIT.match(predicate):
        return _apart(split)
    if away := _GAVE_AWAY.match(predicate):
        return _object_gone(next(away[g] for g in "pqrsln" if away[g]))
    if up := _GAVE_UP.match(predicate):
        return _object_gone(up["p"])
    if thing := given_up(predicate):
        whom = next((name for name, verbs in _OF_SOMEBODY.items() if verbs.match(predicate)), None)
        return Reading(attribute=whom, value=thing, retract=True) if whom and is_name(thing) else _object_gone(thing)
    return _denied(predicate)


def _denied(predicate: str) -> Reading | None:
    """Read "no longer …", "do not … any more", "am not …": dislikes and avoidances stay what they are."""
    if re.match(
        r"(?:can|could) not (?:stand|bear|abide|tolerate)|(?:hate|dislike|loathe|detest)s?\b", predicate, re.IGNORECASE
    ):
        return None
    for pattern in (_NOT_ANY_MORE, _NO_LONGER, _NOT):
        if not (found := pattern.match(predicate)):
            continue
        if pattern is _NOT_ANY_MORE and found["be"] and (beside := re.match(r"(?:with|at|in) (.+)", found["p"])):
            return replace(_object(beside[1]), attribute=None, retract=True)
        inner = re.sub(r"^the one (?:who is |with )?|(?<=^have )no (?!allerg)|(?<=^has )no ", "", found["p"])
        if re.match(r"(?:allergic to|have|sensitive to|on) (?:any(?:thing)?\b|no\b)", inner):
            return _none(inner)
        reading = _row(f"{found['be']} {inner}" if found["be"] else inner, PREDICATES) or _row(inner, PREDICATES)
        if pattern is _NOT:
            return replace(reading, retract=True) if reading and _row(predicate, PREDICATES) is None else None
        return replace(reading or _object(inner), retract=True)
    return None


def _none(inner: str) -> Reading | None:
    """Read "not allergic to anything" and "do not have any pets": the slot is known to be empty."""
    if re.search(r"\ballerg", inner):
        return Reading(attribute="allergy", value="none")
    words = [w.strip("s.,") for w in inner.casefold().split()]
    return Reading(attribute="pet", value="none") if set(words) & ANIMALS else None


def _object_gone(raw: str) -> Reading:
    """Read what was given up, sold or lost: as a predicate of its own where it is one, else as the bare thing."""
    raw = re.sub(r" (?:lark|thing|stuff|malarkey|nonsense|business)$", "", raw)
    inner = re.sub(r"^being (?=an? )", "am ", re.sub(r"^(?:my|our|the|his|her) ", "", raw))
    if job := re.match(r"job (?:at|with|for) (.+)", inner, re.IGNORECASE):
        return Reading(attribute="employer", value=clean(job[1], "employer"), retract=True)
    if job := re.match(r"(?:job|position|career|role)(?: as (.+))?$", inner, re.IGNORECASE):
        return Reading(attribute="job", value=clean(job[1], "job") if job[1] else None, retract=True)
    if allergy := re.match(r"([\w-]+) allergy", inner, re.IGNORECASE):
        return Reading(attribute="allergy", value=allergy[1], retract=True)
    return replace(
        _row(inner, PREDICATES) or _row(_base(inner), PREDICATES) or _object(inner), retract=True, history=False
    )


def _base(inner: str) -> str:
    """Return "play tennis" for "playing tennis": the predicate that a gerund stands for."""
    return re.sub(
        r"^(\w{2,}?)(?:(tt|nn|mm)|([^aeiou\W])|)ing\b", lambda m: m[1] + (m[2][0] if m[2] else m[3] or ""), inner
    )


def _object(inner: str) -> Reading:
    """Read a bare thing: a vehicle, an animal, or something done."""
    value = clean(inner, "hobby")
    first = value.casefold().split()[0] if value else ""
    if is_vehicle(value):
        return Reading(attribute="vehicle", value=None if value.casefold() in _MAKES["vehicle"] else value)
    if first in ANIMALS:
        return Reading(attribute="pet", value=value)
    return Reading(attribute="hobby" if value.endswith("ing") and " " not in value else None, value=value or None)


def _row(said: str, rows: tuple[Row, ...]) -> Reading | None:
    """Return the reading of the first row that fits `said`."""
    for attribute, pattern, check in rows:
        found = pattern.match(said)
        if not found:
            continue
        groups = found.groupdict()
        value = clean(groups.get("v") or groups.get("w") or "", attribute)
        if not value or not check(value):
            continue
        if attribute == "kin_name":
            return _kin_name((groups["k"] or "").casefold(), value)
        if name := _attribute(attribute, value, groups):
            return Reading(attribute=name, value=value)
    return None


def _kin_name(kin: str, name: str) -> Reading:
    """Return who has which name: partners fill the user's own slot, others have a name of their own."""
    kind = KIN[kin]
    return Reading(attribute=kind, value=name) if kind in ("spouse", "partner") else Reading(kin, "name", name)


_OWN_NAMES = {"employer": "employer", "firm": "employer", "major": "studies", "degree": "studies"}
"""What people call a slot of theirs."""


def _attribute(attribute: str, value: str, groups: dict[str, str | None]) -> str | None:
    thing = groups.get("t") or ""
    if attribute == "home":
        return place_attribute(value)
    if attribute == "kin":
        return KIN.get((groups.get("k") or "").casefold().rstrip("s"), "relative")
    if attribute == "favourite":
        return f"favourite_{thing_key(thing)}" if thing_key(thing) else None
    if attribute in ("own", "own_new"):
        key = thing_key(thing)
        if set(re.split("_", key)) & (ANIMALS | KIN.keys()):
            return None
        return _OWN_NAMES.get(key) or (f"{key}_kind" if key in SLOTS else key)
    if attribute == "schedule":
        return f"schedule:{thing_key(_activity(thing))}"
    if attribute == "date" and re.match(r"(?:\w+days|weekdays?|weekends?|\w+day (?:\w+s))\b", value, re.IGNORECASE):
        return f"schedule:{thing_key(_activity(thing))}"
    if attribute in ("deadline", "date"):
        return f"{attribute}:{thing_key(thing)}"
    return attribute


_ACTIVITY = re.compile(
    r"^(?:always |usually |often )?(?:go(?:es)?|plays?|have|has|do(?:es)?|takes?|train|trains|attends?|meets?"
    r"|sees?|visits?|am|is|hits?|practi[sc]es?)\b(?: running)?(?: to| at| with| for| a| an)*(?: the| my| our|"
    r" an?)*\s*",
    re.IGNORECASE,
)


def _activity(words: str) -> str:
    """Return what a habit is about ("go to the gym" is about the gym)."""
    return (
        re.sub(r" (?:days?|slot|time|sessions?|lessons?|class|classes|is|are)$", "", _ACTIVITY.sub("", words)) or words
    )
