"""The words that name times, in English, German, Spanish, French, Portuguese, Italian, Chinese and Japanese.

In the tables "/" parts what is counted on, and "," the words for one and the same.
"""

import re

from sharpwave.memory.records import Precision


def plain(words: str) -> str:
    """Words as the tables write them: lower case, single spaces, straight apostrophes."""
    return re.sub(r"\s+", " ", words.lower().replace("’", "'"))


def _indexed(table: str, first: int = 1) -> dict[str, int]:
    return {word.lower(): index for index, same in enumerate(table.split("/"), first) for word in same.split(",")}


# fmt: off
UNITS: tuple[Precision, ...] = ("second", "minute", "hour", "day", "week", "month", "year")
"""Units that are counted, in the order of `UNIT_WORDS`."""
UNIT_WORDS = {
    "en": "second,seconds,sec,secs/minute,minutes,min,mins/hour,hours,hr,hrs/day,days/week,weeks/month,months/year,years,yr,yrs",
    "de": "Sekunde,Sekunden/Minute,Minuten/Stunde,Stunden/Tag,Tage,Tagen/Woche,Wochen/Monat,Monate,Monaten/Jahr,Jahre,Jahren",
    "es": "segundo,segundos/minuto,minutos/hora,horas/día,días,dia,dias/semana,semanas/mes,meses/año,años",
    "fr": "seconde,secondes/minute,minutes/heure,heures/jour,jours/semaine,semaines/mois/année,an,ans,années",
    "pt": "segundo,segundos/minuto,minutos/hora,horas/dia,dias/semana,semanas/mês,mes,meses/ano,anos",
    "it": "secondo,secondi/minuto,minuti/ora,ore/giorno,giorni/settimana,settimane/mese,mesi/anno,anni",
    "zh": "秒钟,秒/分钟,分鐘,分/个小时,小时,小時,時間/天,日/个星期,星期,週間,周,週/个月,個月,か月,ヶ月,カ月,ヵ月/年",
}
"""Words for the units by language, the singular first; "zh" is Chinese and Japanese."""
UNIT_OF = {word: UNITS[index] for table in UNIT_WORDS.values() for word, index in _indexed(table, 0).items()}
"""Unit by word."""
NUMBER_OF = _indexed(
    "a few,few,several,some,ein paar,einigen,wenigen,unos,unas,algunos,algunas,quelques,alguns,algumas,uns,umas,qualche,alcuni,alcune,几,幾,数"
    "/a,an,one,ein,eine,einem,einer,un,una,uno,une,um,uma,一/two,a couple of,couple of,zwei,dos,deux,dois,duas,due,二,两,兩"
    "/three,drei,tres,trois,três,tre,三/four,vier,cuatro,quatre,quatro,quattro,四/five,fünf,cinco,cinq,cinque,五"
    "/six,sechs,seis,sei,六/seven,sieben,siete,sept,sete,sette,七/eight,acht,ocho,huit,oito,otto,八"
    "/nine,neun,nueve,neuf,nove,九/ten,zehn,diez,dix,dez,dieci,十/eleven,elf,once,onze,undici,十一/twelve,zwölf,doce,douze,doze,dodici,十二",
    first=0,
)
"""Number by word; 0 is "a few"."""
MONTH_OF = _indexed(
    "january,jan,januar,jänner,enero,janvier,janeiro,gennaio/february,feb,februar,febrero,février,fevereiro,febbraio"
    "/march,märz,marzo,mars,março/april,apr,abril,avril,aprile/may,mai,mayo,maio,maggio/june,jun,juni,junio,juin,junho,giugno"
    "/july,jul,juli,julio,juillet,julho,luglio/august,aug,agosto,août/september,sept,sep,septiembre,septembre,setembro,settembre"
    "/october,oct,oktober,okt,octubre,octobre,outubro,ottobre/november,nov,noviembre,novembre,novembro"
    "/december,dec,dezember,dez,diciembre,décembre,dezembro,dicembre"
)
"""Month, 1 to 12, by name."""
VERBS = ("may", "march")
"""Months that, in small letters and without "in" or the like, are verbs."""
WEEKDAY_OF = _indexed(
    "monday,montag,lunes,lundi,segunda-feira,lunedì,周一,週一,星期一,礼拜一,月曜日,月曜/tuesday,dienstag,martes,mardi,terça-feira,martedì,周二,週二,星期二,礼拜二,火曜日,火曜"
    "/wednesday,mittwoch,miércoles,mercredi,quarta-feira,mercoledì,周三,週三,星期三,礼拜三,水曜日,水曜/thursday,donnerstag,jueves,jeudi,quinta-feira,giovedì,周四,週四,星期四,礼拜四,木曜日,木曜"
    "/friday,freitag,viernes,vendredi,sexta-feira,venerdì,周五,週五,星期五,礼拜五,金曜日,金曜/saturday,samstag,sábado,samedi,sabato,周六,週六,星期六,礼拜六,土曜日,土曜"
    "/sunday,sonntag,domingo,dimanche,domenica,周日,周天,週日,星期日,星期天,礼拜天,日曜日,日曜",
    first=0,
)
"""Weekday, 0 to 6 from Monday, by name."""
SHORT_WEEKDAY_OF = _indexed("Mon/Tue,Tues/Wed/Thu,Thur,Thurs/Fri/Sat/Sun", first=0)
"""Weekday by a short name, which tells one only with a capital."""
SEASON_OF = _indexed(
    "spring,frühling,frühjahr,primavera,printemps/summer,sommer,verano,été,verão/autumn,fall,herbst,otoño,automne,outono,autunno/winter,invierno,hiver,inverno"
)
"""Season, 1 to 4 from spring, by name."""
WEEKENDS = "weekend,week-end,wochenende,fin de semana,fim de semana,fine settimana,周末,週末".split(",")
"""Words for the weekend."""
MORNING, AFTERNOON, EVENING, NIGHT = range(1, 5)
PART_OF = _indexed(
    "morning,vormittag,früh,mañana,matin,manhã,mattina/afternoon,nachmittag,après-midi,tarde,pomeriggio"
    "/evening,abend,soir,sera/night,nacht,noche,nuit,noite,notte"
)
"""Part of the day, `MORNING` to `NIGHT`, by name."""
DAY_OF = {
    phrase: (offset, part)
    for offset, part, phrases in (
        (-2, 0, "the day before yesterday,day before yesterday,vorgestern,anteayer,antes de ayer,antier,avant-hier,anteontem,l'altro ieri,前天,一昨日"),
        (-1, 0, "yesterday,gestern,ayer,hier,ontem,ieri,昨天,昨日"),
        (0, 0, "today,heute,hoy,aujourd'hui,hoje,oggi,今天,今日"),
        (1, 0, "tomorrow,morgen,mañana,demain,amanhã,domani,明天,明日"),
        (2, 0, "the day after tomorrow,day after tomorrow,übermorgen,pasado mañana,après-demain,depois de amanhã,dopodomani,后天,後天,明後日"),
        (-1, MORNING, "gestern morgen"), (-1, NIGHT, "last night,anoche,昨晚,昨夜"), (1, MORNING, "morgen früh"),
        (0, MORNING, "this morning,heute morgen,heute früh,esta mañana,ce matin,esta manhã,stamattina,今早,今朝"),
        (0, AFTERNOON, "this afternoon,esta tarde,cet après-midi"),
        (0, EVENING, "this evening,tonight,heute abend,heute nacht,esta noche,ce soir,esta noite,stasera,今晚,今晩"),
    )
    for phrase in phrases.split(",")
}
"""Days from today, and the part of that day (0: all of it), by phrase."""
_CJK_UNITS: tuple[tuple[Precision, int, str], ...] = (
    ("week", -1, "上周,上週,上个星期,上星期,上个礼拜,先週"), ("week", 0, "这周,本周,这个星期,今週"), ("week", 1, "下周,下週,下个星期,下星期,来週"),
    ("month", -1, "上个月,上個月,上月,先月"), ("month", 0, "这个月,本月,今月"), ("month", 1, "下个月,下個月,下月,来月"),
    ("year", -2, "前年,一昨年"), ("year", -1, "去年,昨年"), ("year", 0, "今年"), ("year", 1, "明年,来年"),
)
CJK_UNIT_OF = {phrase: (unit, offset) for unit, offset, phrases in _CJK_UNITS for phrase in phrases.split(",")}
"""Unit, and how many of them from the one that is running, by Chinese or Japanese phrase."""
COUNTED = (
    ("en", "ago", "{n} {u} (?:ago|back)"), ("en", "ahead", "in {n} {u}"), ("en", "ahead", "{n} {u} from (?:now|today)"),
    ("en", "open", "(?:(?:for|over|in|during|within) )?the (?:last|past) {n} {u}"), ("en", "perfect", "for (?:about |almost |over |nearly |around |more than )?{n} {u}"), ("en", "open", "for (?:about |almost |over |nearly |around |more than )?{n} {u} now"),
    ("de", "ago", "vor {n} {u}"), ("de", "ahead", "in {n} {u}"), ("de", "open", "seit {n} {u}"),
    ("es", "open", "desde hace {n} {u}"), ("es", "open", "hace {n} {u} que"), ("es", "ago", "hace {n} {u}"), ("es", "ahead", "(?:dentro de|en) {n} {u}"),
    ("fr", "open", "il y a {n} {u} que"), ("fr", "ago", "il y a {n} {u}"), ("fr", "ahead", "dans {n} {u}"), ("fr", "open", "depuis {n} {u}"),
    ("pt", "ago", "há {n} {u}"), ("pt", "open", "há {n} {u} que"), ("pt", "ago", "{n} {u} atrás"), ("pt", "ahead", "(?:daqui a|dentro de|em) {n} {u}"),
    ("it", "ago", "{n} {u} fa"), ("it", "ahead", "(?:tra|fra) {n} {u}"), ("it", "open", "da {n} {u}"),
    ("zh", "ago", "{n}{u}(?:之前|以前|前)"), ("zh", "ahead", "{n}{u}(?:之后|以后|后|後)"),
)
"""Language, direction and phrase around a number {n} of units {u}; "perfect": open, if beside a perfect tense."""
SHIFTED = (
    ("en", -2, "(?:the )?{x} before last"), ("en", -1, "(?:last|this past|the past|the previous) {x}"), ("en", 0, "(?:this|the current) {x}"),
    ("en", 1, "(?:next|this coming|the coming|the upcoming) {x}"), ("en", 2, "(?:the )?{x} after next"),
    ("de", -2, "vorletzte[nrsm]? {x}"), ("de", -1, "(?:letzte|vorige|vergangene)[nrsm]? {x}"), ("de", 0, "diese[nrsm]? {x}"),
    ("de", 1, "(?:nächste|kommende)[nrsm]? {x}"), ("de", 2, "übernächste[nrsm]? {x}"),
    ("es", -1, "{x} pasad[oa]"), ("es", 0, "est[ea] {x}"), ("es", 1, "{x} (?:que viene|próxim[oa])"), ("es", 1, "próxim[oa] {x}"),
    ("fr", -1, "{x} (?:derni(?:er|ère)|passée?)"), ("fr", 0, "(?:ce|cet|cette) {x}"), ("fr", 1, "{x} prochaine?"),
    ("pt", -1, "{x} passad[oa]"), ("pt", 0, "n?es[ts][ea] {x}"), ("pt", 1, "{x} que vem"), ("pt", 1, "próxim[oa] {x}"),
    ("it", -1, "{x} (?:scors|passat)[oa]"), ("it", -1, "scors[oa] {x}"), ("it", 0, "quest(?:[oa] |['’]){x}"), ("it", 1, "{x} prossim[oa]"), ("it", 1, "prossim[oa] {x}"),
)
"""Language, how many from the one that is running, and phrase around a unit or a name {x}."""
# fmt: on
