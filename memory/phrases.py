"""What single words and short phrases tell, for the parts that work without a model.

English, unless a name says otherwise. Everything here is a closed class of words or a test on one statement.
"""

import re
from functools import lru_cache

from sharpwave.memory import evidence

_WRITTEN_OUT: dict[str, tuple[int, str]] = {
    **dict.fromkeys(("can't", "cant", "cannot"), (0, "can not")),
    **dict.fromkeys(("won't", "wont"), (0, "will not")),
    "ain't": (0, "am not"),
    **dict.fromkeys(("i'm", "im", "ima"), (0, "I am")),
    **{
        f"{verb}{ending}": (len(verb), " not")
        for verb in "do does did is are was were have has had would could should".split()
        for ending in ("n't", "nt")
    },
    **{
        f"{word}'{ending}": (len(word), f" {verb}")
        for ending, verb, words in (
            ("ve", "have", "i we you they"),
            ("re", "are", "we you they"),
            ("ll", "will", "i we you he she it they that there"),
            ("d", "would", "i we you he she they"),
            ("s", "is", "he she it that there who what where"),
        )
        for word in words.split()
    },
    **{f"{word}ve": (len(word), " have") for word in ("i", "we", "you", "they")},
    "gonna": (0, "going to"),
    "wanna": (0, "want to"),
    "gotta": (0, "have to"),
    "anymore": (0, "any more"),
    **dict.fromkeys("favorite favorites fav fave favs faves".split(), (0, "favourite")),
    "gotten": (0, "got"),
}
"""What stands for a contraction, in lower case: how many of its letters stay, and what follows them."""
_TOKEN = re.compile(r"\w+(?:'\w+)?")
_HAS = re.compile(r"'s (?=(?:been|gone|got|left|died|moved|become|turned|started|stopped)\b)", re.IGNORECASE)
_IS = re.compile(
    r"'s (?=(?:an?|the|not|now|just|mine|ours|over|off|dead|left|my|our|done|history|finished|no|all|back|on|called|named"
    r"|allergic|based|from|in|at|turning|\w+ing|\w+ed)\b)",
    re.IGNORECASE,
)
_ADVERBS = re.compile(
    r"\b(?:really|just|actually|now|currently|still|also|very|quite|recently|finally|already|basically|honestly"
    r"|literally"
    r"|(?:kind|sort) of|totally|absolutely|simply|definitely|truly|absolute|certainly|officially|presently|lately"
    r"|nowadays"
    r"|probably|so far|both|happily|proudly|sadly|only|even|deathly|severely|highly|extremely|seriously|mildly"
    r"|badly)\b\s*",
    re.IGNORECASE,
)
_SPACE = re.compile(r"\s+")
_NEGATION = re.compile(r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot)\b|n't\b", re.IGNORECASE)
_CORRECTION = re.compile(
    r"^\W*(?:no\s*[,.;:]|nope\b|correction\b|actually\b|sorry\b|wait\b|oops\b|my mistake\b|scratch that\b|i"
    r" meant\b|i mean\b"
    r"|to correct\b|change of plans?\b|let me correct\b|that'?s wrong\b|wrong\b|update\s*:|edit\s*:)|\bi meant\b"
    r"|,\s*not\s+\S|\bnot\s+\S+\s+but\b"
    r"|\binstead of\b|\brather than\b|\bi misspoke\b|\bgot (?:that|it) wrong\b",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\w*\d\w*")
_CAPITAL = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'-]+|\b[A-Z]{2,}\b")
_CALENDAR = frozenset(
    "january february march april may june july august september october november december monday tuesday"
    " wednesday thursday"
    " friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays".split()
)
_STANCE = {
    "like": "like love enjoy adore prefer favourite favorite fond keen passionate",
    "hate": "hate dislike detest loathe despise",
    "have": "have has had own owns got",
    "want": "want wants wanted hope plan",
    "name": "name named called",
}
_STANCE_OF = {
    f"{word}{end}": stance for stance, words in _STANCE.items() for word in words.split() for end in ("", "s", "d")
}
_AIMS = re.compile(r"\b(?:trying|hoping|planning|aiming|waiting) to\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def straight(text: str) -> str:
    """Return `text` with typographic apostrophes and quotes made plain; every character keeps its place."""
    return text.translate(_PLAIN)


_PLAIN = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "\u00a0": " "})


