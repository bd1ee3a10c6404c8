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
    |proverb|saying|slogan|motto|mantra|tattoo|badge|hashtag|catchphrase|chant|jingle|ringtone|refrain|chorus|profile|subtitles?|horoscope|fortune\ cookie|monologue|dialogue|obituary|advertisement)"""
"""What carries a text."""
_SAY = r"(?:wrote|writes|says?|said|reads|goes|texted|posted|emailed|replied|answered|asked|asks|begins?|starts|ends\ with)"
_SPEAKER = r"(?:he|she|they|(?:my|our|the|his|her|their|an?)\ (?:[\w']+\ ){1,3}?|[A-Z]\w+(?:'s\ \w+)?\ ?)"

MEDICAL_SOURCE = _verbose(
    r"^(?:(?:my|the|our|a)\ (?:\w+\ )?)?(?:doctors?|gp|dentist|therapist|physio\w*|dermatologist|allergist|nurse"
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
      |promised|warned|explained|bragged|whispered|sang|sings|reads|(?:kept|keeps)\ (?:saying|telling\ \w+|insisting))\ (?:me\ |us\ )?(?:that\ )?
      (?=(?:I|we|my|our|dear)\b)
    |^(?:(?:and|so|but|then|later)\ ){0,2}(?:he|she|they|[A-Z]\w+)\ (?:then\ |just\ |only\ )?(?:answer|repli|shout|yell|whisper|respond|announc|declar|mutter|sing|sang
      |text|exclaim)\w*\ (?:back\ |me\ )?(?=(?:I|we)\b)
    |^(?:(?:which|what|who)\ [\w\ ]{1,30}|[\w\ ]{0,20}\b)(?:the|that|this|whose|a|his|her)\ (?:\w+\ )?(?:line|lyrics?|quote|meme|slogan|motto|chant|refrain|catchphrase),?
      \ (?=(?:I|we)\ \w+\ (?:the|my|to|it|you|a|an|him|her)\b)
    |^(?:\w+\ ){1,4}(?:sent|wrote|replied|emailed)\ (?:me\ |us\ |back\ )?(?=dear\b)"""
)
_EMBEDDED = _verbose(
    r"""^(?:(?:and|so|but|then|apparently|in\ [\w\ ]{1,20},)\ )*(?!(?:I|we|you)\b)
      (?:he|she|they|it|who|people|some\w*|(?:the|an?|my|our|his|her|their|this|that|these|every|some)\ [\w']+|(?-i:(?!On|In|At|As|These|Those|After|Before|During|Since|When|If|While|Most)[A-Z]\w+)|mum|dad|gran)\b(?!\ (?:seem|appear|turn|happen)s)
      (?:'s)?(?:\ [\w']+){0,6}?
      \ (?!(?:kn[eo]w|notic|remember|reali[sz]|forg[eo]t|discover|learn|because|as|things|was|is|does|this)\w*\ )(?:\w{3,}(?:ed|[^s\W]s|ing)|put|says?|be\ like|all|think|just)
      \ (?=I\ (?:really\ |just\ |absolutely\ |still\ )?(?:love|like|hate|adore|prefer|enjoy|can't\ stand)\ (?!(?:is|are|was|were|has|the\ most|most|best|so|too|and|to\ be|it)\b)\w)
    |^(?:rhyme|translate|spell|pronounce|sing|print|write|type)\b(?:\ \w+){0,3}\ (?=I\ \w+\ \w)|^[\w\ ]{0,40}\bI\ quote\b|^some\ [\w\ ]{1,20}:\ (?=I\b)"""
)
"""Somebody else's doing, with an "I" in it that is him: "the parrot squawks I love fish fingers". What others know or notice of the
writer is left: that is so."""
_HELLO = r"(?:hey|hi|hello|well|yes|no|oh|ok|okay|look|same|sorry|excuse\ me|me\ too|dear\ \w+)"
_GOES_ON = _verbose(
    rf"""^(?:(?:and|so|but|then|in\ [\w\ ]{{1,20}}?,?)\ )*{_SPEAKER}\s?(?:\w+ly\ |always\ |only\ )?(?:(?:'s|is|was|were)\ (?:like|all)|goes|went|says?|said|wrote|writes
        |shouts|laughed|told\ (?:me|us|him|her)|(?:introduc|greet|open|start|begin|finish|repli|answer)\w*\ (?:\w+\ )?(?:with|by\ saying))
      \ (?:{_HELLO},?\ )*(?:I(?:'m)?|my\ name|mate,?\ I)\b
    |^(?:the|an?|my|his|her|their|our|this|that)\ (?:[\w']+\ ){{0,3}}?(?:{_TEXT})\ (?:read|reads|is|was|goes|went|says|said|starts?|started)\ (?:{_HELLO},?\ |with\ )*(?:I(?:'m)?|my\ name)\b
    |^write\b[^,]{{0,40}}\blike\ (?=I\b|my\b)"""
)
"""Somebody's words without a sign that they end: so are those after "and"."""
_CARRIED = _verbose(rf"\b{_TEXT}\b[^:.!?]{{0,40}}\b(?:{_SAY}|is|was),?\ (?=(?:I|we)\b)")
"""A text is said to say something of an "I": whose, nobody knows."""
_SPOKEN = _verbose(r"\b(?:said|says|wrote|reads|told|goes|went|called|texted|replied|answered|shouted|sang|like)\b")

