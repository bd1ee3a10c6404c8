"""Extraction without a model: the user's own clauses, verbatim, with a slot where the grammar finds one.

Nothing is ever made up: text and quote are substrings of the message. What is not plainly a statement about the user or
their own people and things is left alone (see `clauses`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from langchain_core.embeddings import Embeddings

from sharpwave.memory.extract import languages
from sharpwave.memory.extract.addressing import unaddressed
from sharpwave.memory.extract.attribution import FOREIGN, Attribution, Span, attribution_for
from sharpwave.memory.extract.changing import tells_change, tells_end
from sharpwave.memory.extract.clauses import Clause, clauses, first_person, telegraphic
from sharpwave.memory.extract.endings import ends
from sharpwave.memory.extract.likely import LEAST, PERHAPS, probability
from sharpwave.memory.extract.slotting import USER, Reading, mentioned, read
from sharpwave.memory.meanings import telling, unsaid
from sharpwave.memory.phrases import LIGHT, changes, corrects, details, expanded, head, negated, stems
from sharpwave.memory.records import Candidate, Kind, Message, Recall, Turn
from sharpwave.memory.slots import slot

AT_MOST = 200
"""Candidates of one turn; the first ones count."""

NEWS_AT_MOST = 14
"""Words of a statement that is tied to the user only by being news of something known."""

FRAGMENT_AT_MOST = 10
"""Words of a fragment that is tied to the user only by what is known."""

_SAFETY = re.compile(
    r"\b(?:allerg\w+|anaphyla\w+|diabet\w+|epilep\w+|asthma\w*|medication|insulin|epipen|pregnan\w+|surgery|cancer"
    r"|disab\w+|wheelchair|diagnos\w+|celiac|coeliac|emergency)\b",
    re.IGNORECASE,
)
_TELEGRAPHIC = frozenset(
    "allergy diet origin home_city home_country job employer age birthday handedness marital_status condition pet"
    " language studies likes dislikes vehicle weight commute".split()
)
_PAST_EVENT = re.compile(
    r"\b(?:I|we)\s+(?:\w+ly\s+|just\s+|also\s+|finally\s+)?(?:have\s+|has\s+)?(?:just\s+)?(?:\w+ed|went|bought|got"
    r"|met|ran|flew|began|saw|ate|made|took|left|lost|won|built|wrote|gave|sold|found|drove|rode|swam|spent|handed"
    r"|became|broke|put|came|did|had|fell|caught|taught)\b",
    re.IGNORECASE,
)
_DIARY = re.compile(
    r"(?:just |recently |now )*(?:upgraded|switched|swapped|signed up|enrolled|picked up|took up|taken up|dyed|promoted|qualified"
    r"|(?:down|up) to (?:\d|one\b|two\b|three\b|four\b|five\b)|back (?:in|at|on) )",
    re.IGNORECASE,
)
"""Changes in one's life, told without "I"."""
_CHANGED = re.compile(
    r"(?:I|we)\W+(?:(?:have|just|finally|recently) )*(?:changed|switched|moved|packed up|retrained|swapped"
    r"|relocated|upgraded|quit)(?: \w+){0,2}\W*",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"\b(?:I|we|im|ive)\b", re.IGNORECASE)
_OF_SUBJECT = re.compile(r"\b(?:my|me|our)\b", re.IGNORECASE)
_POINTS = re.compile(
    r"\b(?:it|that|this(?! (?:week|month|year|term|summer|winter|spring|autumn)\b)|those|these|them|there|so|you)\b",
    re.IGNORECASE,
)
_DEFINITE = re.compile(
    r"the\s+(?P<t>.+?)\s+(?:is|are|was|were|has|had|have|can|will|does|do|did|got|went|goes|isn't|wasn't|can't)\b",
    re.IGNORECASE,
)
_OF_ONES_WORLD = re.compile(
    r"(?:(?:the|our) )?(?:\w+ )??(?:landlord|landlady|supervisor|boss|manager|tutor|teacher|coach|trainer|doctor|gp|dentist|vet|therapist|lawyer|accountant"
    r"|cleaner|nanny|childminder|babysitter|neighbour|flatmate|plumber|team lead) is (?:an? )?(?:(?:called|named)|(?:Mr|Mrs|Ms|Dr|Prof(?:essor)?)\b\.?) (?-i:[A-Z])[\w-]+\W*$"
    r"|(?:(?:the|our) )?(?:wifi|server|printer|project|team|repo|boat|van|kitten|puppy)(?: \w+){0,2} is (?:called|named) (?!(?:an?|the) )[\w-]+\W*$",
    re.IGNORECASE,
)
"""Says what somebody or something in one's life is called, without a word of oneself: "the landlord is a Mr Abernathy"."""
_DATED = re.compile(
    r"\b(?:in|on|since|until|till|from|by)\s+(?:next\s+|last\s+)?(?:January|February|March|April|May|June|July"
    r"|August|September|October|November|December|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)\b"
)


