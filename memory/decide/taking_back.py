"""Which memory, or which item of its list, does a retraction take back?"""

import re

from sharpwave.memory.decide.sameness import same_subject, value_words
from sharpwave.memory.extract import languages
from sharpwave.memory.extract.endings import gone
from sharpwave.memory.extract.values import ANIMALS
from sharpwave.memory.meanings import unsaid
from sharpwave.memory.phrases import expanded, stance, stems, without_adverbs
from sharpwave.memory.records import Candidate, Memory
from sharpwave.memory.slots import slot

_TASTE = ("likes", "hobby", "habit", "schedule", "favourite")
_TOGETHER = {
    "job": ("job", "employer"),
    "partner": ("partner", "spouse", "marital_status"),
    "hobby": _TASTE,
    "likes": _TASTE,
    "possession": ("possession", "vehicle", "pet"),
    "vehicle": ("vehicle", "possession"),
}
_LIST = re.compile(r"(?:(?:[\w'-]+ ){0,3}[\w'-]+, )*(?:[\w'-]+ ){0,3}[\w'-]+,? (?:and|or|&) (?:[\w'-]+ ){0,3}[\w'-]+")
_FINISHED = re.compile(r"\b(?:I|we|have|just|I've|we've) (?:finished|completed)\b(?! with)", re.IGNORECASE)
_GOING_ON = re.compile(r"\b(?:I'm|I am|im|we're|we are|doing|taking|go to|attend)\b", re.IGNORECASE)
"""What is finished was going on."""
_PLACED = re.compile(r" (?:at|in|on|with|for|during) ")
_GIVING_UP = stems(
    "gave given give up quit stopped stop dropped cancelled sold lost forget delete remove scrap told anymore"
    " together longer finally recently done out after over rid away true wrong altogether completely drink drinking eat"
    " eating using use play playing watch wear take taking read smoke doing go going live living"
)


def thing(candidate: Candidate) -> frozenset[str]:
    """What a candidate is about: the words of its value, else its content words without those of giving up."""
    named = value_words(candidate.value) if candidate.value else stems(candidate.text)
    rest = named - _GIVING_UP
    return rest or named if candidate.value else rest


def shares_object(candidate: Candidate, memory: Memory) -> bool:
    """Whether the memory holds most of what the candidate is about."""
    known = stems(memory.text) | stems(memory.value or "") | stems(memory.subject)
    named = thing(candidate)
    words = (candidate.value or "").split()
    if len(words) > 1 and unsaid(stems(words[-1]) & named, known):  # his football boots are not his football
        return False
    return len(unsaid(named, known)) < 0.4 * len(named)


def theirs(candidate: Candidate, memory: Memory) -> bool:
    """Whether a retraction can be about this memory, going by whom the two are about."""
    subject, value = memory.subject.casefold(), candidate.value
    named = value is not None and candidate.subject == "user" and not unsaid(stems(value), stems(memory.text))
    if _OTHERS.match(candidate.text):  # "her braces came off"
        return named and subject != "user"
    if same_subject(candidate, memory) or candidate.subject.casefold() in memory.text.casefold().split():
        return True
    if value is None:
        return False
    if subject in value.casefold().split() or not unsaid(stems(subject) or _USER, stems(value)):
        return True
    return named and subject in ANIMALS


_USER = frozenset({"user"})
_PAIRED = re.compile(
    r"\b(?:dating|seeing|together|partner|boyfriend|girlfriend|bf|gf|going out|engaged|couple|married|husband|wife|fianc\w+)\b",
    re.IGNORECASE,
)
_SOME = re.compile(
    r"\b(?:sold|gave away|given away|returned|binned|ate|lost|donated) (?:an?|one|some|a few|two|three|four|half)\b",
    re.IGNORECASE,
)
"""What goes is one of several."""
LASTING = frozenset("likes dislikes avoids allergy diet name age birthday origin home_city home_country".split())
"""What no single event that is over takes back ("the meeting is over", of who hates meetings)."""
_BRIEF = re.compile(
    r"\b(?:is|are|was|were|been|got)\s(?:\w+ )?(?:off|over|cancell?ed|called off|done|finished|not (?:on|happening))\b.*\b(?:today|tonight|tomorrow|this (?:morning|afternoon"
    r"|evening|week|weekend|time|once)|(?:this|next|on) (?:mon|tues|wednes|thurs|fri|satur|sun)day|for (?:now|the moment|a (?:while|bit|week|month)))\b",
    re.IGNORECASE,
)


def _over(text: str) -> bool:
    return gone(without_adverbs(expanded(text)).strip(" .!,;")) is not None


