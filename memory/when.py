"""When something happened: find the words that say so, and read them from the day on which they were said.

The reading is an interval in UTC, [start, end), as wide as what was said: "in May" is a month, "yesterday" a day in the
speaker's own zone. The rules, where words leave a choice:

- Weeks start on Monday; a weekend is Saturday and Sunday, of precision day; seasons are the northern ones, by months
  (summer is June to August); morning is 6-12, afternoon 12-18, evening 18-24, night 18-6, of precision hour.
- "two weeks ago" is the whole week that lay two weeks back. "A few" is two to five, of the next coarser precision.
- A bare name ("in May", "on Friday") is the nearest past one beside a past tense, else the nearest to come. A weekday,
  and a name after "last" or "next", is never the day or month that is running.
- "since X", "for three years" (with a perfect tense), "the last two weeks": from the start of X until the saying.
- "until X": from the saying until the start of X, or until its end where X is a week or less. Where X is past
  ("I worked there until 2019") it dates the ending: X itself.
- 3.4.2026 is day first. 3/4/2026 has two readings: the interval spans both, as a month when they are near, else a year.
- What recurs ("every Monday", "on Mondays", "I get up at 7 am") has no time of its own.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from itertools import islice
from typing import Any

from sharpwave.memory.records import EventTime, Precision
from sharpwave.memory.times import time_zone, utc

_READ_AT_MOST = 2000
_MATCHES_AT_MOST = 16
_FINE = ("second", "minute", "hour", "day", "week")
_COARSER: dict[str, Precision] = {"second": "minute", "minute": "hour", "hour": "day", "day": "week", "week": "month", "month": "season", "season": "year", "year": "year"}  # fmt: skip
_MONTHS_IN = {"month": 1, "season": 3, "year": 12}

# Words. "/" parts what is counted from 1, "," the words for one and the same.
_UNITS: tuple[Precision, ...] = ("second", "minute", "hour", "day", "week", "month", "year")
_UNIT_WORDS = {
    "en": "second,seconds,sec,secs/minute,minutes,min,mins/hour,hours,hr,hrs/day,days/week,weeks/month,months/year,years,yr,yrs",
    "de": "Sekunde,Sekunden/Minute,Minuten/Stunde,Stunden/Tag,Tage,Tagen/Woche,Wochen/Monat,Monate,Monaten/Jahr,Jahre,Jahren",
    "es": "segundo,segundos/minuto,minutos/hora,horas/día,días,dia,dias/semana,semanas/mes,meses/año,años",
    "fr": "seconde,secondes/minute,minutes/heure,heures/jour,jours/semaine,semaines/mois/année,an,ans,années",
    "pt": "segundo,segundos/minuto,minutos/hora,horas/dia,dias/semana,semanas/mês,mes,meses/ano,anos",
    "it": "secondo,secondi/minuto,minuti/ora,ore/giorno,giorni/settimana,settimane/mese,mesi/anno,anni",
    "zh": "秒钟,秒/分钟,分鐘,分/个小时,小时,小時,時間/天,日/个星期,星期,週間,周,週/个月,個月,か月,ヶ月,カ月,ヵ月/年",
}
_FEW = "a few,few,several,some,ein paar,einigen,wenigen,unos,unas,algunos,algunas,quelques,alguns,algumas,uns,umas,qualche,alcuni,alcune,几,幾,数"
_NUMBERS = (
    "a,an,one,ein,eine,einem,einer,un,una,uno,une,um,uma,一/two,a couple of,couple of,zwei,dos,deux,dois,duas,due,二,两,兩"
    "/three,drei,tres,trois,três,tre,三/four,vier,cuatro,quatre,quatro,quattro,四/five,fünf,cinco,cinq,cinque,五"
    "/six,sechs,seis,sei,六/seven,sieben,siete,sept,sete,sette,七/eight,acht,ocho,huit,oito,otto,八"
    "/nine,neun,nueve,neuf,nove,九/ten,zehn,diez,dix,dez,dieci,十/eleven,elf,once,onze,undici,十一/twelve,zwölf,doce,douze,doze,dodici,十二"
)
_MONTHS = (
    "january,jan,januar,jänner,enero,janvier,janeiro,gennaio/february,feb,februar,febrero,février,fevereiro,febbraio"
    "/march,märz,marzo,mars,março/april,apr,abril,avril,aprile/may,mai,mayo,maio,maggio/june,jun,juni,junio,juin,junho,giugno"
    "/july,jul,juli,julio,juillet,julho,luglio/august,aug,agosto,août/september,sept,sep,septiembre,septembre,setembro,settembre"
    "/october,oct,oktober,okt,octubre,octobre,outubro,ottobre/november,nov,noviembre,novembre,novembro"
    "/december,dec,dezember,dez,diciembre,décembre,dezembro,dicembre"
)
_WEEKDAYS = (
    "monday,montag,lunes,lundi,segunda-feira,lunedì,周一,週一,星期一,礼拜一,月曜日,月曜/tuesday,dienstag,martes,mardi,terça-feira,martedì,周二,週二,星期二,礼拜二,火曜日,火曜"
    "/wednesday,mittwoch,miércoles,mercredi,quarta-feira,mercoledì,周三,週三,星期三,礼拜三,水曜日,水曜/thursday,donnerstag,jueves,jeudi,quinta-feira,giovedì,周四,週四,星期四,礼拜四,木曜日,木曜"
    "/friday,freitag,viernes,vendredi,sexta-feira,venerdì,周五,週五,星期五,礼拜五,金曜日,金曜/saturday,samstag,sábado,samedi,sabato,周六,週六,星期六,礼拜六,土曜日,土曜"
    "/sunday,sonntag,domingo,dimanche,domenica,周日,周天,週日,星期日,星期天,礼拜天,日曜日,日曜"
)
_SHORT_WEEKDAYS = "Mon/Tue,Tues/Wed/Thu,Thur,Thurs/Fri/Sat/Sun"
_SEASONS = "spring,frühling,frühjahr,primavera,printemps/summer,sommer,verano,été,verão/autumn,fall,herbst,otoño,automne,outono,autunno/winter,invierno,hiver,inverno"
_WEEKEND = "weekend,week-end,wochenende,fin de semana,fim de semana,fine settimana,周末,週末"
_PARTS = (
    "morning,vormittag,früh,mañana,matin,manhã,mattina/afternoon,nachmittag,après-midi,tarde,pomeriggio"
    "/evening,abend,soir,sera/night,nacht,noche,nuit,noite,notte"
)
_HOURS = ((6, 12), (12, 18), (18, 24), (18, 30))
_MORNING, _AFTERNOON, _EVENING, _NIGHT = range(1, 5)
_DAYS: dict[str, tuple[int, int]] = {
    phrase: (offset, part)
    for offset, part, phrases in (
        (-2, 0, "the day before yesterday,day before yesterday,vorgestern,anteayer,antes de ayer,antier,avant-hier,anteontem,l'altro ieri,前天,一昨日"),
        (-1, 0, "yesterday,gestern,ayer,hier,ontem,ieri,昨天,昨日"),
        (0, 0, "today,heute,hoy,aujourd'hui,hoje,oggi,今天,今日"),
        (1, 0, "tomorrow,morgen,mañana,demain,amanhã,domani,明天,明日"),
        (2, 0, "the day after tomorrow,day after tomorrow,übermorgen,pasado mañana,après-demain,depois de amanhã,dopodomani,后天,後天,明後日"),
        (-1, _MORNING, "gestern morgen"), (-1, _NIGHT, "last night,anoche,昨晚,昨夜"), (1, _MORNING, "morgen früh"),
        (0, _MORNING, "this morning,heute morgen,heute früh,esta mañana,ce matin,esta manhã,stamattina,今早,今朝"),
        (0, _AFTERNOON, "this afternoon,esta tarde,cet après-midi"),
        (0, _EVENING, "this evening,tonight,heute abend,heute nacht,esta noche,ce soir,esta noite,stasera,今晚,今晩"),
    )
    for phrase in phrases.split(",")
}  # fmt: skip
_CJK_UNITS: dict[str, tuple[Precision, int]] = {
    **dict.fromkeys("上周,上週,上个星期,上星期,上个礼拜,先週".split(","), ("week", -1)),
    **dict.fromkeys("这周,本周,这个星期,今週".split(","), ("week", 0)),
    **dict.fromkeys("下周,下週,下个星期,下星期,来週".split(","), ("week", 1)),
    **dict.fromkeys("上个月,上個月,上月,先月".split(","), ("month", -1)),
    **dict.fromkeys("这个月,本月,今月".split(","), ("month", 0)),
    **dict.fromkeys("下个月,下個月,下月,来月".split(","), ("month", 1)),
    **dict.fromkeys("前年,一昨年".split(","), ("year", -2)),
    **dict.fromkeys("去年,昨年".split(","), ("year", -1)),
    "今年": ("year", 0),
    **dict.fromkeys("明年,来年".split(","), ("year", 1)),
}
_COUNTED = (
    ("en", "ago", "{n} {u} (?:ago|back)"), ("en", "ahead", "in {n} {u}"), ("en", "ahead", "{n} {u} from (?:now|today)"),
    ("en", "open", "(?:(?:for|over|in|during|within) )?the (?:last|past) {n} {u}"), ("en", "perfect", "for (?:about |almost |over |nearly |around |more than )?{n} {u}"), ("en", "open", "for (?:about |almost |over |nearly |around |more than )?{n} {u} now"),
    ("de", "ago", "vor {n} {u}"), ("de", "ahead", "in {n} {u}"), ("de", "open", "seit {n} {u}"),
    ("es", "open", "desde hace {n} {u}"), ("es", "open", "hace {n} {u} que"), ("es", "ago", "hace {n} {u}"), ("es", "ahead", "(?:dentro de|en) {n} {u}"),
    ("fr", "open", "il y a {n} {u} que"), ("fr", "ago", "il y a {n} {u}"), ("fr", "ahead", "dans {n} {u}"), ("fr", "open", "depuis {n} {u}"),
    ("pt", "ago", "há {n} {u}"), ("pt", "open", "há {n} {u} que"), ("pt", "ago", "{n} {u} atrás"), ("pt", "ahead", "(?:daqui a|dentro de|em) {n} {u}"),
    ("it", "ago", "{n} {u} fa"), ("it", "ahead", "(?:tra|fra) {n} {u}"), ("it", "open", "da {n} {u}"),
    ("zh", "ago", "{n}{u}(?:之前|以前|前)"), ("zh", "ahead", "{n}{u}(?:之后|以后|后|後)"),
)  # fmt: skip
_SHIFTED = (
    ("en", -2, "(?:the )?{x} before last"), ("en", -1, "(?:last|this past|the past|the previous) {x}"), ("en", 0, "(?:this|the current) {x}"),
    ("en", 1, "(?:next|this coming|the coming|the upcoming) {x}"), ("en", 2, "(?:the )?{x} after next"),
    ("de", -2, "vorletzte[nrsm]? {x}"), ("de", -1, "(?:letzte|vorige|vergangene)[nrsm]? {x}"), ("de", 0, "diese[nrsm]? {x}"),
    ("de", 1, "(?:nächste|kommende)[nrsm]? {x}"), ("de", 2, "übernächste[nrsm]? {x}"),
    ("es", -1, "{x} pasad[oa]"), ("es", 0, "est[ea] {x}"), ("es", 1, "{x} (?:que viene|próxim[oa])"), ("es", 1, "próxim[oa] {x}"),
    ("fr", -1, "{x} (?:derni(?:er|ère)|passée?)"), ("fr", 0, "(?:ce|cet|cette) {x}"), ("fr", 1, "{x} prochaine?"),
    ("pt", -1, "{x} passad[oa]"), ("pt", 0, "n?es[ts][ea] {x}"), ("pt", 1, "{x} que vem"), ("pt", 1, "próxim[oa] {x}"),
    ("it", -1, "{x} (?:scors|passat)[oa]"), ("it", -1, "scors[oa] {x}"), ("it", 0, "quest(?:[oa] |['’]){x}"), ("it", 1, "{x} prossim[oa]"), ("it", 1, "prossim[oa] {x}"),
)  # fmt: skip
_THE = r"(?:\b(?:on the|on|the|at the|am|den|el|la|le|il|lo|o|a|no|na)\s{1,3}|\bl['’])?"
_LEAD = re.compile(
    r"(?:(?P<since>\b(?:ever since|since|seit(?: dem)?|desde|depuis|dal(?:la|lo)?)\s|\bdall['’]|自从|自|从)"
    r"|(?P<until>\b(?:until|till|til|bis(?: zum)?|hasta|jusqu['’](?:en|au|à)|até|ao|fino (?:al?|alla|ad))\s|直到)"
    r"|(?P<span>\b(?:from|between|von|vom|entre|zwischen)\s)|(?P<ahead>\b(?:for|für|para|pour)\s)"
    r"|\b(?:back in|in|during|over the|by|starting(?: in)?|im(?: jahre?)?|en|em|au|nel|ad?(?=\s+\w+(?:aio|rzo|ile|ggio|gno|glio|sto|bre)\b)|ab|ende|anfang|mitte|early|late|mid"
    r"|(?:start|beginning|middle|rest|end) of)\s|\b(?:nell|l|d)['’])\s{0,3}(?P<more>(?:the|early|late|mid|anfang|mitte|ende)[\s-]\s?)?",
    re.IGNORECASE,
)
_GLUE = re.compile(
    r"\s{0,3},?\s{0,3}(?:(?:at|on|in|of|the|in the|of the|um|am|im|de|del|di|do|da|a las?|à|às|alle|por la|的|の)\s{1,3})?",
    re.IGNORECASE,
)
_TO = re.compile(
    r"\s{0,3}(?:(?:to|and|until|till|through|bis|a|al|à|au|e|et|y|und|até|hasta)\s{1,3}|[-–—]\s{0,3}|到|から)",
    re.IGNORECASE,
)
_RECURS = re.compile(
    r"\b(?:every|each|jede[nrs]?|cada|chaque|ogni|los|todos? [oa]s)\s+(?:(?:other|second|single|zweite[nrs]?)\s+)?$|[每毎]$",
    re.IGNORECASE,
)
_USUALLY = re.compile(
    r"\b(?:every|each|daily|usually|always|often|normally|typically|consistently|sometimes|(?:mon|tues|wednes|thurs|fri|satur|sun|week)days|mornings|evenings|nights"
    r"|jeden|immer|meistens|siempre|toujours|sempre)\b",
    re.IGNORECASE,
)
_SINCE_AFTER, _UNTIL_AFTER = re.compile("以来|から|起"), re.compile("まで|为止")
_VERBS = ("may", "march")
"""Months that, in small letters and without "in" or the like, are verbs."""
_CAPITAL_MONTH = r"(?-i:\b(?:May|MAY|March|MARCH)\b)"
_CAPITAL_DAY = r"(?-i:\b(?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\b)"
_COUNTS = r"(?:people|percent|km|kg|feet|(?!(?:was|is|has|as|this|its|his)\b)[a-z]{2,}s)\b"
_FRENCH = re.compile(
    r"\b(?:je|nous|on|il|elle|ai|suis|étai[st]|mon|ma|les?|la|une?|avec|soir|matin)\b|\bj['’]", re.IGNORECASE
)
_GERMAN = re.compile(r"\b(?:ich|ist|bin|sind|war|der|die|das|und|wir|nicht|ein|habe|hat)\b", re.IGNORECASE)
_PERFECT = re.compile(
    r"\b(?:have|has|(?<=['’])ve|(?<=['’])s(?=\sbeen))(?:n['’]t)?\s(?:\w{1,12}\s){0,3}?(?:\w{1,12}(?:ed|een|wn)|had|kept|held|taught|run|done|gone|felt|led)\b[^.;!?]*$",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[.;!?,\n。，、；]|\b(?:and|but|und|aber|y|pero|et|mais|e|mas|ma)\b")
_DID = re.compile(r"\bdid(?:n['’]t)?\b", re.IGNORECASE)
_PAST = re.compile(
    r"\b(?:was|were|did|had|went|got|took|came|saw|met|bought|made|found|left|lost|said|told|gave|began|broke|brought|built|caught|chose|drank|drove|ate|fell|felt|flew|forgot|grew|heard|held"
    r"|kept|knew|led|lent|paid|quit|ran|rode|rang|sang|sat|sent|shot|slept|sold|spent|spoke|stole|stood|swam|taught|thought|threw|understood|won|wore|wrote|woke|became|been|born|gone|done|\w{2,}(?<!e)ed"
    r"|war(?:en|st)?|hatten?|wurden?|ging(?:en)?|kam(?:en)?|(?:\w{2,5})?ge\w{2,}(?:t|en)|\w+(?:iert)|fu[ei]|fue(?:ron)?|era[mn]?|estaba|estava|estive|tuve|tive|hic[ei]|hizo|fiz|fez|nac[íi]|vi"
    r"|\w{2,}(?:é|ó|aron|ieron|aram|eram|iram|[aei]ste)|\w{3,}(?:ei|ou)|(?:he|ha|hemos|han)\s\w+(?:ado|ido)|(?:ho|hai|abbiamo|hanno|sono|siamo|è)\s(?:\w+\s)?\w+(?:at|it|ut|tt|s)[oaie]|(?:a|ai|avons|avez|ont|suis|est|sommes|sont)\s(?:\w+\s)?\w{2,}(?:é|ées?|és)|(?:ai|avons|avez|ont|suis|sommes)\s\w+(?:i|is|it|u|us|ue)"
    r"|étai(?:s|t|ent)|avai(?:s|t|ent)|ero|erano|stavo|andai)\b|了|(?:し|っ|い|ん|き|べ|え|ま|り)[ただ]",
    re.IGNORECASE,
)
_FUTURE = re.compile(
    r"\b(?:will|won['’]t|shall|(?<!was )(?<!were )going to|gonna|next|tomorrow|plan(?:s|ning)?|upcoming|starts?|starting|begins?|beginning|coming|looking forward|can['’]t wait|due|hop(?:e|ing) to|want to|need to|must"
    r"|scheduled|supposed to|planned for|booked for|excited (?:for|about)|(?:am|are|is|(?<=['’])m|(?<=['’])re|(?<=['’])s)\s(?:not\s)?(?:\w{1,12}ly\s)?\w{2,12}ing|werden?|wird|werde|morgen|voy a|vamos a|va a|vou|vai|vais|allons|va|vont|mañana|demain|domani|amanhã"
    r"|\w{2,}(?:[aei]ré|[aei]rá|[aei]rai|era[iì]?|[aei]remos|erò|irò|erons|irons))\b|['’]ll\b|将|會|会|要|打算|つもり|予定|ます",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Span:
    """An interval of local time."""

    start: datetime
    end: datetime
    unit: Precision


@dataclass(frozen=True)
class _Name:
    """What comes again in each `period` (a weekday in weeks, a month in years): `place` puts it into one that starts then."""

    unit: Precision
    period: Precision
    place: Callable[[datetime], _Span]
    strict: bool = False
    habit: bool = False
    """Mostly said of what recurs, so that alone it dates nothing without a tense."""


@dataclass(frozen=True)
class _Term:
    """Words in a text, text[at:to], that tell a time."""

    at: int
    to: int
    what: _Span | _Name
    needs: int = 0
    """0: tells a time by itself; 1: only after a word such as "in" or "since", or joined to another; 2: only joined."""
    bare: bool = False
    """Begins with a name that takes an "in": the phrase holds it too."""


_Read = Callable[[re.Match[str], datetime], _Span | _Name | None]


def event_time(text: str, said_at: datetime, timezone: str) -> EventTime | None:
    """Return the time that the statement `text` tells of, or None where it tells none.

    Args:
        text: one statement; its first 2,000 characters are read, and the first time in it counts.
        said_at: when it was said; a naive time is read in `timezone`.
        timezone: IANA name of the speaker's zone, in which days begin and end.

    Returns:
        The interval in UTC, its precision, and the words that said so, verbatim.

    Raises:
        InputError: the zone is unknown.
    """
    return _find(text[:_READ_AT_MOST], said_at, timezone, default_past=False)


def resolve_range(text: str, said_at: datetime, timezone: str) -> tuple[datetime, datetime] | None:
    """Return the interval [start, end) in UTC that a question asks about ("on 25 July"), or None; see `event_time`.

    A bare name is the most recent one, unless the question speaks of the future.
    """
    found = _find(text[:_READ_AT_MOST], said_at, timezone, default_past=True)
    return (found.start, found.end) if found else None


def _find(text: str, said_at: datetime, timezone: str, default_past: bool) -> EventTime | None:
    zone = time_zone(timezone)
    if not _may_tell(text):
        return None
    try:
        said = utc(said_at, timezone).astimezone(zone)
    except OverflowError:  # the zone's own date lies beyond the years 1 to 9999
        return None
    leads = {end: found for found in _LEAD.finditer(text) for end in (found.end(), found.start("more"))}
    terms = _joined(_terms(text, said), text)[:_MATCHES_AT_MOST]
    for index, term in enumerate(terms):
        lead = leads.get(term.at)
        if term.needs > bool(lead) or _RECURS.search(text, max(0, term.at - 24), term.at):
            continue
        following = terms[index + 1] if index + 1 < len(terms) else None
        try:
            if (found := _resolve(text, said, term, lead, following, default_past)) is not None:
                return found
        except (OverflowError, ValueError):  # beyond the years 1 to 9999
            continue
    return None


def _resolve(
    text: str, said: datetime, term: _Term, lead: re.Match[str] | None, following: _Term | None, default_past: bool
) -> EventTime | None:
    to, role = term.to, _role(lead)
    at = lead.start() if lead and (role in ("since", "until") or term.bare) else term.at
    if after := _SINCE_AFTER.match(text, to) or _UNTIL_AFTER.match(text, to):
        to, role = after.end(), "since" if after.re is _SINCE_AFTER else "until"
    tense = False if role == "ahead" else _past(text, term.at, term.to)
    past = role == "since" or (default_past if tense is None else tense)
    recurs = isinstance(term.what, _Name) and term.what.habit and role is None
    if recurs and ((tense is None and not default_past) or _USUALLY.search(text)):
        return None
    if (span := _settle(term.what, said, past)) is None:
        return None
    if role in ("span", "since") and following and _TO.fullmatch(text, term.to, following.at):
        last = _settle(following.what, span.start, past=False)
        if last is not None and last.end > span.start:
            return _event(span.start, last.end, last.unit, text[lead.start() if lead else at : following.to])
    if role == "since" and span.start <= said:
        return _event(span.start, said, span.unit, text[at:to])
    if role == "until" and (limit := _settle(term.what, said, past, strict=True)):
        end = limit.end if limit.unit in _FINE else limit.start
        if end > said:
            return _event(said, end, limit.unit, text[at:to])
    return _event(span.start, span.end, span.unit, text[at:to])


def _role(lead: re.Match[str] | None) -> str | None:
    return next((role for role in ("since", "until", "span", "ahead") if lead[role]), None) if lead else None


def _event(start: datetime, end: datetime, precision: Precision, phrase: str) -> EventTime | None:
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    return EventTime(start=start, end=end, precision=precision, phrase=phrase.strip()) if start <= end else None


def _past(text: str, at: int, to: int) -> bool | None:
    """Whether the clause around text[at:to], or else the whole text, is in a past tense; None where no word tells."""
    ends = [m.start() for m in _CLAUSE_END.finditer(text)]
    start = max((end for end in ends if end < at), default=0)
    stop = min((end for end in ends if end >= to), default=len(text))
    for low, high in ((start, stop), (0, len(text))):
        if _DID.search(text, low, high):
            return True
        near = [
            (_distance(m, at, to), past)
            for past, cue in ((False, _FUTURE), (True, _PAST))
            for m in cue.finditer(text, low, high)
        ]
        if near:
            return min(near)[1]
    return None


def _distance(cue: re.Match[str], at: int, to: int) -> int:
    return max(at - cue.end(), cue.start() - to, 0)


# Terms: what the words of a text tell, joined where they tell one time together.


def _terms(text: str, said: datetime) -> list[_Term]:
    found = []
    for pattern, read, needs in _rules():
        for match in islice(pattern.finditer(text), _MATCHES_AT_MOST):
            try:
                what = read(match, said)
            except (OverflowError, ValueError):  # no such day, or beyond the years 1 to 9999
                continue
            if what is not None:
                found.append(_Term(match.start(), match.end(), what, needs, bare=needs > 0))
    kept: list[_Term] = []
    for term in sorted(found, key=lambda term: (term.at, -term.to, term.needs)):
        if not kept or term.at >= kept[-1].to:
            kept.append(term)
    return kept


def _joined(terms: list[_Term], text: str) -> list[_Term]:
    joined: list[_Term] = []
    for term in terms:
        both = _join(joined[-1], term) if joined and _GLUE.fullmatch(text, joined[-1].to, term.at) else None
        if both:
            joined[-1] = both
        else:
            joined.append(term)
    return joined


def _join(left: _Term, right: _Term) -> _Term | None:
    for inner, outer in ((left.what, right.what), (right.what, left.what)):
        if isinstance(inner, _Name) and (what := _inside(inner, outer)):
            return _Term(left.at, right.to, what, bare=left.bare)
    return None


def _inside(inner: _Name, outer: _Span | _Name) -> _Span | _Name | None:
    """`inner` in the `outer` that it recurs in; a weekday beside a date adds nothing."""
    if inner.period == "week" and outer.unit == "day" and not (isinstance(outer, _Name) and outer.period == "week"):
        return outer
    if inner.period != outer.unit:
        return None
    if isinstance(outer, _Span) and outer != _whole(_floor(outer.start, outer.unit), outer.unit):
        return None
    if isinstance(outer, _Name):
        return _Name(inner.unit, outer.period, lambda start: inner.place(outer.place(start).start), outer.strict)
    try:
        return inner.place(outer.start)
    except (OverflowError, ValueError):  # that year has no such day
        return None


def _settle(what: _Span | _Name, said: datetime, past: bool, strict: bool = False) -> _Span | None:
    """The occurrence of a name nearest to `said`, in the past or to come; `strict` leaves out the one that is running."""
    if isinstance(what, _Span):
        return what
    strict = strict or what.strict
    running = _floor(said, what.period)
    for step in range(1, -9, -1) if past else range(-1, 9):
        try:
            span = what.place(_step(running, what.period, step))
        except ValueError:  # not every year has a 29 February
            continue
        if (span.end if strict else span.start) <= said if past else (span.start if strict else span.end) > said:
            return span
    return None


# Calendar: `_floor` and `_step` on local time.


def _floor(moment: datetime, unit: str) -> datetime:
    if unit in ("second", "minute", "hour"):
        second, minute = moment.second if unit == "second" else 0, 0 if unit == "hour" else moment.minute
        return moment.replace(microsecond=0, second=second, minute=minute)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day if unit == "day" else day.replace(day=1) if unit == "month" else day.replace(month=1, day=1)


def _step(start: datetime, unit: str, count: int) -> datetime:
    """`count` units after `start`, which is the first moment of a unit."""
    if months := _MONTHS_IN.get(unit):
        year, month = divmod(start.year * 12 + start.month - 1 + count * months, 12)
        return start.replace(year=year, month=month + 1)
    if unit in ("day", "week"):
        return start + timedelta(days=count * (7 if unit == "week" else 1))
    return (start.astimezone(UTC) + timedelta(**{unit + "s": count})).astimezone(start.tzinfo)


def _whole(start: datetime, unit: Precision) -> _Span:
    return _Span(start, _step(start, unit, 1), unit)


# Names.


def _weekday(index: int) -> _Name:
    return _Name("day", "week", lambda week: _whole(week + timedelta(days=index), "day"), strict=True)


def _month(number: int) -> _Name:
    return _Name("month", "year", lambda year: _whole(year.replace(month=number), "month"))


def _season(number: int) -> _Name:
    return _Name("season", "year", lambda year: _whole(year.replace(month=3 * number), "season"), habit=True)


def _date(month: int, day: int) -> _Name:
    return _Name("day", "year", lambda year: _whole(year.replace(month=month, day=day), "day"))


def _clock(hour: int, minute: int | None) -> _Name:
    unit: Precision = "hour" if minute is None else "minute"
    return _Name(unit, "day", lambda day: _whole(day.replace(hour=hour, minute=minute or 0), unit), habit=True)


def _part(number: int) -> _Name:
    first, last = _HOURS[number - 1]
    return _Name(
        "hour", "day", lambda day: _Span(day + timedelta(hours=first), day + timedelta(hours=last), "hour"), habit=True
    )


_WEEKEND_NAME = _Name("day", "week", lambda week: _Span(week + timedelta(days=5), week + timedelta(days=7), "day"))


# Rules: a pattern, what it tells, and what it needs (see `_Term`).


def _indexed(table: str) -> dict[str, int]:
    return {word.lower(): index for index, same in enumerate(table.split("/"), 1) for word in same.split(",")}


def _any(phrases: Iterable[str]) -> str:
    """A pattern for any of `phrases`, the longest first; scripts without spaces have no word ends to look for."""
    ordered = sorted(phrases, key=len, reverse=True)
    spaced = [re.escape(p).replace(r"\ ", r"\s{1,3}").replace("'", "['’]") for p in ordered if p < "\u2e80"]
    joined = [p for p in ordered if p >= "\u2e80"]
    return "(?:" + "|".join(([rf"\b(?:{'|'.join(spaced)})\b"] if spaced else []) + joined) + ")"


def _plain(words: str) -> str:
    return re.sub(r"\s+", " ", words.lower().replace("’", "'"))


_NUMBER_OF = _indexed(_NUMBERS) | dict.fromkeys(_FEW.split(","), 0)
_UNIT_OF = {word: _UNITS[index - 1] for table in _UNIT_WORDS.values() for word, index in _indexed(table).items()}
_MONTH_OF, _PART_OF, _WEEKDAY_OF = _indexed(_MONTHS), _indexed(_PARTS), _indexed(_WEEKDAYS)
_NAMES = (
    {word: _month(number) for word, number in _MONTH_OF.items()}
    | {word: _weekday(number - 1) for word, number in (_WEEKDAY_OF | _indexed(_SHORT_WEEKDAYS)).items()}
    | {word: _season(number) for word, number in _indexed(_SEASONS).items()}
    | dict.fromkeys(_WEEKEND.split(","), _WEEKEND_NAME)
    | {word: _part(number) for word, number in _PART_OF.items()}
)
_MONTH_IN_DATE = _MONTH_OF | {"mar": 3}
_WORD = re.compile(r"[^\W\d_]+")
_HINTS = re.compile(
    r"\d{4}|\d[./:-]\d|\d\s?(?:st|nd|rd|th|[ap]\.?m|h|uhr)\b|[年月日天周週昨今明末曜星秒分時]|小时", re.IGNORECASE
)
_TRIGGERS = {
    max(_WORD.findall(phrase), key=len) for table in (_UNIT_OF, _NAMES, _DAYS) for phrase in table if phrase < "\u2e80"
} | {"mar", "noon", "midday"}


def _may_tell(text: str) -> bool:
    """Cheap: whether any word that a rule needs is in `text`."""
    return not _TRIGGERS.isdisjoint(_WORD.findall(text.lower())) or bool(_HINTS.search(text))


def _counted(match: re.Match[str], said: datetime, direction: str) -> _Span | None:
    number, unit = match["n"], _UNIT_OF.get(match["u"].lower())
    count = _NUMBER_OF.get(_plain(number)) if not number.isdecimal() else int(number)
    if unit is None or count is None:
        return None
    perfect = _PERFECT.search(match.string[max(0, match.start() - 80) : match.start()])
    if direction == "perfect" and not perfect:
        return None
    if direction == "ahead" and (perfect or _past(match.string, match.start(), match.end())):
        if not perfect:  # "done in two days": how long, not when
            return None
        direction = "open"
    if not count and direction != "ago" and direction != "ahead":
        count = 3
    sign, now = 1 if direction == "ahead" else -1, _floor(said, unit)
    far, near = _step(now, unit, sign * (count or 5)), _step(now, unit, sign * (count or 2))
    if direction in ("open", "perfect"):
        return _Span(far, said, unit)
    return _Span(min(far, near), _step(max(far, near), unit, 1), unit if count else _COARSER[unit])


def _shifted(match: re.Match[str], said: datetime, offset: int) -> _Span | None:
    word = _plain(match["x"])
    if (unit := _UNIT_OF.get(word)) is not None:
        return _whole(_step(_floor(said, unit), unit, offset), unit)
    name = _NAMES.get(word)
    if name is None:
        return None
    if offset:
        span, moment = None, said
        for _ in range(abs(offset)):
            span = _settle(name, moment, past=offset < 0, strict=True)
            moment = span.start if span else moment
        return span
    running = _settle(name, said, past=True)
    return running if running and running.end > said else name.place(_floor(said, name.period))


def _named(match: re.Match[str], said: datetime) -> _Name | None:
    return _NAMES.get(_plain(match["x"]))


def _day(match: re.Match[str], said: datetime) -> _Span | None:
    word = _plain(match["x"])
    if word not in _DAYS or (word == "hier" and (_GERMAN.search(match.string) or not _FRENCH.search(match.string))):
        return None
    offset, part = _DAYS[word]
    day = _step(_floor(said, "day"), "day", offset)
    return _part(part).place(day) if part else _whole(day, "day")


def _written(match: re.Match[str], said: datetime) -> _Name | None:
    month = _MONTH_IN_DATE.get(match["m"].lower())
    day = int(match["d"])
    return _date(month, day) if month and 1 <= day <= 31 else None


def _foreign(match: re.Match[str], said: datetime) -> _Span | None:
    """A full date whose month is named in a language that the other rules do not know ("5 мая 2019")."""
    month = None if match["m"].lower() in _MONTH_OF else _foreign_month(match["m"].lower())
    return (
        _whole(_floor(said, "year").replace(year=int(match["y"]), month=month, day=int(match["d"])), "day")
        if month
        else None
    )


@lru_cache(maxsize=256)
def _foreign_month(word: str) -> int | None:
    found = _date_parser().get_date_data(f"2 {word} 2000").date_obj
    return int(found.month) if found else None


@lru_cache(maxsize=1)
def _date_parser() -> Any:
    from dateparser.date import DateDataParser

    settings = {"TIMEZONE": "UTC", "STRICT_PARSING": True, "DATE_ORDER": "DMY", "RELATIVE_BASE": datetime(2000, 1, 1)}
    return DateDataParser(
        languages=["nl", "sv", "da", "nb", "pl", "cs", "ru", "uk", "tr"], try_previous_locales=False, settings=settings
    )


def _numeric(match: re.Match[str], said: datetime) -> _Span | None:
    first, second, year = int(match["a"]), int(match["b"]), _floor(said, "year").replace(year=int(match["y"]))
    dates = [(first, second)] if match["s"] == "." else [(first, second), (second, first)]
    days = sorted({year.replace(month=month, day=day) for day, month in dates if month <= 12 and day <= 31})
    if not days:
        return None
    unit: Precision = "day" if len(days) == 1 else "month" if days[-1] - days[0] <= timedelta(days=31) else "year"
    return _Span(days[0], _step(days[-1], "day", 1), unit)


def _iso(match: re.Match[str], said: datetime) -> _Span:
    moment = datetime.fromisoformat(match[0])
    moment = moment.replace(tzinfo=said.tzinfo) if moment.tzinfo is None else moment.astimezone(said.tzinfo)
    unit: Precision = "day" if not match["t"] else "minute" if len(match["t"]) == 5 else "second"
    return _whole(_floor(moment, unit), unit)


def _year(match: re.Match[str], said: datetime) -> _Span:
    return _whole(_floor(said, "year").replace(year=int(match["y"])), "year")


def _of_month(match: re.Match[str], said: datetime) -> _Name:
    return _Name("day", "month", lambda month: _whole(month.replace(day=int(match["d"])), "day"))


def _time_of_day(match: re.Match[str], said: datetime) -> _Name | None:
    groups = match.groupdict()
    hour, minute = int(match["h"]), groups.get("i")
    if half := groups.get("p"):
        if hour > 12:
            return None
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    return _clock(hour, int(minute) if minute else None) if hour < 24 and int(minute or 0) < 60 else None


def _cjk(match: re.Match[str], said: datetime) -> _Span | _Name | None:
    if unit := _CJK_UNITS.get(match[0]):
        return _whole(_step(_floor(said, unit[0]), unit[0], unit[1]), unit[0])
    month = _digits(match["m"])
    if month is None or not 1 <= month <= 12:
        return None
    return _month(month) if match["d"] is None else _date(month, _digits(match["d"]) or 0)


def _cjk_weekday(match: re.Match[str], said: datetime) -> _Span:
    week = _step(_floor(said, "week"), "week", {"上": -1, "先": -1, "下": 1, "来": 1}.get(match["w"], 0))
    return _weekday("一二三四五六日".find(match["d"].replace("天", "日"))).place(week)


def _digits(text: str) -> int | None:
    return int(text) if text.isdecimal() else _NUMBER_OF.get(text)


def _rule(pattern: str, read: _Read, needs: int = 0) -> tuple[re.Pattern[str], _Read, int]:
    return re.compile(pattern, re.IGNORECASE), read, needs


def _phrase(template: str) -> str:
    return template.replace(" ", r"\s{1,3}")


@lru_cache(maxsize=1)
def _rules() -> tuple[tuple[re.Pattern[str], _Read, int], ...]:
    return (*_counted_rules(), *_shifted_rules(), *_name_rules(), *_date_rules(), *_clock_rules())


def _counted_rules() -> list[tuple[re.Pattern[str], _Read, int]]:
    number = rf"(?P<n>\d{{1,3}}|{_any(_NUMBER_OF)})"
    rules = []
    for language, direction, template in _COUNTED:
        units = f"(?P<u>{_any(_indexed(_UNIT_WORDS[language]))})"
        start, gap = (r"(?<!\d)", r"\s?") if language == "zh" else (r"(?<![\w.,])", "")
        pattern = start + _phrase(template).replace("{n}", number + gap).replace("{u}", units)
        rules.append(_rule(pattern, partial(_counted, direction=direction)))
    return rules


def _shifted_rules() -> list[tuple[re.Pattern[str], _Read, int]]:
    names = _any(
        [
            word
            for word in _NAMES
            if word not in _PART_OF and word not in _indexed(_SHORT_WEEKDAYS) and word not in _VERBS
        ]
    )
    rules = []
    for language, offset, template in _SHIFTED:
        longer = [same.split(",")[:2] for same in _UNIT_WORDS[language].split("/")[_UNITS.index("week") :]]
        singular = _any([words[0] for words in longer] + (["an"] if language == "fr" else []))
        word = rf"(?P<x>{singular}|{names}|{_CAPITAL_MONTH}|{_CAPITAL_DAY})"
        rules.append(_rule(_THE + r"\b" + _phrase(template).replace("{x}", word), partial(_shifted, offset=offset)))
    return rules


def _name_rules() -> list[tuple[re.Pattern[str], _Read, int]]:
    weekdays, weekend = _any(_WEEKDAY_OF), _any(_WEEKEND.split(","))
    return [
        _rule(rf"{_THE}(?P<x>{weekdays})", _named),
        _rule(rf"\bon\s(?P<x>{_CAPITAL_DAY})", _named),
        _rule(rf"\b(?:(?:on|at|over|during|for) the|am|el|le|no|nel|il)\s{{1,3}}(?P<x>{weekend})", _named),
        _rule(rf"(?P<x>{weekend})", _named, 1),
        _rule(rf"(?P<x>{_any(_MONTH_OF)})", _named, 1),
        _rule(rf"(?P<x>{_any(_indexed(_SEASONS))})", _named, 1),
        _rule(rf"(?P<x>{_any(_PART_OF)})", _named, 2),
        _rule(rf"(?<!\bla )(?<!\bam )(?<!guten )(?<!jeden )(?P<x>{_any(_DAYS)})", _day),
        _rule(_any(_CJK_UNITS), _cjk),
        _rule(r"(?P<m>\d{1,2}|[一二三四五六七八九]|十[一二]?)月(?:(?P<d>\d{1,2})[日号號])?", _cjk),
        _rule(r"(?P<w>[上下这這本先来今])(?:个|個)?(?:周|週|星期|礼拜)の?(?P<d>[一二三四五六日天])", _cjk_weekday),
    ]


def _date_rules() -> list[tuple[re.Pattern[str], _Read, int]]:
    month = f"(?P<m>{_any([m for m in _MONTH_OF if m not in _VERBS])}|{_CAPITAL_MONTH}|(?-i:\\bMar\\b))"
    verb, ordinal = r"(?P<m>\b(?:may|march)\b)", "(?:st|nd|rd|th)"
    day, the, of = r"(?<![\d.,:/-])(?P<d>\d{1,2})", r"\.?\s{1,3}(?:the\s)?", r"\s{0,3}(?:(?:of|de|di|do)\s{1,3})?"
    not_count = rf"\b(?!:\d|[.,]\d|\s?{_COUNTS})"
    goes_on = r"(?=\s{0,3}(?:$|[.,;:!?)]|(?:at|and|i|we|of (?:this|last|next) month|because|but|so|when|with|my|he|she|they|for|to)\b))"
    return [
        _rule(
            r"(?<![\w-])\d{4}-\d\d-\d\d(?:[T ](?P<t>\d\d:\d\d(?::\d\d)?)(?:\.\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?)?(?![\w-])",
            _iso,
        ),
        _rule(r"(?<![\d./-])(?P<a>\d{1,2})(?P<s>[./-])(?P<b>\d{1,2})(?P=s)(?P<y>(?:19|20)\d\d)(?![./-]?\d)", _numeric),
        _rule(rf"{_THE}{day}(?:{ordinal}|\.|er|º)?{of}{month}", _written),
        _rule(rf"{_THE}{day}{ordinal}{of}{verb}", _written),
        _rule(rf"{_THE}{month}{the}(?P<d>\d{{1,2}}){ordinal}?{not_count}", _written),
        _rule(rf"{_THE}{verb}{the}(?P<d>\d{{1,2}}){ordinal}\b", _written),
        _rule(r"(?<![\d.])(?P<d>\d{1,2})\.?\s(?P<m>[^\W\d_]{3,12})\s(?P<y>(?:19|20)\d\d)\b", _foreign),
        _rule(rf"\bon the\s(?P<d>\d{{1,2}}){ordinal}{goes_on}", _of_month),
        _rule(rf"(?<!\bin )\bthe\s(?P<d>\d{{1,2}}){ordinal}{goes_on}", _of_month, 1),
        _rule(
            rf"(?:\b(?:the year|el año|l['’]an(?:née)?)\s)?(?<![\d$€£#.,:/-])\b(?P<y>(?:19|20)\d\d)\b(?!%|[.,:/-]\d|\s?{_COUNTS})",
            _year,
            1,
        ),
        _rule(r"(?P<y>(?:19|20)\d\d)年", _year),
    ]


def _clock_rules() -> list[tuple[re.Pattern[str], _Read, int]]:
    at = r"\b(?:at|around|by|um|gegen|a las?|à|às|alle|vers)\s{1,3}"
    hour, minute = r"(?<![\d:.,])(?P<h>\d{1,2})", r":(?P<i>\d\d)(?![\d:])(?:\s?uhr\b)?"
    full = r"\s?(?:uhr\b|h(?P<i>\d\d)?\b)"
    return [
        _rule(rf"(?:{at})?{hour}(?:[:.](?P<i>\d\d))?\s?(?P<p>[ap])(?:m\b|\.\s?m\.)", _time_of_day),
        *(_rule(at + hour + end, _time_of_day) for end in (minute, full)),
        *(_rule(hour + end, _time_of_day, 2) for end in (minute, full)),
        _rule(rf"(?:{at})?\b(?:noon|midday)\b", lambda match, said: _clock(12, None)),
    ]
