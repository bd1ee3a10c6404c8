"""Evidence: does what the user said support a statement about them, and in which words?

A candidate without support is not kept, whoever proposed it. The check is lexical, so it costs no model call: it cannot
tell a bold paraphrase from an invention, and then it refuses.
"""

import re
import unicodedata
from collections.abc import Iterator

import snowballstemmer

_FENCE = re.compile(r"(```[^`\n]+```)|```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|\"\"\".*?(?:\"\"\"|\Z)", re.DOTALL)
_RULE = re.compile(r"\s*([-=*_])\1{2,}\s*")
_FORWARDED = re.compile(
    r"\s*(?:-{2,}\s*(?:original|forwarded) message\b.*|begin forwarded message:.*|on\b.{4,120}\bwrote:\s*)",
    re.IGNORECASE,
)
_FROM = re.compile(r"\s*from:\s*\S", re.IGNORECASE)
_HEADER = re.compile(r"\s*(?:subject|to|sent|date|cc):\s", re.IGNORECASE)

_HANDS_OVER = re.compile(
    r"""^[^\w\n]*(?:(?:hi|hey|hello|ok|okay|so|and|now|please|(?:can|could|would|will)\ you)\b[ \t,]+)*
    (?:(?:summari[sz]e|translate|proofread|rephrase|rewrite|paraphrase|shorten|polish|reply\ to|respond\ to|tl;?dr
        |make\ th(?:is|ese)\b[^.!?\n:]{0,30}\b(?:polite\w*|short\w*|formal|friendl\w+|better|clear\w*|simple\w*|nice\w*
          |professional|concise)|fix\ the\ (?:grammar|spelling)|übersetz\w*|fass\w*|traduc\w*|tradui\w*
        |r[eé]sum\w*\ (?:est[aeo]|o|a|il|questo|ce|cet|cette|le|la))\b[^.!?\n:]{0,80}
      |here(?:['’]s|\ is)\ (?:the|an?|this)\ (?:e-?mail|mail|message|page|article|document|letter|text|transcript|post)[^.!?\n:]{0,40})
    :(?=\s)""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_MARKED = re.compile(r"\s*(?:```|~~~|\"\"\"|>|([-=*_])\1{2,})")

_BULLET = re.compile(r"^\s*(?:[-*+•‣◦]|\d{1,3}[.)])\s+")
_STOP_MARK = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s)|[。！？｡]+[」』”’）]*")
_ABBREVIATION = re.compile(
    r"(?:\b(?:st|dr|mr|mrs|ms|prof|sr|jr|no|vs|approx|ca|fig|inc|ltd|co|dept|ave|mt|e\.g|i\.e|cf|z\.b|bzw)|\b[A-Z])\.$",
    re.IGNORECASE,
)
_LOWER_NEXT = re.compile(r"\s+(?P<piece>[a-z][^.!?…]{0,200})(?P<asks>\?)?")
_BEGINS = re.compile(
    r"(?:im|ive|my|why|what|whats|how|can|could|talk|any|do|does|where|when|who|which|so|but|need|please|pls|thanks|should|would|plan"
    r"|got|sold|bought|lost|left|quit|went|came|took|gave|made|met|found|moved|started|stopped)\b",
    re.IGNORECASE,
)
"""Words that begin a sentence of their own also in a hurry."""
_FINITE = re.compile(
    r"\b(?:i|we|you|he|she|it|they|there|that)(?:['’]\w|\s+\w)|\b(?:is|are|was|were|has|have|had|can|will)\b|['’]s\b|n['’]t\b",
    re.IGNORECASE,
)

_ASKS = re.compile(
    r"""(?:(?:hi|hey|hello|ok|okay|so|and|but|please|now|well)\b[\s,]+)*
    (?:(?:can|could|would|will|do|did|are|have)\s+(?:you|we|i)\b
      |(?:how|what|where|why|who|which|when)(?:['’]s|\s+(?:is|are|do|does|did|can|could|should|would|was|were|will|to)\b)
      |(?:show|write|tell|give|explain|list|find|make|help|translate|summari[sz]e|draft|rewrite|fix|compare|search|check
         |create|generate|calculate|suggest|recommend|describe|define|convert|read|look\ up|remind|imagine|pretend)\b
      |you\s+(?:keep|kept|said|say|told|think|thought|claim|claimed|always|wrote)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
_ASK_END = re.compile(r"(?:[?？؟;՞]|吗[。]?|ですか[。]?|ますか[。]?)[\"'”’)\]!.…]*\s*$")
_CLAUSE = re.compile(
    r"(?:[,;:，、；：]|\s[-–—]|—)\s*|(?<!\s)\s++(?=(?:and|but|so|because|since)\s+(?:i|my|we|our)\b)", re.IGNORECASE
)
_FIRST_PERSON = re.compile(
    r"\b(?:i|i['’](?:m|ve|d|ll)|im|ive|my|mine|we|we['’](?:re|ve|d|ll)|our|call me|as an?|ich|mein\w*|je|j['’]|mon|mes"
    r"|yo|mi|mis|soy|tengo|io|sono|eu|meu|minha|jag|jeg|mij|ik)\b|[我私僕俺]|저는|나는|제",
    re.IGNORECASE,
)

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_TOKEN = re.compile(
    rf"[{_UNSPACED}]+|\d+(?:[.,]\d+)*|(?:(?![{_UNSPACED}])[^\W\d_])(?:(?![{_UNSPACED}])[\w\u0300-\u036f])*"
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate(
        re.findall(
            r"\w+",
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
            "eighteen nineteen twenty",
        )
    )
}
_GENERIC = frozenset(
    re.findall(
        r"\w+",
        """a an the this that these those and or but if of in on at to for from with by as about into over than then so too
        also very really just only not no nor never don doesn didn isn aren wasn haven hasn hadn couldn wouldn shouldn weren mustn t s m re ve ll d i me my mine we us our you
        your it its he him his she her they them their who whom whose which what when where why how there here is are was
        were be been being am has have had having do does did doing will would can could should may might must shall user
        users person someone something anything thing things name names named called call age aged old year years job like
        likes liked love loves loved enjoy enjoys enjoyed prefer prefers preferred preference dislike dislikes disliked hate
        hates hated want wants wanted favourite favorite currently now more any anymore longer used use uses go goes get
        gets got say says said""",
    )
)
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DAYS = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
_DATE = re.compile(
    rf"\b\d{{4}}-\d\d(?:-\d\d)?\b|(?:\b\d{{1,2}}(?:st|nd|rd|th)?\s+)?\b(?:{_MONTHS})\b"
    rf"(?:\s+\d{{1,2}}(?:st|nd|rd|th)?\b)?(?:,?\s+\d{{4}}\b)?|\b(?:19|20)\d\d\b|\b(?:{_DAYS})\b"
)
_RELATIVE = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|(?:last|next|this|past)\s+(?:night|week|weekend|month|year|spring|summer|autumn"
    rf"|fall|winter|{_DAYS}|{_MONTHS})|in\s+\w+\s+(?:days?|weeks?|months?|years?))\b",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"(?:my|our)\s+(?:\w+\s+)?((?:step|grand)?-?(?:mother|mum|mom|father|dad|parents?|sister|brother|son|daughter|child|kids?)"
    r"|wife|husband|spouse|partner|girlfriend|boyfriend|fianc[ée]e?|aunt|uncle|cousin|niece|nephew|friends?|flatmate|roommate"
    r"|neighbou?r|colleague|co-?worker|boss|manager|client|guest|teacher|doctor|dog|cat|pet)\b"
    r"(?:,?\s+(?-i:([A-Z]\w+)))?(?!\s+and\s+i\b)",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"(?:\b(?:not|never|cannot)|n't)\s+(?:(?:a|an|the|any|at all|really|very|actually|even)\s+)*([\w-]+)", re.IGNORECASE
)
_NEGATIVE = re.compile(
    r"\b(?:not?|never|cannot|without|former(?:ly)?|avoid(?:s|ed)?|stopped|quit|dislikes?|hates?)\b|n't\b|\bno longer\b",
    re.IGNORECASE,
)
_SAME = str.maketrans({"’": "'", "‘": "'", "‛": "'", "`": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})
_EDGES = " \t\r\n.,;:!?…。！？\"'"


def own_words(text: str) -> str:
    """Return the part of a user's message that is the user's own, line by line.

    Left out: lines quoted with `>`, code fences of several lines, what stands between (or after) lines of dashes, and
    forwarded mail from its header on; and all that follows "Summarise this page:" and the like, where nothing marks where
    the page ends. Code within a line stays.
    """
    handed = _HANDS_OVER.search(text)
    if handed and not _MARKED.match(text, handed.end()):
        text = text[: handed.end()]
    lines = _FENCE.sub(lambda found: found[1] or "", text).splitlines()
    kept: list[str] = []
    pasted = False
    for at, line in enumerate(lines):
        mail = _FROM.match(line) and any(_HEADER.match(near) for near in lines[at + 1 : at + 5])
        if mail or _FORWARDED.fullmatch(line):
            break
        if _RULE.fullmatch(line):
            pasted = not pasted
        elif not pasted and not line.lstrip().startswith(">"):
            kept.append(line)
    return "\n".join(kept).strip()


def sentences(text: str) -> list[str]:
    """Split `text` into sentences, each a verbatim span without outer spaces or bullet.

    A line ends a sentence. Abbreviations ("St.", "e.g."), initials and decimals ("3.5") do not.
    """
    return [piece for line in text.splitlines() for piece in _split(_BULLET.sub("", line)) if piece]


def _split(line: str) -> Iterator[str]:
    start = 0
    for mark in _STOP_MARK.finditer(line):
        word = line[max(start, mark.end() - 8) : mark.end()]
        if mark[0] == "." and (_ABBREVIATION.search(word) or _goes_on(line, mark.end())):
            continue
        yield line[start : mark.end()].strip()
        start = mark.end()
    yield line[start:].strip()


def _goes_on(line: str, at: int) -> bool:
    """Whether what follows a full stop in lower case belongs before it ("I keep bees. three hives up at the allotment").

    It has no verb of its own, asks nothing, and begins with no word that begins a sentence.
    """
    found = _LOWER_NEXT.match(line, at)
    if not found or found["asks"]:
        return False
    piece = found["piece"]
    return not (_BEGINS.match(piece) or _FINITE.search(piece) or asks(piece))


def asks(sentence: str) -> bool:
    """Say whether `sentence` asks, requests or reports the assistant's words, and so states nothing of its own."""
    return bool(_ASK_END.search(sentence) or _ASKS.match(sentence))


def assertions(text: str) -> list[str]:
    """Return the sentences of `text` that state something; of one that asks, the clauses in the first person."""
    found: list[str] = []
    for sentence in sentences(text):
        if not asks(sentence):
            found.append(sentence)
        else:
            clauses = [clause.strip() for clause in _CLAUSE.split(sentence)]
            found += [c for c in clauses if not asks(c) and _FIRST_PERSON.search(c)]
    return found


def content_stems(text: str) -> set[str]:
    """Return what `text` is about: stems of its words without generic ones, numbers, and bigrams of unspaced scripts."""
    stemmer = snowballstemmer.stemmer("english")  # holds state, so it is not shared between threads
    found: set[str] = set()
    for token in set(_TOKEN.findall(unicodedata.normalize("NFKC", text).casefold().translate(_SAME))):
        if re.match(f"[{_UNSPACED}]", token):
            found.update(token[i : i + 2] for i in range(max(1, len(token) - 1)))
        elif token[0].isdigit():
            found.add(_number(token))
        elif token not in _GENERIC:
            found.add(_NUMBER_WORDS.get(token) or stemmer.stemWord(token))
    return found


def find_quote(statement: str, user_text: str, quote: str | None = None) -> str | None:
    """Return the words of `user_text` that support `statement`, verbatim, or None when there are none.

    Every number and every name of the statement must occur in `user_text`. Then `quote` counts if it occurs there in an
    assertion (spacing, case, quotation marks, Unicode form and end punctuation aside) that shares a content word with
    the statement or speaks in the first person. Otherwise the assertion that shares the most content words counts, if
    the assertions together hold at least half of them. Questions and requests support nothing, and what is said of
    another person or a pet supports only statements that name them.
    """
    stems = content_stems(statement)
    if not stems or not _grounded(statement, user_text):
        return None
    stated = [a for a in assertions(user_text) if not _of_another(a, stems)]
    span = _locate(quote, user_text) if quote else None
    if span and any(_same_place(span, a) and (stems & content_stems(a) or _FIRST_PERSON.search(a)) for a in stated):
        return span
    shared = {a: stems & content_stems(a) for a in stated}
    if 2 * len(set[str]().union(*shared.values())) < len(stems):
        return None
    best = max(shared, key=lambda a: len(shared[a]), default=None)
    return best if best and shared[best] else None


def denies(quote: str, statement: str) -> bool:
    """Whether `quote` says the opposite: it negates a content word that `statement` asserts ("I'm not allergic …")."""
    if _NEGATIVE.search(statement.translate(_SAME)):
        return False
    denied = content_stems(" ".join(_DENIAL.findall(quote.translate(_SAME))))
    return bool(denied & content_stems(statement))


def _of_another(assertion: str, stems: set[str]) -> bool:
    """Whether the subject of `assertion` is someone else ("My sister Oona …") whom the stems do not mention."""
    subject = _OTHER.match(assertion)
    return subject is not None and not stems & content_stems(" ".join(filter(None, subject.groups())))


def _grounded(statement: str, user_text: str) -> bool:
    """Whether the numbers and names of `statement` occur in `user_text`; a date may be resolved from "last month"."""
    if _RELATIVE.search(user_text):
        statement = _DATE.sub(" ", statement)
    said = content_stems(user_text)
    words = {w.casefold() for w in _TOKEN.findall(unicodedata.normalize("NFKC", user_text))}
    if not {_number(n) for n in _NUMBER.findall(unicodedata.normalize("NFKC", statement))} <= said:
        return False
    return all(content_stems(name) <= said or name.casefold() in words for name in _names(statement))


def _names(statement: str) -> Iterator[str]:
    """Capitalised words; the first one only if a generic verb follows, as in "Martin likes …"."""
    tokens = [
        t for t in _TOKEN.findall(unicodedata.normalize("NFKC", statement).translate(_SAME)) if not t[0].isdigit()
    ]
    for at, token in enumerate(tokens):
        if not token[0].isupper() or token.casefold() in _GENERIC:
            continue
        if at > 0 or (len(tokens) > 1 and tokens[1] in _GENERIC and tokens[1].endswith("s")):
            yield token


def _number(digits: str) -> str:
    """Write a number in one way: no thousands separators, a point for decimals."""
    return re.sub(r"[.,](?=\d{3}(?:\D|$))", "", digits).replace(",", ".")


def _locate(quote: str, text: str) -> str | None:
    """Return the span of `text` that reads as `quote`, verbatim."""
    quote = quote.strip(_EDGES)
    if not quote or quote in text:
        return quote or None
    wanted, _ = _fold(quote)
    folded, places = _fold(text)
    at = folded.find(wanted)
    return text[places[at] : places[at + len(wanted) - 1] + 1] if wanted and at >= 0 else None


def _fold(text: str) -> tuple[str, list[int]]:
    """Return `text` decomposed, without case, with single spaces and straight quotes, and where each character came from."""
    out: list[str] = []
    places: list[int] = []
    for at, char in enumerate(text):
        for part in unicodedata.normalize("NFKD", char).casefold().translate(_SAME):
            part = " " if part.isspace() else part
            if part != " " or (out and out[-1] != " "):
                out.append(part)
                places.append(at)
    return "".join(out), places


def _same_place(span: str, assertion: str) -> bool:
    """Whether a quoted span lies in an assertion, or holds it whole."""
    return span in assertion or assertion.strip(_EDGES) in span
