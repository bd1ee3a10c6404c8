"""Proper names in a text: after words for kin, after titles, and within sentences. By rules, rather too few than a wrong one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sharpwave.memory import keywords
from sharpwave.memory.extract.values import is_nationality
from sharpwave.memory.grams import WORD, WORDS, folded
from sharpwave.memory.kinds import EntityType
from sharpwave.memory.kinship import ADJECTIVES, MY, ROLE, ROLE_WORDS, kin

SUBJECT, VALUE, TEXT = 2, 1, 0
"""Where in a memory a name stands: what it is about, the value of its slot, or elsewhere in the text."""


@dataclass(frozen=True, slots=True)
class Named:
    """A name that a memory says is one."""

    name: str
    type: EntityType = "concept"
    """What it is the name of; `concept` also where that is not clear."""
    part: int = TEXT
    role: str | None = None
    """What the named one is to the user, folded ("sister")."""


def in_text(text: str) -> Iterator[Named]:
    """Yield the names in a text, the surest first; one may come again."""
    yield from _kin(text)
    yield from _said(text)
    yield from _free(text)


def is_name(value: str) -> bool:
    """Whether the value of a slot is written like a name: with capitals, or in a script that has none."""
    words = [word for word in WORD.findall(value) if word not in _JOINERS]
    if not words or len(words) > WORDS or any(c.isdigit() for c in words[0]) or folded(value) in NO_NAME:
        return False
    return all(not word[0].islower() for word in words) and any(c.isalpha() for c in value)


_JOINERS = frozenset("de da do dos di del della la le el van von der den of the and y e ter ten al bin ibn".split())
_UPPER = "".join(chr(c) for c in range(0x590) if chr(c).isupper())  # Latin, Greek, Cyrillic, Armenian
_CAPITAL = rf"[{_UPPER}][\w\u0900-\u0963\u0966-\u109f]*(?:[-'’][^\W\d_]\w+)*"
_NAME = rf"{_CAPITAL}(?: (?:(?:de|da|van|von|der|di|del|la) )*{_CAPITAL}){{0,2}}"
CALLED = re.compile(rf"\b(?i:called|named|namens|llamad[ao]|chiamat[ao]|chamad[ao]|appelée?) (?P<n>{_NAME})")
_KIN_NAME = re.compile(
    rf"(?P<my>{MY} )?(?P<r>{ADJECTIVES}\b{ROLE})(?:,)?(?:'s name is|(?i: is| are)? (?i:called|named)| (?i:is|heißt|heisst|se llama"
    rf"|s['’]appelle|si chiama|(?:se )?chama-se|se chama|heet|heter))? (?P<n>{_NAME})(?!\w)"
)
_NAME_KIN = re.compile(rf"\b(?P<n>{_NAME})(?:,| (?i:is|ist|es|est|è|é)) {MY} (?P<r>{ADJECTIVES}\b{ROLE})\b(?!['’])")
_SAID: tuple[tuple[re.Pattern[str], EntityType], ...] = (
    (
        re.compile(rf"\b(?:Dr|Prof|Mr|Mrs|Ms|Mx|Herr|Frau|Señora?|Monsieur|Madame|Sr|Sra|Signora?)\.? (?P<n>{_NAME})"),
        "person",
    ),
    (
        re.compile(
            rf"\b(?i:wohn\w*|leb(?:e|t|en)|zieh\w*|zog\w*|umgezogen|vivo|vive|vivimos|habite|abito|moro) (?:\w+ )?(?i:in|nach|en|à|a|em) (?P<n>{_NAME})"
        ),
        "place",
    ),
    (re.compile(rf"\b(?i:arbeit\w*) (?:\w+ )?(?i:bei|für) (?:der |dem )?(?P<n>{_NAME})"), "organization"),
)


def _kin(text: str) -> Iterator[Named]:
    if ROLE_WORDS.isdisjoint(WORD.findall(text.casefold())):
        return
    for pattern in (_KIN_NAME, _NAME_KIN):
        for found in pattern.finditer(text):
            name = found["n"]
            if _opens(name.split()[0]) or kin(folded(name)):
                continue
            mine = pattern is _NAME_KIN or found["my"]
            yield Named(
                name, "person", SUBJECT if mine and not found.start() else TEXT, folded(found["r"]) if mine else None
            )


def _said(text: str) -> Iterator[Named]:
    """Yield names after titles, and after the words of other languages for living and working somewhere."""
    for pattern, kind in _SAID:
        for found in pattern.finditer(text):
            if not _opens(found["n"].split()[0]):
                yield Named(found["n"], kind)


# Names within a sentence

_GERMAN = re.compile(
    r"\b(?i:ich|mein\w*|und|der|das|ist|nicht|eine?[rnms]?|wir|mit|auf|für|zu[rm]?|im|den|dem|habe|hat|bin|bei|nach|von|sich|auch"
    r"|unser\w*|seit|aus|wie|aber|oder|jetzt|gern\w*|heute)\b"
)
_OTHERS = re.compile(
    r"\b(?i:i|my|the|an?|is|are|at|with|of|to|and|for|we|our|she|he|her|his|they|it|on|from|have|has|had|me|likes?|loves?|lives?"
    r"|works?|je|mon|ma|mes|les?|la|une?|est|et|du|el|mis?|una|es|y|con|en|il|lo|di|mi[ao]|uma|com|em|meu|minha|ik|mijn|het|een|met|van"
    r"|jag|ett|och|är|jeg|og|er)\b"
)
_SENTENCE = re.compile(r"(?:^|[.!?…:;\n\"“”«»(\[*•-]|['‘](?=[A-Z]))\s*$")
_RUN = re.compile(rf"(?<![\w'’]){_CAPITAL}(?: (?:(?:of|the|de|da|van|von|der|di|del|la|&) ){{0,2}}{_CAPITAL}){{0,3}}")
_VERBS = re.compile(
    r" (?:is (?:my|an?|from|married|allergic|called)|works|lives|loves|likes|said|told|moved|married|wants|plays|studies|speaks|hates|prefers|enjoys|adopted"
    r"|and I|got|joined|left|bought|called|lent|has (?:an?|two|three)|was born|wohnt|arbeitet|lebt|mag|vive|trabaja|travaille|habite|lavora)\b"
)
_OWNS = re.compile(rf"['’]s (?:{ROLE}|birthday|wedding|party|house|flat|name|job|favou?rite)\b")
NO_NAME = (
    frozenset(
        """january february march april may june july august september october november december jan feb mar apr jun jul aug sep
    sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun
    mondays tuesdays wednesdays thursdays fridays saturdays sundays christmas easter halloween thanksgiving ramadan hanukkah
    diwali eid xmas new year eve spring summer autumn fall winter i im ive id ill ok okay tv pc cv hr it diy bbq am pm ceo cto
    cfo phd mba usb gps dna faq asap lol omg btw fyi wow hey hi hello thanks thank god yes no none everyone everybody someone
    somebody nobody anyone people mum mom dad mama papa mommy daddy grandma grandpa gran nan granny grandad auntie internet
    english welsh german french spanish italian portuguese dutch russian chinese japanese korean arabic hindi turkish polish swedish
    lgbtq lgbt covid covid19 ai ui ux api sql html css mr mrs ms dr prof sir madam user assistant north south east west
    home work life nature awesome wheat gluten gym self congrats yeah yep nope sure haha""".split()
    )
    | keywords.STOP
)
_OPENERS = frozenset(
    """yesterday today tonight tomorrow sometimes often usually always never lately recently currently now then later once
    when whenever wherever somewhere anywhere while since after before during until because although though if as so and but or also even still just only maybe
    perhaps please actually honestly luckily sadly unfortunately finally anyway besides however meanwhile every each all both
    many most some few several another other one two three four five six seven eight nine ten first last next this that these
    those there here what which who whose how why where remember note update fyi dear speaking being having going working
    living moving having got has had went came saw met call ask tell give take let make get see look check well oh ah also
    plus minus great good nice cool lovely love like hope hoping wish glad sorry thought happy excited sounds looks seems feels bye aww go hang definitely absolutely totally woah whoa wow alright right talk miss
    je tu il elle nous vous yo ich wir ik jag jeg eu io noi nosotros my our your his her its their the a an in on at to from by of
    off for with about over under near between we they he she you it not can could will would should may might must shall do
    does did is are was were been am has have""".split()
)
_PLACE_BEFORE = re.compile(
    r"\b(?:(?:live\w*|living|based|born|grew up|raised|stay\w*|moved?|moving|relocat\w+|flew|fly\w*|drove|driv\w+|trip|went|going|go"
    r"|travel\w*|holiday|vacation|flight|train|back|visit\w*|city|town|village) (?:\w+ ){0,2}?(?:in|to|from|near|around|of)|visit(?:ed|ing)?|in|near) (?:the )?$"
)
_TOOL_BEFORE = re.compile(
    r"\b(?:us(?:e|es|ed|ing)|program\w*|cod(?:e|ing)|writ\w+ (?:\w+ )?in|built with|switched to|installed) (?:the )?$",
    re.IGNORECASE,
)
_ORGANIZATION_BEFORE = re.compile(
    r"\b(?:(?:work\w*|job|intern\w*|interview\w*|hired|employed|stud\w+|graduated|enrolled|role|position|offer|contract) (?:\w+ ){0,2}?(?:at|for|by)"
    r"|joined|joining) (?:the )?$"
)
_PERSON_BEFORE = re.compile(
    r"\b(?:met|meet|meeting|told|asked|married|marry|dating|thanked|(?:went|go|going|dinner|lunch|coffee|drinks|out|talk\w*|chat\w*|liv\w+"
    r"|together|trip|date|walk\w*|spoke|engaged|friends) (?:\w+ ){0,3}with) $"
)
_PERSON_AFTER = re.compile(
    r"^(?:['’]s (?:birthday|wedding|party|house|place|mother|father|husband|wife|son|daughter|sister|brother|dog|cat)|,? and I\b| (?:said|told|loves|likes|lives"
    r"|married|wants|thinks|hates|prefers|enjoys|works|plays)\b)"
)


def _free(text: str) -> Iterator[Named]:
    """Yield the names within sentences, where the language writes only names with a capital; never the user's own."""
    words = [word for word in WORD.findall(text) if folded(word) not in NO_NAME]
    capitals = sum(word[0].isupper() for word in words)
    if not capitals or (capitals > 4 and 3 * capitals > 2 * len(words)) or not _only_names_have_capitals(text):
        return
    for found in _RUN.finditer(text):
        before, after = text[: found.start()], text[found.end() :]
        name, opens = _trimmed(found[0]), bool(_SENTENCE.search(before))
        if opens and name and found[0].startswith(name):
            name = _opening(name, after if found[0] == name else text[found.start() + len(name) :])
        if _is_free_name(name) and not re.match(r"[ -]?\d", after) and not _OWN_NAME.search(before):
            about = not before.strip() and found[0].startswith(name)
            yield Named(name, _type(before, after), SUBJECT if about else TEXT)


