"""Names: whom and what a memory speaks of, read from its words and its slot without a model.

What names somebody has to be plain: a slot that holds names ("employer"), a word for kin before a name ("my sister Anna"), or
a name within a sentence of a language that writes only names with a capital. A missed name costs little, since the next
memory may name it; a weekday that became a person would stay.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from sharpwave.memory import keywords
from sharpwave.memory.extract.values import ANIMALS, KIN, is_nationality
from sharpwave.memory.kinds import EntityType
from sharpwave.memory.records import Memory
from sharpwave.memory.slots import FORMER

USER = "user"
SUBJECT, VALUE, TEXT = 2, 1, 0
"""Where in a memory a name stands: what it is about, the value of its slot, or elsewhere in the text."""
READ = 2000
"""Characters of a text that are searched for names."""
WORDS = 4
"""Most words of a name."""

_WORD = re.compile(r"[\w\u0900-\u0963\u0966-\u109f\u1780-\u17d3]+")
_PERSONAL = frozenset("name partner spouse child sibling parent friend colleague relative pet".split())
_TYPES: Mapping[str, EntityType] = MappingProxyType(
    {
        **dict.fromkeys(_PERSONAL, "person"),
        **dict.fromkeys(("employer", "school"), "organization"),
        **dict.fromkeys(("home_city", "home_country", "origin"), "place"),
        "project": "project",
    }
)
_OF_PEOPLE = _PERSONAL | frozenset(
    "age birthday job employer home_city home_country origin nationality allergy diet avoids condition medication"
    " handedness marital_status likes dislikes hobby language school studies phone email".split()
)

_KIN_ELSEWHERE = {
    "sibling": "schwester bruder hermana hermano soeur sœur frère frere sorella fratello irmã irma irmão zus broer syster bror søster",
    "parent": "mutter vater mama madre padre mère père mae mãe pai moeder vader",
    "child": "tochter sohn hija hijo fille fils figlia figlio filha filho dochter zoon",
    "spouse": "ehefrau ehemann mann frau esposa esposo marido mujer épouse mari femme moglie marito mulher echtgenoot",
    "partner": "freundin novia novio copine copain fidanzata fidanzato namorada namorado vriendin",
    "relative": "oma opa tante onkel abuela abuelo tía tío prima primo grand-mère oncle nonna nonno zia zio avó avô",
    "colleague": "chef chefin kollege kollegin jefe jefa patron capo collega",
    "friend": "freund amiga amigo amie ami amica amico vriend",
}
_PLURAL = frozenset("kid child children baby toddler boy girl newborn sibling parent ex pet bird fish".split())
ROLES: Mapping[str, str] = MappingProxyType(
    {keywords.fold(word): kind for kind, words in _KIN_ELSEWHERE.items() for word in words.split()}
    | {keywords.fold(word): kind for word, kind in KIN.items()}
    | {keywords.fold(animal): "pet" for animal in ANIMALS}
)
"""What somebody can be to somebody, folded, and the attribute that it stands for."""


def identifies(role: str) -> bool:
    """Whether "my" with this role means one person as a rule: "my sister" does, "my friend" does not."""
    kind = kin(role)
    word = role.split()[-1]
    return (
        kind is not None
        and word not in _PLURAL
        and (kind not in ("friend", "colleague") or word in ("boss", "manager"))
    )


def kin(role: str) -> str | None:
    """Return the attribute that a role stands for ("older sister": sibling), None for other words."""
    return ROLES.get(role) or ROLES.get(role.split()[-1]) if role else None


def folded(name: str) -> str:
    """Return the words of a name without case, accents and punctuation; look-alike letters of other scripts stay others."""
    return " ".join(_WORD.findall(keywords.fold(name)))


_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]{2,}"
)
_MINE = frozenset(
    "my our i mein meine meiner meinen meinem unsere unser mi mis nuestra nuestro mon ma notre mia mio meu minha mijn onze min mitt".split()
)
LONGEST = 8
"""Most characters of a name in a script without spaces, when a text is searched for known names."""


class Gram(NamedTuple):
    """A run of words in a text that may be a known name."""

    folded: str
    start: int
    """Index of its first word; of runs within a word of a script without spaces, that of the word."""
    end: int
    written: bool
    """Whether it is written like a name: with a capital, or in a script that has none."""
    mine: bool
    """Whether it follows a word for "my"."""


class Words(NamedTuple):
    """The words of a text, folded, and whether each owns the next ("sister's")."""

    folded: list[str]
    owns: list[bool]
    grams: list[Gram]


_PIECE = re.compile(r"(?P<w>[\w\u0900-\u0963\u0966-\u109f\u1780-\u17d3]+)(?P<o>['’]s\b|(?<=s)['’](?!\w))?")


def words_of(text: str) -> Words:
    """Return the words of a text with all runs of them that may be names, longest first."""
    pieces = list(_PIECE.finditer(unicodedata.normalize("NFKC", text[:READ])))
    words = [keywords.fold(piece["w"]) for piece in pieces]
    caps = [not piece["w"][0].islower() and piece["w"][0].isalpha() for piece in pieces]
    owns = [piece["o"] is not None for piece in pieces]
    grams = []
    for size in range(min(WORDS, len(words)), 0, -1):
        for start in range(len(words) - size + 1):
            end = start + size
            if not any(owns[start : end - 1]):
                mine = start > 0 and words[start - 1] in _MINE
                grams.append(Gram(" ".join(words[start:end]), start, end, caps[start] and caps[end - 1], mine))
    grams += [gram for at, word in enumerate(words) if not word.isascii() for gram in _within(word, at)]
    return Words(words, owns, grams)


def _within(word: str, at: int) -> Iterator[Gram]:
    for run in _UNSPACED.findall(word):
        for size in range(min(LONGEST, len(run)), 1, -1):
            for start in range(len(run) - size + 1):
                yield Gram(run[start : start + size], at, at + 1, True, False)


@dataclass(frozen=True, slots=True)
class Named:
    """A name that a memory says is one."""

    name: str
    type: EntityType = "concept"
    """What it is the name of; `concept` also where that is not clear."""
    part: int = TEXT
    role: str | None = None
    """What the named one is to the user, folded ("sister")."""


def named(memory: Memory) -> list[Named]:
    """Return the names in a memory, those of its slot first, each once."""
    text = unicodedata.normalize("NFKC", memory.text[:READ])
    found: dict[str, Named] = {}
    for one in (*_subject(memory, text), *_value(memory), *_kin(text), *_said(text), *_free(text)):
        key = folded(one.name)
        known = found.get(key)
        if key and known is None:
            found[key] = one
        elif known is not None:
            kind = one.type if known.type == "concept" else known.type
            found[key] = Named(known.name, kind, max(known.part, one.part), known.role or one.role)
    return list(found.values())


def _subject(memory: Memory, text: str) -> Iterator[Named]:
    subject = memory.subject.strip()
    key = folded(subject)
    if not key or key == USER or len(key.split()) > WORDS + 1:
        return
    attribute = (memory.attribute or "").removeprefix(FORMER)
    if kin(key) is not None:
        if identifies(key):
            value = memory.value if attribute == "name" and memory.value else ""
            yield Named(value if _is_name(value) else key, "person", SUBJECT, key)
    elif key.startswith("project "):
        yield Named(subject[8:].strip(), "project", SUBJECT)
    else:
        yield Named(subject, "person" if attribute in _OF_PEOPLE else "concept", SUBJECT)


def _value(memory: Memory) -> Iterator[Named]:
    attribute = (memory.attribute or "").removeprefix(FORMER)
    value = (memory.value or "").strip()
    if memory.metadata.get(RELATED) and value and folded(value) != USER:
        yield Named(value, _TYPES.get(attribute, "concept"), VALUE)
        return
    if attribute == "name" and (memory.subject == USER or kin(folded(memory.subject))):
        return  # the user's own name, and one that the subject has taken
    kind = _TYPES.get(attribute)
    if kind is None:
        return
    called = _CALLED.search(value)
    name = called["n"] if called else value
    if _is_name(name):
        yield Named(name, kind, VALUE)


RELATED = "relation"
"""Mark in the metadata of a memory that was written to relate two entities: its value is a name, whatever it looks like."""


def _is_name(value: str) -> bool:
    """Whether the value of a slot is written like a name: with capitals, or in a script that has none."""
    words = [word for word in _WORD.findall(value) if word not in _JOINERS]
    if not words or len(words) > WORDS or any(c.isdigit() for c in words[0]) or folded(value) in NO_NAME:
        return False
    return all(not word[0].islower() for word in words) and any(c.isalpha() for c in value)


_JOINERS = frozenset("de da do dos di del della la le el van von der den of the and y e ter ten al bin ibn".split())
_UPPER = "".join(chr(c) for c in range(0x590) if chr(c).isupper())  # Latin, Greek, Cyrillic, Armenian
_CAPITAL = rf"[{_UPPER}][\w\u0900-\u0963\u0966-\u109f]*(?:[-'’][^\W\d_]\w+)*"
_NAME = rf"{_CAPITAL}(?: (?:(?:de|da|van|von|der|di|del|la) )*{_CAPITAL}){{0,2}}"
_CALLED = re.compile(rf"\b(?i:called|named|namens|llamad[ao]|chiamat[ao]|chamad[ao]|appelée?) (?P<n>{_NAME})")
_MY = (
    r"(?i:\b(?:my|our|meine?[rnms]?|unsere?[rnms]?|mis?|nuestr[ao]|mon|ma|notre|mi[ao]|nostr[ao]|meu|minha|noss[ao]|mijn|onze?"
    r"|min|mitt|vår))"
)
_ADJECTIVES = (
    r"(?i:(?:older|elder|younger|little|big|eldest|oldest|youngest|late|twin|best|good|old|dear|new|große[rnms]?|kleine[rnms]?"
    r"|ältere[rnms]?|jüngere[rnms]?|beste[rnms]?|mayor|menor|grande|petite?|maggiore|minore|mais velh[ao]|mais nov[ao]) )*"
)
_ROLE = (
    "(?i:"
    + "|".join(
        re.escape(word)
        for word in sorted({*KIN, *ANIMALS, *" ".join(_KIN_ELSEWHERE.values()).split()}, key=len, reverse=True)
    )
    + ")"
)
_ROLE_WORDS = {
    word for role in (*KIN, *ANIMALS, *" ".join(_KIN_ELSEWHERE.values()).split()) for word in _WORD.findall(role)
}
_KIN_NAME = re.compile(
    rf"(?P<my>{_MY} )?(?P<r>{_ADJECTIVES}\b{_ROLE})(?:,)?(?:'s name is|(?i: is| are)? (?i:called|named)| (?i:is|heißt|heisst|se llama"
    rf"|s['’]appelle|si chiama|(?:se )?chama-se|se chama|heet|heter))? (?P<n>{_NAME})(?!\w)"
)
_NAME_KIN = re.compile(rf"\b(?P<n>{_NAME})(?:,| (?i:is|ist|es|est|è|é)) {_MY} (?P<r>{_ADJECTIVES}\b{_ROLE})\b(?!['’])")
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
    if _ROLE_WORDS.isdisjoint(_WORD.findall(text.casefold())):
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
_OWNS = re.compile(rf"['’]s (?:{_ROLE}|birthday|wedding|party|house|flat|name|job|favou?rite)\b")
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
    plus minus great good nice cool lovely love like hope hoping wish glad sorry thought happy excited sounds looks seems feels woah whoa wow alright right talk miss
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
    words = [word for word in _WORD.findall(text) if folded(word) not in NO_NAME]
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