@lru_cache(maxsize=4096)
def expanded(text: str) -> str:
    """Return `text` with contractions written out and single spaces ("I'm" as "I am", "can't" as "can not")."""
    plain = _TOKEN.sub(_written_out, _SPACE.sub(" ", straight(text)).strip())
    return _IS.sub(" is ", _HAS.sub(" has ", plain)) if "'s " in plain.casefold() else plain


def _written_out(token: re.Match[str]) -> str:
    word = token[0]
    letters, rest = _WRITTEN_OUT.get(word.casefold(), (len(word), ""))
    return word[:letters] + rest


_ASIDE = re.compile(
    r"^(?:as (?:you know|I (?:said|mentioned|told you))|remember|like I said),? "
    r"|,? (?:so (?!far\b)(?:that )?|because |which |as (?:you know|mentioned|I said)|(?:if|in case) ).*$",
    re.IGNORECASE,
)


@lru_cache(maxsize=16384)
def core(text: str) -> str:
    """Return `text` without what it opens with and what follows from it ("I'm vegan, so no cheese" as "I'm vegan")."""
    return _ASIDE.sub("", straight(text)) or text


def without_adverbs(text: str) -> str:
    """Return `text` without the adverbs that change no slot ("really", "currently", "also")."""
    return _SPACE.sub(" ", _ADVERBS.sub("", text)).strip()


@lru_cache(maxsize=16384)
def stems(text: str) -> frozenset[str]:
    """Content stems of `text`, as `evidence.content_stems` sees them."""
    return frozenset(evidence.content_stems(text))


_ENDINGS = frozenset("er r or ist ian ing ic i y ism ation mer ner ning ming".split())