class RulesExtractor:
    """Finds what the user stated, by rules alone. One instance may serve all threads: it keeps no state."""

    name = "rules/1"

    def __init__(self, least: float = LEAST, attribution: Attribution | None = None) -> None:
        """Read by rules.

        Args:
            least: probability from which what no rule reads is kept all the same (see `likely`); above 1 nothing of that.
            attribution: leaves out what somebody else says, or is made up, where no form tells it.
        """
        self._least = least
        self._attribution = attribution

    def extract(self, turn: Turn, known: Sequence[Recall]) -> list[Candidate]:
        """Return the user's statements in `turn`, in their order, at most `AT_MOST`; `known` tells whose names are known."""
        names = _names(known)
        found: list[Candidate] = []
        for message in turn.messages:
            if message.role == "user":
                found += self._own(message, _of_message(message, names, known, self._least))
        return found[:AT_MOST]

    def _own(self, message: Message, found: list[Candidate]) -> list[Candidate]:
        """Return what of a message is in the user's own words."""
        if self._attribution is None or not found or not _may_report(message.text, found):
            return found
        foreign = self._attribution.foreign(message.text, [_of_oneself(message.text, c.quote) for c in found])
        return [candidate for candidate, likely in zip(found, foreign, strict=True) if likely < FOREIGN]


def _of_oneself(text: str, quote: str) -> Span:
    """Return where in a message a quote speaks of its writer: what introduces it is another's ("mum rang, I can't find my keys")."""
    at = text.find(quote)
    own = _SUBJECT.search(quote) or _OF_SUBJECT.search(quote)
    return at + (own.start() if own else 0), at + len(quote)


def rules_for(embeddings: Embeddings) -> RulesExtractor:
    """Return what extracts where no model does: with the packaged local encoder, rules and what reads whose words they are."""
    return RulesExtractor(attribution=attribution_for(embeddings))


def _may_report(text: str, found: Sequence[Candidate]) -> bool:
    """Whether a message may hold somebody else's words: English, and not one statement that begins with "I"."""
    whole = len(found) == 1 and _SUBJECT.match(found[0].quote) and len(found[0].quote) >= len(text.rstrip()) - 2
    return not whole and languages.is_english(text)


def _names(known: Sequence[Recall]) -> frozenset[str]:
    """Names, in lower case, that memories are about or hold as values, and the kin that they are about."""
    found: set[str] = set()
    for memory in (k.memory for k in known):
        if memory is not None:
            found |= {memory.subject.casefold()} - {USER}
            found |= {
                w.casefold()
                for w in re.findall(r"\b[A-Z][\w-]+", f"{memory.subject} {memory.value or ''} {memory.text[1:]}")
            }
    return frozenset(found)


def _of_message(message: Message, names: frozenset[str], known: Sequence[Recall], least: float) -> list[Candidate]:
    """Return the candidates of one message; a clause about "she" right after one about a sister is read with it."""
    found: list[Candidate] = []
    speaker = message.speaker or USER
    antecedent: str | None = None
    for clause in clauses(message.text):
        before = antecedent if clause.follows else None
        candidate = _candidate(clause, message, speaker, before, names, known, least)
        if (
            candidate
            and found
            and clause.follows
            and not (candidate.tentative or found[-1].tentative)
            and ((antecedent and _points_back(clause.text)) or _announces(found[-1]))
        ):
            found = [*found[:-1], *_joined(found[-1], candidate, message.text)]
        elif candidate:
            found.append(candidate)
        if len(found) >= AT_MOST:
            break
        antecedent = (
            mentioned(clause.text)
            or _named(unaddressed(clause.text), names)
            or (antecedent if _points_back(clause.text) else None)
        )
    return [c for c in found if c.quote in message.text]