_OWN_NAME = re.compile(
    r"\b(?:(?:my|full) name(?: is|['’]s)|I(?:['’]m| am) called|call me|m['’]appelle|me llamo|mi chiamo|me chamo|heiße|namn är|navn er) $",
    re.IGNORECASE,
)


def _only_names_have_capitals(text: str) -> bool:
    latin = any("a" <= c <= "z" for c in text)
    return not latin or len(_OTHERS.findall(text)) > len(_GERMAN.findall(text))


def _opening(name: str, after: str) -> str:
    """Return the name within a run of capitalised words that opens a sentence, "" if there is none."""
    first, _, rest = name.partition(" ")
    if _opens(first):
        return rest
    if rest:
        return name
    plain = not first.casefold().endswith(("ing", "ly", "day"))
    return name if plain and (_OWNS.match(after) or _VERBS.match(after)) else ""


def _opens(word: str) -> bool:
    key = folded(word).split(" ")[0]
    return key in _OPENERS or key in NO_NAME


def _trimmed(name: str) -> str:
    """Return a run without the words at its ends that are no part of a name ("Glad I", "Last Tuesday")."""
    words = re.sub(r"['’]s$", "", name).split()
    while words and (_opens(words[-1]) or words[-1] in _JOINERS):
        words.pop()
    while words and (_opens(words[0]) or words[0] in _JOINERS):
        words.pop(0)
    return " ".join(words)


def _is_free_name(name: str) -> bool:
    words = name.split()
    if not words or len(words) > WORDS or kin(folded(name)) is not None:
        return False
    if all(word.isupper() and len(word) < 5 for word in words):
        return False  # most likely an abbreviation
    return len(words) > 1 or not (is_nationality(name) or len(name) < 2)


def _type(before: str, after: str) -> EntityType:
    if re.match(r" project\b", after) or re.search(r"\bproject $", before, re.IGNORECASE):
        return "project"
    for kind, pattern in _BEFORE:
        if pattern.search(before):
            return kind
    return "person" if _PERSON_AFTER.match(after) else "concept"


_BEFORE: tuple[tuple[EntityType, re.Pattern[str]], ...] = (
    ("tool", _TOOL_BEFORE),
    ("organization", _ORGANIZATION_BEFORE),
    ("place", _PLACE_BEFORE),
    ("person", _PERSON_BEFORE),
)