_ENDED = re.compile(r"\b(?:is|are|was|were) (?:all |now |nearly )*(?:finished|over|done|ended)\W*$", re.IGNORECASE)
_PAIR = re.compile(r"\band (?:I|me|we)\b", re.IGNORECASE)
_RECURS = re.compile(
    r"\b(?:every|each|always|usually|often|regular\w*|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekends?|mornings|evenings|nights"
    r"|weekly|daily|monthly|(?:once|twice|times) a)\b",
    re.IGNORECASE,
)
_OF_THINGS = re.compile(
    r"\b(?:binned|ditched|dumped|uninstalled|deleted|deactivated|cancell?ed|unsubscribed|opted|sold|flogged|closed|returned)\b",
    re.IGNORECASE,
)
_FORGET = re.compile(r"\W*(?:please\s+)?(?:forget|delete|remove|erase|scrap|drop|ignore|disregard)\b", re.IGNORECASE)


def asks_to_forget(text: str) -> bool:
    """Whether a statement is a request to forget something."""
    return bool(_FORGET.match(text))


_OTHERS = re.compile(r"(?:his|her|their)\b", re.IGNORECASE)


_MEANWHILE = re.compile(
    r"\bfor (?:now|tonight|today|the (?:day|night|moment|weekend)|a (?:bit|while)|work|school|lunch|dinner|home)\b"
    r"|\bto (?:lunch|work|bed(?! at \d)|school|dinner|the (?:shops?|loo|toilet|bathroom|office|doctor))\b|\b(?:cancell?ed|late|delayed|off|closed|down|stuck) again\b|\bat the moment\b"
    r"|\bfor (?:a|an|two|three|a few|a couple of|\d+) (?:days?|weeks?|hours?|minutes?|nights?)\b"
    r"|\bsince (?:noon|lunch|breakfast|dinner|this morning|\d+|five|six|seven|eight|nine|ten)\b|\bat (?:dinner|lunch|breakfast|the (?:party|meeting))\b"
    r"|\bin the (?:suitcase|bag|car|cupboard|fridge|freezer|shops?|house)\b|\b(?:broke|break) up (?:an?|the|my|our)\b|\bdropped\b.*\b(?:off|at)\b"
    r"|\b(?:laptop|phone|battery|computer|tablet|wifi|internet|printer|server|screen|watch) (?:is |has |just )*(?:dead|died|down|off)\b",
    re.IGNORECASE,
)
"""What sounds like an end and is none, or none for good."""
_ONE_DAY = re.compile(r"\b(?:today|yesterday|this (?:morning|afternoon)|at (?:noon|midnight))\b", re.IGNORECASE)
"""When something happened, which may be for good all the same."""
_SHORTLY = re.compile(r"\b(?:tonight|tomorrow|this (?:time|week|weekend|evening|\w+day))\b", re.IGNORECASE)
"""How long something is so, which is never for good."""
_AS_OF = re.compile(
    r"\b(?:as of|from) (?:today|now|this (?:morning|week|month))(?: on)?\b(?!.*\b(?:until|till|to)\b)", re.IGNORECASE
)
"""From when on something is so, which is no end of it."""
_FOR_GOOD = re.compile(
    r"\b(?:sold|cancel\w+|quit|resign\w*|closed|returned|binned|ditched|scrapped|moved out|broke up|split up|died|passed away|shut \w+ down|handed in"
    r"|came off|came out|for good|any ?more|no longer|ran out|not renewing|given up|gave up|deleted|rehomed|stolen|nicked|finished|graduated|personal best)\b",
    re.IGNORECASE,
)


ATTITUDE = re.compile(
    r"\b(?:love|loves|like|likes|enjoy|enjoys|hate|hates|adore|fan of|into|afraid|scared|fear|fears|phobia|prefer|prefers|keen)\b",
    re.IGNORECASE,
)


_SELF = re.compile(
    r"\W*(?:(?:actually|honestly|no|nope|ok|so|well|also|and|but|turns out|to be honest)\W+)*(?:I|we|not|no more|done|forget|delete|stopped|quit)\b",
    re.IGNORECASE,
)


def is_meanwhile(text: str) -> bool:
    """Whether what is said to be over or otherwise is so for the moment only, or of one day."""
    said = _AS_OF.sub("", expanded(text))
    return bool(_MEANWHILE.search(said) or _SHORTLY.search(said)) or (
        bool(_ONE_DAY.search(said)) and not _FOR_GOOD.search(said)
    )


def passes(candidate: Candidate, memory: Memory) -> bool:
    """Whether what a candidate says is over is so this once only, of what comes again or of what no event takes back."""
    said = expanded(candidate.text)
    if is_meanwhile(said):
        return True
    if _BRIEF.search(said) or (_ENDED.search(said) and not _PAIR.search(said) and _RECURS.search(memory.text)):
        return True
    attitude = memory.attribute is None and ATTITUDE.search(memory.text)
    if attitude and not _SELF.match(said):  # the spider has gone, not the fear of it
        return True
    lasting = candidate.attribute is None and (memory.attribute in LASTING or attitude)
    return bool(lasting) and _over(candidate.text) and not asks_to_forget(candidate.text)