def _points_back(text: str) -> bool:
    return bool(re.match(r"(?:he|she|they|it|his|her|their|its)\b", text, re.IGNORECASE))


def _named(text: str, names: frozenset[str]) -> str | None:
    """Return the first known name in a clause."""
    return next((word for word in re.findall(r"[A-Z][\w-]+", text) if word.casefold() in names), None)


def _announces(candidate: Candidate) -> bool:
    """Whether a clause only announces a change that the next one tells ("I changed jobs: …")."""
    return candidate.attribute is None and bool(_CHANGED.fullmatch(expanded(candidate.text)))


def _joined(before: Candidate, after: Candidate, text: str) -> Iterator[Candidate]:
    """Yield a clause and the one that points back to it: as one, or as two when each fills a slot of its own."""
    start = text.find(before.quote)
    end = text.find(after.quote, start) + len(after.quote)
    span = text[start:end]
    plain = before.polarity == after.polarity == "assert" and not (before.history or after.history)
    if after.attribute is None and plain:
        yield before.model_copy(update={"text": span, "quote": span})
        return
    if before.attribute is not None or not plain:
        yield before
    yield after.model_copy(update={"text": span, "quote": span})


def _candidate(
    clause: Clause,
    message: Message,
    speaker: str,
    antecedent: str | None,
    names: frozenset[str],
    known: Sequence[Recall],
    least: float,
) -> Candidate | None:
    english, reading = languages.is_english(clause.text), None
    said = replace(clause, text=unaddressed(clause.text)) if english else clause
    if not english:
        reading = languages.read(clause.text, speaker, names)
    elif not clause.loose:
        reading = _tied(read(said.text, speaker, antecedent, names), said, speaker, names, known)
    guessed = english and reading is None and _likely(said, names, known, least)
    tentative = english and reading is None and not guessed and _perhaps(said, names, known, least)
    if guessed or tentative:
        pointed = antecedent if _points_back(said.text) else None
        reading = Reading(mentioned(said.text) or _named(said.text, names) or pointed or speaker)
    if reading is None or not stems(said.text) or _vague(reading, said):
        return None
    rule = slot(reading.attribute) if reading.attribute else None
    return Candidate(
        text=clause.text,
        kind=_kind(reading, clause.text),
        subject=reading.subject,
        attribute=reading.attribute,
        value=reading.value,
        quote=clause.quote,
        message_id=message.id,
        importance=_importance(clause, reading, rule.importance if rule else None),
        confidence=0.5 if reading.hedged else 0.9 if reading.attribute else 0.6 if guessed or tentative else 0.7,
        polarity="retract" if reading.retract else "assert",
        history=reading.history,
        tentative=tentative,
    )


def _perhaps(clause: Clause, names: frozenset[str], known: Sequence[Recall], least: float) -> bool:
    """Whether a clause that is not kept by itself may yet change something known."""
    if not known or least > 1:
        return False
    return tells_change(clause.text) or tells_end(clause.text) or probability(clause.text, names) >= PERHAPS


def _likely(clause: Clause, names: frozenset[str], known: Sequence[Recall], least: float) -> bool:
    """Whether a clause that no rule reads is kept all the same: by its form, or since it tells of a change in what is known."""
    if probability(clause.text, names) >= least:
        return True
    if least > 1 or not (tells_change(clause.text) or tells_end(clause.text)):
        return False
    told = stems(clause.text) - LIGHT
    return (first_person(clause.text) and not clause.loose) or any(
        told & stems(hit.memory.text) for hit in known if hit.memory is not None
    )


def _vague(reading: Reading, clause: Clause) -> bool:
    """Whether a clause without a slot says little beyond what it points at ("We love it")."""
    if reading.attribute or reading.value or reading.retract or clause.explicit:
        return False
    return bool(_POINTS.search(clause.text)) and len(stems(clause.text)) <= 2 and not details(clause.text)