def akin(one: str, other: str) -> bool:
    """Whether two stems are of one family, going by their endings ("smoke" and "smoker", "teach" and "teacher")."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    root = short.rstrip("eiy")
    return len(root) >= 4 and long.startswith(root) and long[len(root) :] in _ENDINGS


def covered(wanted: frozenset[str], words: frozenset[str]) -> float:
    """Return the share of `wanted` stems that `words` hold, or hold one akin to; 0 for nothing wanted."""
    return sum(any(akin(w, h) for h in words) for w in wanted) / len(wanted) if wanted else 0.0


def same_words(one: str, other: str) -> bool:
    """Whether two statements read the same, case, punctuation and spacing aside."""
    return [w.casefold() for w in _WORD.findall(straight(one))] == [
        w.casefold() for w in _WORD.findall(straight(other))
    ]


@lru_cache(maxsize=16384)
def details(text: str) -> frozenset[str]:
    """Return what may not differ between two tellings of one fact: numbers, dates and names, in lower case."""
    plain = straight(text)
    found = {d.casefold() for d in _DIGITS.findall(plain)} | {c.casefold() for c in _CAPITAL.findall(plain)}
    found |= {w for w in (w.casefold() for w in _WORD.findall(plain)) if w in _CALENDAR}
    found = {w.removesuffix("s") if w in _CALENDAR else w for w in found}
    return frozenset(found - {"i", "i'm", "i've", "i'd", "i'll"})


@lru_cache(maxsize=16384)
def stance(text: str) -> frozenset[str]:
    """Return the stances that `text` takes, out of like, hate, have, want, name and not."""
    plain = expanded(text)
    found = {_STANCE_OF[w] for w in (w.casefold() for w in _WORD.findall(plain)) if w in _STANCE_OF}
    aims = {"want"} if _AIMS.search(plain) else set()
    return frozenset(found | aims | ({"not"} if negated(plain) else set()))


LIGHT = stems(
    "take use make work go run play have get do keep start come need want time day days week month year every morning"
    " evening home people new good one once twice up down"
)
"""Words that tell little of what a statement is about."""


_OF_ONESELF = re.compile(r"\b(?:i|im|ive|me|my|mine|myself|we|us|our|ours|(?:the )?user)\b", re.IGNORECASE)


def of_oneself(text: str) -> bool:
    """Whether `text` speaks of its writer, or of "the user". Logs and tickets, which say many things in one mould, do not."""
    return bool(_OF_ONESELF.search(straight(text)))


def negated(text: str) -> bool:
    """Whether `text` denies something."""
    return bool(_NEGATION.search(text))


_CHANGE = re.compile(
    r"\b(?:now|these days|nowadays|instead(?! of)|moved|moves|changed|switched|shifted|rescheduled|swapped|jumped ship|(?:gone|went|come|came) (?:over|round) to|became|becomes|turned into|(?<!have )(?<!has )got|(?:gone|went"
    r"|going) (?:up|down|back)\b|(?:is|am|are) (?:back(?! from)|(?:up|down) to)\b|updated|evolved|increased|decreased|reduced|grew|grown|risen|rose|fell|dropped"
    r"|raised|extended|postponed|pushed|transferred|transitioned|retired|replaced|any ?more|again|(?:my|our|an?) new|jetzt|nun|ahora|maintenant|agora|ora|from now on|since then|no longer"
    r"|(?:ditched|dumped|binned|left|traded|sold|dropped) \S+(?: \S+){0,3} for|brought forward|put back|from (?:next|this) \w+|starting (?:next|this) \w+|as of|with effect from|renamed|upgraded|downgraded|dyed|(?:re)?painted"
    r"|mudó|mudé|gezogen|umgezogen|déménagé|trasferit[oa])\b|现在|今は",
    re.IGNORECASE,
)


def changes(text: str) -> bool:
    """Whether `text` speaks of a change or of the present as against before ("… now", "moved", "these days")."""
    return bool(_CHANGE.search(expanded(text)))


_NEW_THING = re.compile(
    r"(?:I|we) (?:\w+ ){1,2}an? new (?P<head>[\w-]+(?: [\w-]+)?)(?=$|[,.:;]| from| at| in)", re.IGNORECASE
)
_HEAD = re.compile(
    r"(?:(?:my|our|the|his|her|their|this|that) )?(?P<head>(?!(?:I|we|you|he|she|it|they|there|these) )[\w'-]+(?: [\w'-]+){0,12}?)"
    r" (?:is|are|was|were|remains?|has|have|had|starts?|meets?|costs?|goes|went|gone|got|moved|changed|switched|shifted|swapped|lives?|hangs?|stands?)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=16384)
def head(text: str) -> frozenset[str]:
    """Return the content words of what a statement is about, empty where it begins with "I", "it" and the like."""
    plain = without_adverbs(expanded(text))
    found = _NEW_THING.match(plain) or _HEAD.match(plain)
    return stems(found["head"]) if found else frozenset()


_BESIDES = re.compile(
    r"\b(?:also|too(?! \w)|as well|besides|in addition|another|additional(?:ly)?|(?:a|my|our|^)\W*second|extra|both)\b",
    re.IGNORECASE,
)


def besides(text: str) -> bool:
    """Whether `text` puts something beside what there is ("another", "also", "a second")."""
    return bool(_BESIDES.search(text))


def replaces(text: str) -> bool:
    """Whether `text` speaks of a change that puts one thing in the place of another, rather than beside it."""
    return changes(text) and not besides(text)


_SWAP = re.compile(r"\b(?:instead|switched|swapped|changed|replaced|rather than)\b", re.IGNORECASE)


def swaps(text: str) -> bool:
    """Whether `text` says in so many words that one thing replaces another."""
    return bool(_SWAP.search(text))


def corrects(text: str) -> bool:
    """Whether `text` says that something said before was wrong ("Correction: …", "no, …", "…, not Lisbon")."""
    return bool(_CORRECTION.search(straight(text)))