_DIRECT = _verbose(
    rf"""^(?:(?:so|and|then|but|as|well),?\ )*{_SPEAKER}\s?(?:\w+ly\ )?(?:(?:'s|is|was|were)\ (?:like|going|all)|goes|went|{_SAY}
      |answers|replies|(?:shout|whisper|add|exclaim|yell|mutter|respond)(?:s|ed)|texts|sings?|sang|puts?\ it|jokes|joked|laughs|laughed)(?:,?\ (?:hey|hi|hello|well|yes|no|oh|same|sorry|excuse\ me|quote|mate))?
      (?:\ (?:to\ )?(?:me|us|him|her|them))?,\s+(?=(?:I|we|my|our)\b)
    |^(?:[\w']+\ ){{0,6}}(?:memes?|quotes?|lyrics?|slogan|motto|catchphrase|chant|refrain|saying),\s+(?=(?:I|we|my)\b)
    |^(?![^,]*\bI\b)[^,.!?]{{0,60}}\b(?:{_TEXT}|magnet|words|whole\ personality)\b[^,.!?]{{0,25}},\s+(?=(?:I|we)\ (?:love|like|hate|adore|enjoy)\b)
    |^(?!I\b|[^,]*\bI\b[^,]*\bwith\b)[^,.!?]{{0,60}}\b(?:open|begin|start|end|finish|sign|close)(?:s|ed|n)?(?:\ off)?\ with,?\s+(?=(?:I|we)\b)"""
)
"""What follows the comma is what somebody said."""
_AFTER_COLON = _verbose(
    rf"""^(?![^:]*\b(?:I|we)\b(?!\ (?:just\ )?(?:saw|found|read|heard|got)\b))[^:.!?]{{0,60}}\b(?:
      {_TEXT}\b(?!\ to\ (?:self|myself|you)\b)[^:.!?]{{0,30}}|{_SAY}\b(?:\ (?:to\ )?(?:me|us|him|her))?)\s*:(?:\s|$)
    |^(?:reviewer|customer|client|caller|patient|speaker|person|interview(?:er|ee)|agent|host|guest|student|teacher|user|q|a)
      (?:\ \w{{1,2}})?:\s
    |^(?:(?:over)?heard|quot(?:e|ing))\b[^:.!?]{{0,40}}:\s
    |^\W?\d{{1,2}}:\d\d(?::\d\d)?(?:\s?[ap]m)?\W{{0,3}}\s*\w+:\s|^\w+\ \(\d{{1,2}}:\d\d[^)]*\):\s"""
)
"""What follows the colon is quoted, or a line of a conversation."""
_HEADS = _verbose(
    r"""^[^:.!?]{0,60}\b(?:letter|e?-?mail|essay|cv|article|draft|paragraph|transcript|lyrics|poem|speech|homework|post)
      (?:\ (?:from|by|of)\ [^:]{1,40})?\s*:(?:\s|$)
    |^(?:(?:I\ )?(?:just\ )?(?:got|received|found|saw|read)\ (?:this|that|it)\b[^:.!?]{0,40}\b(?:from|by|in|on)\b[^:.!?]{0,30}):
    |^\w+\s{1,4}\d{1,2}:\d\d(?:\s?[ap]m)?$
    |^[^:.!?]{0,40}\b(?:texted|wrote|sent|emailed|messaged|posted)\b(?:\s\w+){0,2}\s(?:this|the\ following)\W*$
    |^(?:please\s|can\ you\s|could\ you\s)*(?:translate|proofread|rephrase|paraphrase|punctuate)\b[^.:!?]{0,40}\W*$
    |^(?:who|(?:which|what)\s(?:song|film|movie|poet|poem|author|book|singer|show))\b[^.!?]{0,30}\b(?:said|sang|sings|wrote|line|quote|from|this)\b[^.!?]{0,20}\?$
    |^(?:please\s)?say\ (?:it|this)\ (?:like|as)\b[^.:!?]{0,30}\W*$"""
)
"""What follows, to the end of the message, is a text that is passed on."""
_QUOTED = re.compile(
    r'"[^"\n]{1,400}"|(?<!\w)\'(?:[^\'\n]|(?<=\w)\'(?=\w)){3,400}?\'(?!\w)|`[^`\n]{3,400}`|\*I [^*\n]{3,400}\*(?= \w+ (?:says?|said)\b)'
)
_ATTRIBUTED = _verbose(
    r"""^(?:I|we|my|our)\b[^.!?\n]{2,200}?,?\s(?:said|says|shouted|yelled|announced|replied|whispered|goes|wrote|joked)\ (?:he|she|they|no\w*|the|an?|my|our|his|her|their
      |some\w*|every\w*|(?-i:[A-Z]\w+))\b|,\ as\ (?:my|our|the|his|her)\ (?:\w+\ ){1,2}(?:says|said|would\ (?:say|put)|puts|put)\b"""
)
"""What stands before is what somebody said: "I love early mornings, says my flatmate"."""
_PERSONAL = _verbose(r"\b(?:I|I'm|my|me|we|our|you|your)\b|(?:\S+\s+){3}")
_ELSEWHERE = re.compile(
    r"^[^:«„\"“]{0,60}(?<!ich )\b(?:sagt|sagte|meint|meinte|schreibt|schrieb|fragt|fragte|ruft|rief|dit|disait|écrit|répond"
    r"|dice|dijo|escribe|escribió|pregunta|disse|diz|scrive|scrisse)\b[^:«„\"“]{0,20}[:«„\"“]"
    r"|(?:说|說|问|問|讲|道|写道|回复)\s*[：:，,]?\s*[“「『\"]|[」』”]\s*(?:って|と)(?!も)|(?:さん|くん|ちゃん|先生|店長|上司|友達)[はが].*(?:って言|と言|だって$)"
    r"|^[^:：«„\"“「『]{3,60}[:：]\s*[«„“\"「『][^»”“\"」』]{12,}"
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
    spoken = (_SPEAKS_AS, _EMBEDDED, _ATTRIBUTED, _GOES_ON)
    return any(form.match(plain) for form in spoken) and not MEDICAL_SOURCE.match(plain)


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