def _tied(
    reading: Reading | None, clause: Clause, speaker: str, names: frozenset[str], known: Sequence[Recall]
) -> Reading | None:
    """Return the reading if something ties the clause to the user, else None."""
    if reading is not None and (not reading.retract or reading.value is None or first_person(clause.text)):
        return reading
    if reading is not None:  # "The Peru trip is off" counts if the trip is known
        return reading if _known(reading, clause.text, known) else None
    if clause.explicit or corrects(clause.quote):
        return Reading(speaker)
    text = clause.text
    if telegraphic(text) or ends(text):
        bare = read(f"I {text[0].lower()}{text[1:]}", speaker) or Reading()
        if bare.attribute not in _TELEGRAPHIC and not bare.retract:
            bare = read(f"I am {text[0].lower()}{text[1:]}", speaker) or Reading()
        if bare.attribute is None and not bare.retract:
            bare = read(f"I have a {text[0].lower()}{text[1:]}", speaker) or Reading()
        if bare.attribute in _TELEGRAPHIC or (bare.retract and (telegraphic(text) or _known(bare, text, known))):
            return bare
        if _DIARY.match(text):
            return Reading(speaker)
    if being := re.match(r"(?:being|as) (?:an? )?(.+?),", text, re.IGNORECASE):
        return read(f"I am {being[1]}", speaker) or read(f"I am a {being[1]}", speaker)
    if about := _news_of(text, known):
        return Reading(about)
    if _points_back(text) and not re.search(r"\b(?:my|our)\b", text, re.IGNORECASE):
        return None
    if fragment := _fragment_of(text, known):
        return Reading(fragment)
    if first_person(text):
        return Reading(speaker) if not re.match(r"(?:me|us|mine|ours)\b", text, re.IGNORECASE) else None
    if _OF_ONES_WORLD.match(text):
        return Reading(speaker)
    words = {w.casefold() for w in re.findall(r"[A-Z][\w-]+", text)}
    if words & names:
        return Reading(next((w for w in re.findall(r"[A-Z][\w-]+", text) if w.casefold() in names), speaker))
    if definite := _DEFINITE.match(text):
        topic = stems(definite["t"])
        if (
            topic and any(topic <= stems(k.text) or len(stems(text) & stems(k.text)) >= 2 for k in known)
        ) or _DATED.search(text):
            return Reading(speaker)
    return None


def _known(reading: Reading, text: str, known: Sequence[Recall]) -> bool:
    """Whether what a clause takes back is known."""
    topic = stems(reading.value or text)
    return any(
        len(unsaid(topic, stems(f"{k.text} {k.memory.subject if k.memory else ''}"))) < 0.4 * len(topic) for k in known
    )


def _news_of(text: str, known: Sequence[Recall]) -> str | None:
    """Return whom the known statement is about, of whose topic a change is told."""
    topic = head(text)
    if not topic or not changes(text) or len(text.split()) > NEWS_AT_MOST:
        return None
    hit = next((k.memory for k in known if k.memory and len(unsaid(topic, stems(k.text))) <= 0.5 * len(topic)), None)
    return hit.subject if hit else None


_STATE = re.compile(
    r"\b(?:still|as (?:ever|usual|always)|now|these days|switched|moved|any ?more|no longer|again|turned|since|not|here|from)\b",
    re.IGNORECASE,
)


def _fragment_of(text: str, known: Sequence[Recall]) -> str | None:
    """Return whom the known statement is about that a few words without "I" say again, or say how it stands now."""
    words = telling(stems(text))
    if not words or len(text.split()) > FRAGMENT_AT_MOST or first_person(text):
        return None
    for memory in (k.memory for k in known if k.memory is not None):
        left = unsaid(words, stems(f"{memory.text} {memory.value or ''} {memory.subject}"))
        if not left or (left < words and len(left) <= 2 and _STATE.search(expanded(text))):
            return memory.subject
    return None


def _kind(reading: Reading, text: str) -> Kind:
    if reading.attribute:
        return slot(reading.attribute).kind
    return "event" if _PAST_EVENT.search(expanded(text)) and not reading.history and not negated(text) else "fact"


def _importance(clause: Clause, reading: Reading, default: float | None) -> float:
    """Return 0..1: what was asked to be remembered and what is about safety first, events last."""
    if clause.explicit:
        return max(0.9, default or 0.0)
    if _SAFETY.search(clause.text):
        return max(0.85, default or 0.0)
    if default is not None:
        return default
    return 0.4 if _PAST_EVENT.search(expanded(clause.text)) else 0.5
