"""How people say, in so many words, that something is otherwise now, or over. English.

Wider than the forms that name what has changed (`grammar`, `endings`): what these speak of, only what is known can tell.
"""

import re

from sharpwave.memory.extract.endings import ends
from sharpwave.memory.phrases import expanded

_NUMBER = (
    r"(?:[£$€]?\d[\d.,:]*\w*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty)"
)
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_FEW = r"(?:\ [\w'-]+){0,4}?"
_SOME = r"(?:[\w'-]+\ ){1,4}?"


def _re(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE | re.VERBOSE)


_CHANGED = _re(
    # another takes the place
    rf"\b(?:switched|swapped|transferred|transitioned|converted|defected|migrated|ported|upgraded|downgraded|relocated|promoted){_FEW}\ (?:to|into|onto|over|for)\b",
    rf"\b(?:moved|shifted){_FEW}\ (?:over\ |up\ |in\ |down\ |back\ )?(?:to|into|onto|with)\b",
    r"\b(?:has|have|we|I|he|she|they)\ (?:just\ |finally\ )?(?:gone|went|come|came)\ (?:over|round|back)\ to\b",
    r"\b(?:gone|jumped\ ship|turned|changed(?:\ over)?)\ to\b|\brewritten\ in\b",
    r"\b(?:sold|ditched|returned|traded\ in)\b.*\b(?:and|so)\b.*\b(?:bought|got|have)\b",
    r"\b(?:has|have)\ taken\ over\b|\btook\ over\b|\bis\ in\ charge\ of\b|\bis\ running\ it\b|\bput\ (?:me|him|her|us)\ on\ (?:days|nights|earlies|lates)\b",
    r"\b(?:ended\ up\ (?:with|going|getting)|settled\ on|opted\ for|went\ (?:with|for)\b.*\bin\ the\ end)\b|\breplaced\ by\b",
    r"\b(?:am|is|are|have\ gone|has\ gone|went)\ back\ (?:on|to|at|in|with)\b(?!\ (?:track|home|bed|sleep|it)\b)",
    # another number or date
    rf"\b(?:pushed|bumped|rescheduled|postponed|delayed|brought\ forward|put\ back|extended){_FEW}\ (?:to|till|until|for)\ \w+",
    rf"\b(?:hit|reached|(?:up|down)\ from)\ {_NUMBER}\b",
    rf"\b(?:down|up|back|dropped|cut|reduced|raised|increased|bumped|pushed|grown|grew|shrunk|fallen|risen|set{_FEW}|turned{_FEW})\ to\ {_NUMBER}\b",
    rf"\b(?:is|are|stands?|sits?)\ (?:now\ )?at\ {_NUMBER}\b|\b(?:doubled|halved|trebled|tripled)\ (?:my|our|the|his|her)\b",
    rf"\b(?:has|have|is|are|seats?|costs?|holds?|takes?)\ (?:now\ )?{_NUMBER}\b.*\bnow\b|\bgot\ an\ extension\b",
    # since when, or in whose place
    r"(?<!\bright)(?<!\buntil)(?<!\bby)(?<!\bfor)\ now(?=$|[.,;:!]|\ (?:that|so|and|because|since|with|instead)\b)",
    r"\b(?:am|is|are|have|has)\ now\b(?!\ what)|\bnow\ (?:lives?|sits?|works?|runs?|takes?|uses?|goe?s?|have|has|do|does|drives?|meets?|starts?)\b",
    r"\bas\ of\ (?:today|now|last|this|next|yesterday|the\ \d|(?-i:[A-Z]))",
    r"\b(?:from\ now\ on|these\ days|nowadays|since\ then|after\ all|instead)\b|\bback\ (?:in|at|on)\b.*\bfor\ good\b",
    rf"\bfrom\ (?:{_MONTH}|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|next\ \w+)\b.*\b(?:am|is|are|costs?)\b",
    r"\bstarted\ (?:having|eating|drinking|taking|using)\b",
    # what happens in a life
    rf"\bturned\ {_NUMBER}(?=$|[.,;!]|\ (?:on|last|in|today|yesterday|this)\b)|\bcelebrated\ (?:her|his|my|their)\ \w*\d\w*\b",
    r"\b(?:was\ born|had\ (?:her|the|our|their|a)\ (?:little\ )?(?:baby|girl|boy|twins))\b",
)
_ENDED = _re(
    # people
    r"\b(?:broke|split)\ up\b|\b(?:and\ me|and\ I)\ split\b|\bdumped\ (?:me|him|her)\b|\bmoved\ (?:out|away)\b",
    rf"\b(?:passed\ away|passed\ in\ {_MONTH}|died\b(?!\ of))|\bflown\ the\ nest\b|\bhas\ (?:graduated|retired)\b",
    r"\bhad\ to\ cancel\b|\btaken\ (?:me|him|her)\ off\b|\bturned\ (?:me|us|him|her)\ down\b",
    # what one does no longer
    r"\b(?:do|does|am|is|are|can|will)\ not\b.*\bany\ ?(?:more|longer)\b|\bno\ longer\b|(?:^|[,;.]\ )(?:so\ |and\ )?no\ more\b",
    r"\b(?:have|has)\ (?:had\ to\ )?(?:(?:stopped|stop)(?=\ \w+ing\b|$|[.,;!])|quit|given\ up|give\ up|leave|packed)\b|\bnot\ renewing\b",
    r"\bhung\ up\ my\b|\bbowed\ out\b",
    r"^(?:quit|cancell?ed|binned|ditched|nicked|sold|stopped|closed|returned|rehomed)\ (?!out\b|off\b|by\b|in\b)\w+",
    r"\b(?:closed|cancell?ed|flogged|binned|ditched|nicked)\ (?:my|our|the|it)\b",
    rf"\b(?:shut\ {_SOME}down|called\ {_SOME}off|packed\ {_SOME}in(?=$|[.,;!]|\ (?:since|after|because|last|for)\b)|gave\ {_SOME}away|threw\ {_SOME}out|let\ {_SOME}lapse|handed\ {_SOME}back)\b",
    r"\bgot\ the\ all[-\ ]clear\b|\b(?:fell|fallen)\ through\b|\b(?:handed|turned)\ in\ my\b|\bmade\ redundant\b|\blet\ go\ of\ (?:me|us|him|her)\b",
    # what is no more
    r"\b(?:was|is|are|been|got)\ (?:abolished|scrapped|axed|disbanded|called\ off|cancell?ed|nicked|stolen|shut\ down|written\ off|put\ down|rehomed|released)\b",
    r"\b(?:is|are|has|have|was)\ (?:finally\ |all\ |now\ |fully\ |completely\ )?(?:dead|over|healed|recovered|cured|blown\ over|died|ended|finished|stopped)(?=$|[.,;:!]|\ (?:up|now|while|and|at\ last|for\ good)\b)",
    r"\b(?:did|does)\ not\ (?:survive|last|make\ it)\b|\bdied\ a\ death\b|\bgot\ rid\ of\b|\b(?:healed|cleared)\ up\b|\bto\ have\ (?:gone|blown\ over|passed)\b",
)


def tells_change(text: str) -> bool:
    """Whether a statement says that something is otherwise now."""
    return bool(_CHANGED.search(expanded(text)))


def tells_end(text: str) -> bool:
    """Whether a statement says that something is over."""
    return bool(_ENDED.search(expanded(text))) or ends(text)