def takes_back(candidate: Candidate, memory: Memory) -> bool:
    """Whether the candidate, a retraction, is about this memory; the subject is the caller's to compare."""
    if not languages.is_english(candidate.text):
        return languages.names_all(candidate.text, memory.text)
    attribute = candidate.attribute
    kindred = _TOGETHER.get(attribute or "", (attribute,))
    same = memory.attribute in kindred or re.split("[:_]", memory.attribute or "")[0] in kindred
    if candidate.value is None and attribute is not None:
        return same and (not slot(memory.attribute or "").many or bool(stems(candidate.text) & stems(memory.text)))
    if stance(memory.text) >= {"not"} and memory.attribute is None:
        return False
    if _SOME.search(candidate.text):  # "I sold a candle" is not the end of selling candles
        return False
    if attribute == "partner" and memory.attribute is None and not _PAIRED.search(memory.text):
        return False
    if _over(memory.text):  # "my brother's bike got stolen" is no bike that one has
        return False
    if passes(candidate, memory) or (memory.attribute in ("employer", "school") and _OF_THINGS.search(candidate.text)):
        return False
    if _FINISHED.search(candidate.text) and not _GOING_ON.search(memory.text):
        return False
    if (
        attribute is None
        and memory.attribute in (None, "plan", "project")
        and _only_place(thing(candidate), memory.text)
    ):
        return False
    if shares_object(candidate, memory):
        same = same or (attribute == "hobby" and memory.attribute in ("job", "project", "plan"))
        return same or memory.attribute is None or attribute is None or memory.attribute == "name"
    return False


_AT = re.compile(
    r"\b(?:at|in|near|by|outside|behind)\s+(?:(?:the|a|an|my|our|his|her|their)\s+)?(?P<place>(?:[\w'-]+\s?){1,3})",
    re.IGNORECASE,
)


def _only_place(named: frozenset[str], text: str) -> bool:
    """Whether a statement holds a thing only as the place of something else ("getting married on 20 June at the old mill")."""
    places = frozenset(word for found in _AT.finditer(text) for word in stems(found["place"]))
    return bool(named) and named & stems(text) <= places and len(stems(text) - places) >= 3


def without_item(memory: Memory, candidate: Candidate) -> str | None:
    """Return the memory's text without the one item of its list that the candidate names; None if it holds only that.

    The list's own words are kept. Where the item cannot be cut out cleanly the text stays, with a remark.
    """
    gone = thing(candidate)
    if not gone or not gone <= stems(memory.text):
        return None
    rest = without(memory.text, gone)
    if rest is None and "," in memory.text and len(stems(memory.text) - gone) >= 4:
        return f"{memory.text.rstrip(' .')} (no longer: {candidate.value or candidate.text})"
    return rest


_SAYS_MORE = re.compile(
    r"(?:I|me|we|us|he|she|it|they)\b|(?:the|my|our|his|her|their|a|an) \w+ (?:is|are|was|has|had|can|\w{3,}s) \w"
    r"|(?:went|got|came|put|took|gave|left|made|ran|\w+ed) (?:over|out|up|in|on|to|back|a|an|the|my|our|his|her|from)\b",
    re.IGNORECASE,
)
"""Begins a clause, which is no item of a list ("work is in town, and the bus takes for ever")."""


def without(text: str, gone: frozenset[str]) -> str | None:
    """Return `text` without the item of a list ("a, b and c") that `gone` names; None where there is no such list."""
    listed = _LIST.search(text)
    if not listed:
        return None
    items = [item for item in re.split(r",? (?:and|or|&) |, ", listed[0]) if item]
    kept = [item for item in items if not gone & stems(item)]
    if any(map(_SAYS_MORE.match, items[1:])):
        return None
    if len(kept) != len(items) - 1 or not any(stems(item) for item in kept):
        return None
    if any(gone & stems(before) for item in items for before in _PLACED.split(item)[:-1]):
        return None  # "the harp at weddings and so on" is no list of instruments
    lead = _lead(items[0], gone) if items[0] not in kept else ""
    joined = kept[0] if len(kept) == 1 else f"{', '.join(kept[:-1])} and {kept[-1]}"
    return text[: listed.start()] + lead + joined + text[listed.end() :]


def _lead(item: str, gone: frozenset[str]) -> str:
    """Return the words before the thing in the first item, which belong to the whole list ("Enjoys climbing, …")."""
    words = item.split()
    at = next(n for n, word in enumerate(words) if gone & stems(word))
    return "".join(f"{word} " for word in words[:at])
