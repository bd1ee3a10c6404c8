"""What a message says in somebody else's words: speech, reported or quoted, and texts that are passed on.

Nobody's words but the writer's make facts about the writer.
"""

import re

from sharpwave.memory.phrases import straight


def _verbose(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


_TEXT = r"""(?:lyrics?|quotes?|sentence|caption|bio|draft|summary|cv|r[eé]sum[eé]|e?-?mail|message|text|example|title|headline
    |tweet|letter|scene|line|prompt|template|transcript|paragraph|article|review|ad|advert|post|voicemail|(?<=the\ )note|(?<=a\ )note|(?<='s\ )note|(?<=her\ )note|(?<=his\ )note|comment|poem
    |verse|meme|sign|poster|sticker|plaque|mug|t-?shirt|postcard|invitation|essay|homework|diary|script|speech|riddle|joke
    |proverb|saying|slogan|subtitles?|horoscope|fortune\ cookie|monologue|dialogue|obituary|advertisement)"""
"""What carries a text."""
_SAY = r"(?:wrote|writes|says?|said|reads|goes|texted|posted|emailed|replied|answered|asked|asks|begins?|starts|ends\ with)"
_SPEAKER = r"(?:he|she|they|(?:my|our|the|his|her|their|an?)\ (?:[\w']+\ ){1,3}?|[A-Z]\w+(?:'s\ \w+)?\ ?)"

MEDICAL_SOURCE = _verbose(
    r"^(?:my|the|our|a)\ (?:\w+\ )?(?:doctors?|gp|dentist|therapist|physio\w*|dermatologist|allergist|nurse"
    r"|optician|cardiologist|psychiatrist|psychologist|specialist|paediatrician|midwife|vet|neurologist|dietician"
    r"|dietitian|tests?|results?)"
    r"\ (?:says?|said|told\ me|thinks?|confirmed|confirms?|found|showed?|shows|diagnosed)(?:\ that)?\ (?=I\b|my\b"
    r"|me\b|we\b|our\b)"
)
"""What a doctor says of the writer is taken for the writer's own."""

_REPORTED = _verbose(
    r"""^(?:he|she|they|(?:someone|somebody|everyone|everybody|people|some\ \w+)(?:\ (?:on|in|at|from)\ (?:the\ )?\w+)?
      |the\ \w+|(?:my|our)\ (?:[\w']+\ ){1,3}?|[A-Z]\w+(?:'s\ \w+)?)\ ?(?:\w+ly\ )?(?:said|says|say|told|tells|tell|thinks?
      |thought|claims?|claimed|wrote|writes|asked|asks|believes?
      |(?:goes|went|is\ like|was\ like|were\ like|am\ like)(?=\ (?:I|we|you|my)\b)|assum(?:es?|ed)|suspect(?:s|ed)?|imagines?
      |guess(?:es|ed)|decided|pretends?|asked\ (?:me\ )?(?:if|whether)|reckons?|reckoned|swears?|swore|bets?|jokingly
      |insists?|insisted|keeps?\ (?:on\ )?(?:saying|telling|insisting|claiming|joking|thinking)|kept\ (?:saying|telling)
      |mentioned|joked|jokes|calls\ me|called\ me)\b
    |.*?\b(?:according\ to|lyrics?|the\ song\ goes)\b|quote\b"""
)
_SPEAKS_AS = _verbose(
    r"""^(?:(?:an?|one|another|this|that|the|my|our|his|her)\ (?:[\w']+\ ){1,4}?|[A-Z]\w+\ (?:\d+\ )?)
      (?:announced|sent|declared|shouted|yelled|texted|messaged|emailed|wrote|said|complained|admitted|confessed|replied|answered
      |promised|warned|explained|bragged|(?:kept|keeps)\ (?:saying|telling\ \w+|insisting))\ (?:me\ |us\ )?(?:that\ )?
      (?=(?:I|we|my|our|dear)\b)
    |^(?:\w+\ ){1,4}(?:sent|wrote|replied|emailed)\ (?:me\ |us\ |back\ )?(?=dear\b)"""
)
_CARRIED = _verbose(rf"\b{_TEXT}\b[^:.!?]{{0,40}}\b(?:{_SAY}|is|was),?\ (?=(?:I|we)\b)")
"""A text is said to say something of an "I": whose, nobody knows."""
_SPOKEN = _verbose(r"\b(?:said|says|wrote|reads|told|goes|went|called|texted|replied|answered|shouted|sang|like)\b")

_DIRECT = _verbose(
    rf"""^(?:(?:so|and|then|but|as|well),?\ )*{_SPEAKER}\s?(?:\w+ly\ )?(?:(?:'s|is|was|were)\ (?:like|going|all)|goes|went|{_SAY}
      |answers|replies|(?:shout|whisper|add|exclaim|yell|mutter|respond)(?:s|ed)|texts|sings?|sang|puts?\ it|jokes|joked)
      (?:\ (?:to\ )?(?:me|us|him|her|them))?,\s+(?=(?:I|we|my|our)\b)"""
)
"""What follows the comma is what somebody said."""
_AFTER_COLON = _verbose(
    rf"""^(?![^:]*\b(?:I|we)\b(?!\ (?:just\ )?(?:saw|found|read|heard|got)\b))[^:.!?]{{0,60}}\b(?:
      {_TEXT}\b(?!\ to\ (?:self|myself|you)\b)[^:.!?]{{0,30}}|{_SAY}\b(?:\ (?:to\ )?(?:me|us|him|her))?)\s*:(?:\s|$)
    |^(?:reviewer|customer|client|caller|patient|speaker|person|interview(?:er|ee)|agent|host|guest|student|teacher|user|q|a)
      (?:\ \w{{1,2}})?:\s
    |^(?:over)?heard\b[^:.!?]{{0,40}}:\s
    |^\W?\d{{1,2}}:\d\d(?::\d\d)?(?:\s?[ap]m)?\W{{0,3}}\s*\w+:\s|^\w+\ \(\d{{1,2}}:\d\d[^)]*\):\s"""
)
"""What follows the colon is quoted, or a line of a conversation."""
_HEADS = _verbose(
    r"""^[^:.!?]{0,60}\b(?:letter|e?-?mail|essay|cv|article|draft|paragraph|transcript|lyrics|poem|speech|homework|post)
      (?:\ (?:from|by|of)\ [^:]{1,40})?\s*:(?:\s|$)
    |^(?:(?:I\ )?(?:just\ )?(?:got|received|found|saw|read)\ (?:this|that|it)\b[^:.!?]{0,40}\b(?:from|by|in|on)\b[^:.!?]{0,30}):
    |^\w+\s{1,4}\d{1,2}:\d\d(?:\s?[ap]m)?$"""
)
"""What follows, to the end of the message, is a text that is passed on."""
_QUOTED = re.compile(r'"[^"\n]{1,400}"|(?<!\w)\'[^\'\n]{3,400}?\'(?!\w)')
_PERSONAL = _verbose(r"\b(?:I|I'm|my|me|we|our|you|your)\b|(?:\S+\s+){3}")
_ELSEWHERE = re.compile(
    r"^[^:«„\"“]{0,60}(?<!ich )\b(?:sagt|sagte|meint|meinte|schreibt|schrieb|fragt|fragte|ruft|rief|dit|disait|écrit|répond"
    r"|dice|dijo|escribe|escribió|pregunta|disse|diz|scrive|scrisse)\b[^:«„\"“]{0,20}[:«„\"“]"
    r"|(?:说|說|问|問|讲|道|写道|回复)\s*[：:，,]?\s*[“「『\"]|[」』”]\s*(?:って|と)(?!も)|(?:さん|くん|ちゃん|先生|店長|上司|友達)[はが].*(?:って言|と言|だって$)"
    r"|^[^我]{1,8}(?:说|說)(?:他|她|自己)?[：:，,]?\s*我",
    re.IGNORECASE,
)


def unquoted(text: str) -> str:
    """Return `text` with spoken quotations blanked out, length kept; a quoted name or word stays."""
    return _QUOTED.sub(lambda m: " " * len(m[0]) if _PERSONAL.search(m[0]) else m[0], straight(text))


def reports(clause: str, said: str) -> bool:
    """Whether a clause tells what somebody said; `said` is the same without its quotations and contractions."""
    quotes = unquoted(clause) != straight(clause)
    if quotes and straight(clause)[:1] in "\"'":  # what it begins with is somebody's words
        return True
    return bool(_REPORTED.match(said) or _CARRIED.search(said) or (quotes and _SPOKEN.search(said)))


def speaks_as(clause: str) -> bool:
    """Whether a clause goes over into what somebody says of himself ("my aunt announced I am a trained harpist")."""
    plain = straight(clause)
    return bool(_SPEAKS_AS.match(plain)) and not MEDICAL_SOURCE.match(plain)


def is_speech(sentence: str) -> bool:
    """Whether a sentence is in somebody else's words from its first comma or colon on."""
    plain = straight(sentence)
    return bool(_AFTER_COLON.match(plain)) or (
        bool(_DIRECT.match(plain)) and not MEDICAL_SOURCE.match(plain.replace(",", "", 1))
    )


def heads_text(sentence: str) -> bool:
    """Whether a sentence heads a text that is passed on ("Here is my friend's letter: …"), to the end of the message."""
    return bool(_HEADS.match(straight(sentence)))


_QUOTED_ELSEWHERE = re.compile(r"«[^»]*»|„[^“”]*[“”]|“[^”]*”|「[^」]*」|『[^』]*』|\"[^\"]{3,}\"")


def is_speech_elsewhere(text: str) -> bool:
    """The same as `is_speech` for a text that is German, French, Spanish, Portuguese, Italian, Chinese or Japanese.

    It is so too where half of it or more stands in quotation marks, whoever said that.
    """
    return bool(_ELSEWHERE.search(text)) or 2 * len(unquoted_elsewhere(text).strip()) <= len(text.strip())


def unquoted_elsewhere(text: str) -> str:
    """Return a text in another language than English without what stands in quotation marks."""
    return _QUOTED_ELSEWHERE.sub(" ", text)
