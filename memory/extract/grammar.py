"""The grammar of slots: which words after a subject, or around a value, fill which attribute.

Two tables of rows (attribute, pattern, check of the value). A pattern is matched where the text starts; its group `v`
(or `w`) is the value, `t` the thing that a family of attributes is about, `k` a word for kin, `a` an animal. English.
"""

import re
from collections.abc import Callable

from sharpwave.memory.extract.values import (
    ANIMALS,
    KIN,
    is_date,
    is_job,
    is_name,
    is_nationality,
    is_place,
    is_thing,
    is_vehicle,
    is_word,
    may_be_job,
)

Check = Callable[[str], bool]
Row = tuple[str, re.Pattern[str], Check]

_BE = r"(?:am|is|are|was|were|(?:have|has|had) been|been|be)"
_HAVE = r"(?:have got|has got|have|has|had|own|owns|owned|got|am having)"
_V = r"(?P<v>.+)"
_A = r"(?:an? |the |my |our |some )?"
KIN_WORD = "|".join(sorted(KIN, key=len, reverse=True))
ANIMAL = rf"(?P<a>(?:[\w-]+ ){{0,4}}?(?:{'|'.join(sorted(ANIMALS, key=len, reverse=True))})s?)"
_CALLED = r"(?:called|named|whose name is|by the name of|name of)"
_DAYS = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekdays?|weekends?)"
_WHEN = (
    rf"(?P<v>(?:{_DAYS}|weekday|weekend)(?: (?:mornings?|afternoons?|evenings?|nights?))?(?:(?:,| and|, and| &)"
    rf" {_DAYS})*(?: at [\w:]+)?)"
)

_LANGUAGE = (
    "Arabic|Bengali|Bulgarian|Cantonese|Catalan|Chinese|Croatian|Czech|Danish|Dutch|English|Estonian|Farsi|Finnish"
    "|French|Galician|German|Greek|Gujarati"
    "|Hebrew|Hindi|Hungarian|Icelandic|Indonesian|Irish|Italian|Japanese|Korean|Latin|Latvian|Lithuanian|Malay"
    "|Mandarin|Marathi|Norwegian|Persian|Polish"
    "|Portuguese|Punjabi|Romanian|Russian|Serbian|Slovak|Slovenian|Somali|Spanish|Swahili|Swedish|Tagalog|Tamil"
    "|Telugu|Thai|Turkish|Ukrainian|Urdu"
    "|Vietnamese|Welsh|Yoruba|Zulu|Esperanto|sign language|BSL|ASL"
)

_NOT_DRUGS = frozenset(
    "train cabin line time machine magazine vaccine routine wine caffeine online one phone plane medicine zone"
    " stone drone exam program team private late climate debate date side ride guide inside outside".split()
)


def _any(value: str) -> bool:
    return True


_NO_PET = re.compile(r"(?:started|stopped|been|begun|tried|to)\b", re.IGNORECASE)


def _is_pet(value: str) -> bool:
    return not _NO_PET.match(value)


def _rows(*rows: tuple[str, str, Check]) -> tuple[Row, ...]:
    return tuple((attribute, re.compile(pattern, re.IGNORECASE), check) for attribute, pattern, check in rows)


_SERVED = r"(?:got )?(?:fish|duck|chicken|lamb|crab|turkey|goose|rabbit) (?:on|for|tonight|again|every|once|twice|pox|soup|curry|stew|pie|and chips)\b"
"""What is eaten, or an illness, by an animal's name."""


# Predicates: matched at the start of what follows the subject; adverbs are gone by then.
PREDICATES = _rows(
    ("plan", rf"(?:am|are|is) (?:planning|hoping|aiming|intending|going|about|set|due|scheduled) (?:on|to) {_V}", _any),
    ("plan", rf"(?:plan|plans|intend|intends|aim|hope|want|wants) (?:on|to) {_V}", _any),
    ("plan", r"(?:will be|will) (?P<v>(?!not\b).+)", _any),
    (
        "plan",
        (
            r"(?:am|are|is) (?P<v>(?:moving|relocating|flying|travelling|traveling|getting (?:married|divorced)"
            r"|starting|leaving|visiting) .+)"
        ),
        _any,
    ),
    (
        "plan",
        rf"(?P<v>(?:move|start|fly|leave|travel) .*\b(?:tomorrow|next \w+|on {_DAYS}|in \w+ (?:days|weeks|months)))",
        _any,
    ),
    (
        "age",
        (
            rf"(?:{_BE} )?(?:aged )?(?P<v>\d{{1,3}}(?:[ -]years?[ -]old| ?yo| ?y/o)|(?:[a-z]+ty[ -])?[a-z]+ years"
            rf" old)\b"
        ),
        _any,
    ),
    (
        "age",
        (
            r"(?:is |(?:has )?turned |turns |turn |is turning )(?P<v>(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
            r"|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen))(?=$| (?:now|today|yesterday|last|this|next|on)\b|[,.])"
        ),
        _any,
    ),
    (
        "age",
        (
            rf"(?:{_BE} (?:turning )?|turned |turns |turn )(?P<v>\d{{1,3}}|(?:twenty|thirty|forty|fifty|sixty|seventy"
            rf"|eighty)(?:-\w+)?)(?=$| (?:and|yesterday|today|last|this|in|on|next|now|with)\b|[,.])"
        ),
        _any,
    ),
    (
        "birthday",
        (
            rf"(?:{_BE} )?born (?:on|in) (?P<v>(?:the )?(?:\d|january|february|march|april|may|june|july|august"
            rf"|september|october|november|december).*)"
        ),
        is_date,
    ),
    ("origin", rf"(?:{_BE} )?(?:originally )?(?:from|born(?: and (?:raised|bred))? in|raised in) {_V}", is_place),
    (
        "origin",
        rf"(?:come|comes|came|hail|hails|grew up|spent my childhood) (?:originally )?(?:from|in) {_V}",
        is_place,
    ),
    (
        "home",
        (
            rf"(?:{_BE} |have |has )?(?:live|lives|lived|living|reside|resides|resided|residing|based|located|settled"
            rf"|settling|settle)(?: \w+)?(?: down)? (?:in|into|near|outside) {_V}"
        ),
        is_place,
    ),
    (
        "home",
        (
            rf"(?:(?:have|has) )?(?:moved|relocated|emigrated|migrated|moved house|settled|taken up residence)"
            rf"(?: (?:back|house|out|over|away|down|up|again|here|home|abroad|in|permanently|together))?(?: (?:from|of) .+?)?"
            rf" (?:to|in) {_V}"
        ),
        is_place,
    ),
    ("home", rf"(?:have |has )?left .+? and (?:moved|relocated|went) to {_V}", is_place),
    ("home", rf"calls? {_V} (?:my |our )?home", is_place),
    ("home", rf"{_HAVE} (?:an? |my |our )(?:\w+ )?(?:flat|apartment|place|house|home|studio) in {_V}", is_place),
    ("job", rf"(?:{_BE} )?(?:work|works|worked|working|employed|started|start|began) as (?:an? |the )?{_V}", _any),
    (
        "job",
        (
            rf"(?:(?:have|has) )?(?:became|become|retrained as|trained as|qualified as|hired as|promoted to|got"
            rf" promoted to|was promoted to|switched careers? to|changed careers? to) {_A}{_V}"
        ),
        may_be_job,
    ),
    (
        "job",
        (
            rf"(?:(?:have|has) )?(?:started|taken|took|accepted|got|landed|begun|began)(?: up| on)? (?:an? |my"
            rf" )?(?:new )?(?:job|position|role|career|work|post) as {_A}{_V}"
        ),
        _any,
    ),
    ("job", rf"(?:make|makes|earn|earns|made) (?:an?|my|his|her|their) living (?:as |by )?{_A}{_V}", _any),
    ("job", rf"{_BE} {_A}(?P<v>[^,]+?) (?:by (?:trade|profession|training)|for a living)", _any),
    (
        "job",
        (
            r"(?P<v>teach(?:es)? [\w ]+|run(?:s)? (?:a|my own) [\w ]+(?:business|company|shop|studio|agency|restaurant"
            r"|bakery|cafe|café)) ?.*"
        ),
        _any,
    ),
    ("employer", rf"(?:{_BE} )?(?:work|works|worked|working|employed|interning)(?: \w+)? (?:for|at|by) {_V}", is_thing),
    (
        "employer",
        (
            rf"(?:(?:have|has) )?(?:joined|started(?: (?:an? )?(?:new )?(?:job|work|working|position|role))? (?:at|for"
            rf"|with)|(?:got|found|landed) (?:a|the|my) (?:new )?job (?:at|with)) {_V}"
        ),
        is_name,
    ),
    ("employer", rf"{_BE} at {_V}", is_name),
    (
        "job",
        (
            rf"(?:work|works|worked|working|{_BE}) in (?P<v>(?:marketing|finance|sales|education|healthcare|logistics"
            rf"|insurance|hr|it|tech|construction|retail|advertising|banking|research|publishing|hospitality"
            rf"|accounting|law|human resources)\b.*)"
        ),
        _any,
    ),
    ("allergy", rf"(?:{_BE} )?(?:allergic|intolerant|sensitive) to {_V}", is_thing),
    ("allergy", rf"{_HAVE} {_A}(?:\w+ )?(?:allergy|allergies|intolerance|reaction) to {_V}", is_thing),
    (
        "allergy",
        rf"(?:{_HAVE}|suffer from|suffers from) {_A}(?P<v>[\w -]+?) (?:allergy|allergies|intolerance)",
        is_thing,
    ),
    ("allergy", rf"{_BE} (?P<v>[\w-]+)[ -]intolerant", _any),
    ("allergy", rf"(?:react|reacts|reacted) (?:badly )?to {_V}", is_thing),
    (
        "diet",
        (
            rf"(?:(?:{_BE}|went|have gone|turned|became|have become|follow|follows|eat|eats|keep|keeps)"
            rf" )?{_A}(?P<v>(?:strict |lifelong |mostly |strictly )?(?:vegan|vegetarian|veggie|pescatarian|pescetarian"
            rf"|flexitarian|halal|kosher|keto|paleo|gluten[- ]free|dairy[- ]free|plant[- ]based|low[- ]carb|sugar[-"
            rf" ]free|carnivore)(?: diet)?)\b"
        ),
        _any,
    ),
    (
        "diet",
        (
            r"(?:am back to |have (?:started|gone back to) |started )?(?:eat|eats|eating) "
            r"(?P<v>(?:meat|fish|eggs|dairy|everything)(?: and \w+)* again)\b"
        ),
        _any,
    ),
    ("commute", r"(?:commutes?|gets? to work|travels? to work|goe?s? to work) (?:by|on) (?:the |my )?(?P<v>\w+)", _any),
    (
        "commute",
        r"(?:takes?|catch|catches|rides?|gets?) (?:the |a |my )?(?P<v>\w+) (?:in )?to (?:work|the office)\b",
        _any,
    ),
    (
        "commute",
        r"(?P<v>cycles?|bikes?|walks?|drives?|runs?|carpools?|scoots?)(?: in)? to (?:work|the office|my office)\b",
        _any,
    ),
    ("weight", rf"(?:weighs?|{_BE} (?:down|up) to) (?P<v>\d+(?:\.\d)? ?(?:kilos?|kg|pounds|lbs?|stone))\b", _any),
    (
        "workplace",
        rf"(?:works?|{_BE} back|{_BE} working) (?P<v>remotely|from home|hybrid|(?:in|at) the office|on[- ]site)\b",
        _any,
    ),
    ("diet", rf"(?:{_BE} on|follow|follows|stick to|sticks to) {_A}(?P<v>[\w -]+ diet)", _any),
    (
        "avoids",
        (
            rf"(?:(?:(?:have|has|need|needs) to|must|should) )?(?:avoid|avoids|stay away from|steer clear of|keep off"
            rf"|keep away from) {_V}"
        ),
        is_thing,
    ),
    (
        "handedness",
        rf"(?:{_BE} )?(?P<v>left-handed|right-handed|ambidextrous|left handed|right handed|a lefty|a southpaw)",
        _any,
    ),
    ("condition", rf"(?:{_BE} |got )?diagnosed (?:with|as) {_V}", _any),
    ("condition", rf"(?:suffer|suffers|suffering|suffered) from {_V}", _any),
    (
        "condition",
        (
            rf"(?:{_HAVE}|live with|lives with|get|gets) {_A}(?P<v>(?:[\w-]+ ){{0,3}}?(?:asthma|diabetes|epilepsy"
            rf"|migraines?|adhd|add|autism|coeliac|celiac|coeliac disease|arthritis|eczema|depression|anxiety|insomnia"
            rf"|hypertension|blood pressure|heart (?:condition|problem|murmur)|an?emia|dyslexia|tinnitus|vertigo"
            rf"|psoriasis|scoliosis|hay ?fever|\w+itis|\w+osis|\w+pathy|\w+aemia|\w+emia|\w+ syndrome|\w+ disorder|\w+"
            rf" disease|\w+ condition))\b"
        ),
        _any,
    ),
    (
        "condition",
        (
            rf"{_BE} {_A}(?P<v>(?:type [12] )?(?:diabetic|asthmatic|epileptic|coeliac|celiac|colou?r[- ]?blind"
            rf"|dyslexic|autistic|deaf|blind|pregnant|hypertensive|an?emic))\b"
        ),
        _any,
    ),
    (
        "medication",
        (
            r"(?:take|takes|taking|am taking|is taking|am on|is on|use|uses|was prescribed|got prescribed|inject"
            r"|injects) (?P<v>(?:\d+ ?m[cg]g? (?:of )?)?\w+(?:in|ol|ine|ide|ate|pril|one|ium|am|pam|statin|tablets"
            r"|pills|antibiotics|inhaler|insulin))(?= |$)(?! (?:class|lessons|photo))"
        ),
        lambda v: len(v) > 6 and v.split()[-1] not in _NOT_DRUGS,
    ),
    (
        "medication",
        (
            r"(?:take|takes|taking|am taking|is taking|am on|is on) (?P<v>[\w -]+?) (?:for my|for his|for her|tablets"
            r"|pills|daily|every day|twice a day)\b"
        ),
        lambda v: not re.search(r"\b(?:bus|train|lessons?|class|classes|walk|photos?|dog)\b", v),
    ),
    (
        "pet",
        (
            rf"(?:(?:have|has) )?(?:{_HAVE}|keep|keeps|adopted|rescued|bought|foster|fosters|look after|looks after"
            rf"|welcomed|picked up|share my home with|live with) (?:an? |the |my |two |three |four |five |\d+ |some "
            rf"|our |another |one )?(?:\w+ )?{ANIMAL}(?: \w+)??,? {_CALLED} (?P<v>[\w'-]+(?:(?:,| and|, and)"
            rf" (?-i:[A-Z])[\w'-]+)*)"
        ),
        _any,
    ),
    (
        "pet",
        (
            rf"(?:(?:have|has) )?(?:{_HAVE}|keep|keeps|adopted|rescued|bought|foster|fosters|look after|looks after"
            rf"|welcomed|share my home with|live with) (?!{_SERVED})(?P<v>(?:an? |my |our |two |three |four |five |\d+ |some "
            rf"|another |one )?{ANIMAL}(?:(?:,| and|, and) (?:an? |two |three |\d+"
            rf" )?(?:{'|'.join(sorted(ANIMALS, key=len, reverse=True))})s?)*)(?![\w-])(?! (?:allergy|food|show|video"
            rf"|park|walker|person|lover))"
        ),
        _is_pet,
    ),
    ("spouse", rf"(?:{_BE} |got )?married to {_V}", is_name),
    ("spouse", rf"(?:have |has )?(?:married|tied the knot with) {_V}", is_name),
    (
        "partner",
        (
            rf"(?:{_BE} |have started |started )?(?:dating|seeing|going out with|together with|in a relationship with"
            rf"|engaged to|with|involved with)"
            rf"(?: (?:an? |this )?(?:\w+ )?(?:guy|girl|man|woman|bloke|lad|lass|boy|person|someone|somebody|chap) (?:called|named))? {_V}"
        ),
        is_name,
    ),
    ("partner", rf"share my life with {_V}", is_name),
    (
        "marital_status",
        (
            rf"(?:{_BE}|got) (?P<v>(?:happily |newly |recently )?(?:married|single|divorced|engaged|widowed|a widower"
            rf"|a widow|separated))(?! to\b)"
        ),
        _any,
    ),
    (
        "kin",
        (
            rf"(?:{_HAVE}) (?P<v>(?:an? |one |two |three |four |five |\d+ )?(?!no )(?:[\w-]+["
            rf" -]){{0,2}}?(?P<k>{KIN_WORD})s?(?: {_CALLED} [\w'-]+(?:(?:,| and|, and) (?-i:[A-Z])[\w'-]+)*)?)"
        ),
        _any,
    ),
    ("kin", rf"{_BE} (?P<v>(?:an? |the )?(?:\w+ )?(?P<k>(?:mother|father|mum|mom|dad|parent)) (?:of|to) .+)", _any),
    (
        "language",
        (
            rf"(?:can )?(?:speak|speaks|spoke|understand|know|knows|(?:have )?mastered|learned|learnt|studied|get by"
            rf" in|gets by in|hold a conversation in|converse in) (?P<v>(?:fluent |some |a (?:little|bit of) |basic "
            rf"|both )?(?:{_LANGUAGE})(?:(?:,| and|, and) (?:{_LANGUAGE}))*)\b"
        ),
        _any,
    ),
    ("language", rf"(?:{_BE} )?(?:fluent|bilingual|conversational|proficient) in {_V}", _any),
    ("language", rf"{_BE} (?:learning|studying|taking|practising|practicing) {_A}(?P<v>(?:{_LANGUAGE}))\b", _any),
    (
        "language",
        rf"(?:take|takes|started|started learning|have started learning|learn|learns) (?P<v>(?:{_LANGUAGE}))\b",
        _any,
    ),
    (
        "vehicle",
        (
            rf"(?:drive|drives|drove|ride|rides|am driving|get around in|gets around in|commute in|cycle on) (?:around"
            rf" )?(?:in )?(?:an? |my |our |his |her )(?:new |old |used |second-hand |little )?{_V}"
        ),
        is_thing,
    ),
    (
        "vehicle",
        (
            rf"(?:(?:have|has) )?(?:{_HAVE}|bought|purchased|leased|upgraded to|switched to|traded .+ for|swapped .+"
            rf" for|replaced .+ with|gone from .+ to) {_A}(?:new |old |used |second-hand )?(?:\w+ )?(?:car|motorbike"
            rf"|motorcycle|van|truck|scooter|bike), (?:an? )?{_V}"
        ),
        _any,
    ),
    (
        "vehicle",
        (
            rf"(?:(?:have|has) )?(?:{_HAVE}|bought|purchased|leased|upgraded to|switched to|(?:traded|swapped|sold) .+"
            rf" (?:for|and (?:got|bought))|replaced .+ with|gone from .+ to) (?P<v>(?:an? |the )?.+)"
        ),
        is_vehicle,
    ),
    (
        "studies",
        (
            rf"(?:{_BE} )?(?:doing|have|has|got|finishing|did|pursuing|completing|working towards|started) (?:an? |my "
            rf"|his |her )(?:\w+ )?(?:phd|doctorate|master's|masters|master|bachelor's|bachelors|degree|msc|ba|bsc|ma"
            rf"|mba)(?: degree)? (?:in|on) {_V}"
        ),
        _any,
    ),
    ("studies", rf"(?:{_BE} )?(?:majoring|majored|major) in {_V}", _any),
    ("studies", rf"(?:{_BE} )?(?:study|studies|studied|studying|reading for) (?!at\b|in\b|hard|for\b){_V}", is_thing),
    (
        "school",
        (
            rf"(?:{_BE} )?(?:study|studies|studied|studying|enrolled|graduated|graduate|a student|a phd student|a"
            rf" postdoc|a freshman|a senior|a junior)(?: [\w ]+?)? (?:at|from) {_V}"
        ),
        is_thing,
    ),
    (
        "school",
        (
            r"(?:attend|attends|attended|go to|goes to|went to) (?P<v>(?:[\w'.-]+ ){0,3}(?:university|college|school"
            r"|academy|institute|polytechnic)(?: of (?-i:[A-Z])\w+)?)"
        ),
        _any,
    ),
    (
        "schedule",
        rf"(?:moved|switched|rescheduled|shifted|changed) (?:my |the |our )?(?P<t>.+?)(?: from .+?)? to {_WHEN}",
        _any,
    ),
    (
        "schedule",
        (
            rf"(?P<t>.+?) (?:on (?=\w+s\b|(?:weekday|weekend|\w+day) \w+s\b)|every ){_WHEN}(?: for .+| with .+|"
            rf" instead of .+)?$"
        ),
        _any,
    ),
    (
        "own",
        (
            rf"(?:(?:have|has) )?(?:(?:changed|raised|lowered|increased|reduced|cut|set|updated|upgraded|bumped|renamed) (?:my|our|the)|moved (?:my|our)) (?P<t>[\w"
            rf" ]+?)(?: from .+?)?(?: up| down)? to {_V}"
        ),
        _any,
    ),
    (
        "dislikes",
        rf"(?:hate|hates|hated|dislike|dislikes|loathe|loathes|detest|detests|despise|despises|resent|abhor) {_V}",
        is_thing,
    ),
    ("dislikes", rf"(?:can|could) not (?:stand|bear|abide|tolerate|cope with) {_V}", is_thing),
    ("dislikes", rf"(?:do|does|did) not (?:much )?(?:like|enjoy|love|care for|fancy) {_V}", is_thing),
    (
        "dislikes",
        (
            rf"{_BE} not (?:an? |much of an? )?(?:(?:big|huge|great|massive) )?(?:fan of|into|keen on|fond of|one for)"
            rf" {_V}"
        ),
        is_thing,
    ),
    (
        "dislikes",
        rf"{_BE} (?:sick of|tired of|fed up with|over(?! the moon)|scared of|afraid of|terrified of) {_V}",
        is_thing,
    ),
    ("dislikes", rf"(?:have|has) (?:gone off|grown tired of|come to hate|grown to hate) {_V}", is_thing),
    ("dislikes", r"(?P<v>.+) (?:is|are) not (?:my (?:thing|cup of tea|jam|favourite)|for me)\b", is_thing),
    (
        "avoids",
        (
            rf"(?:(?:do|does|will|did) not (?:eat|drink|touch|consume|tolerate|digest)|(?:can|must|should|may) not"
            rf" (?:eat|drink|have|touch|consume|tolerate|digest)) {_V}"
        ),
        is_thing,
    ),
    ("avoids", rf"never (?:eat|drink|touch)s? {_V}", is_thing),
    (
        "hobby",
        (
            r"(?:(?:have|has) )?(?:taken up|took up|picked up|got into|started doing|started playing|got hooked on"
            r"|started) (?P<v>(?!an?\b|my\b|the\b|work|to\b|at\b|our\b).+)"
        ),
        is_thing,
    ),
    ("hobby", rf"{_BE} (?:into|keen on|hooked on|big on|an avid|a keen|a passionate|an amateur) {_V}", is_thing),
    (
        "hobby",
        (
            r"(?:do|does|practi[sc]e|practi[sc]es|play|plays|played|playing|am playing|can play|go|goes) (?P<v>(?!to\b"
            r"|not\b|with\b|the role|back|out|home|for\b|on\b|by\b|it\b|my best|what|that|this|well|all\b|most\b|every"
            r"|your|so\b|over|through).+)"
        ),
        is_thing,
    ),
    ("hobby", r"(?:take|takes|have|has) (?:an? |my )?(?P<v>[\w -]+?) (?:lessons?|classes)\b", is_thing),
    ("reading", rf"{_BE} (?:reading|re-reading|in the middle of|halfway through) {_V}", is_thing),
    ("hobby", r"(?:like|love|enjoy|spend) (?P<v>.+?) (?:in my (?:free|spare) time|as a hobby|for fun)", is_thing),
    (
        "hobby",
        (
            r"spend (?:my|most|all|a lot)[\w ]*? (?:evenings|weekends|time|free time|mornings|sundays|saturdays)?"
            r" ?(?:on |doing )?(?P<v>\w+ing\b.*|(?<=on ).+)"
        ),
        is_thing,
    ),
    (
        "likes",
        (
            rf"(?:love|loves|loved|like|likes|liked|enjoy|enjoys|enjoyed|adore|adores|prefer|prefers|fancy|treasure"
            rf"|cherish)(?: to)? {_V}"
        ),
        is_thing,
    ),
    (
        "likes",
        (
            rf"{_BE} (?:keen on|fond of|crazy about|mad about|passionate about|obsessed with|addicted to|in love with"
            rf"|partial to|an? (?:big |huge |massive |great |lifelong |die-hard )*fan of|an? (?:big |huge )?lover of)"
            rf" {_V}"
        ),
        is_thing,
    ),
    (
        "likes",
        (
            rf"(?:have|has) (?:a soft spot|a weakness|a passion|a thing|a sweet tooth) for {_V}|(?:have|has) (?:come"
            rf"|grown) to (?:love|like) (?P<w>.+)"
        ),
        is_thing,
    ),
    (
        "likes",
        rf"(?:always )?(?:order|orders|go for|goes for|can not (?:start the day|live|do) without) {_V}",
        is_thing,
    ),
    (
        "project",
        (
            rf"(?:{_BE} |have been )?(?:working on|building|writing|developing|maintaining|renovating|restoring"
            rf"|designing|training for|organising|organizing) {_V}"
        ),
        is_thing,
    ),
    (
        "possession",
        (
            rf"(?:(?:have|has) )?(?:own|owns|bought|purchased|collect|collects|acquired|inherited) (?:an? |the |my "
            rf"|some |two |three |\d+ )?{_V}"
        ),
        is_thing,
    ),
    ("nationality", r"(?:am|is|are) (?:half[ -])?(?P<v>(?-i:[A-Z])[a-z]+)(?=$|[,.]| (?:but|and|by)\b)", is_nationality),
    ("name", r"is (?P<v>(?-i:[A-Z])[a-z]+)(?=$|[,.])", is_name),
    ("job", rf"{_BE} (?:an? |the )(?P<v>[^,]+)", is_job),
    (
        "job",
        (
            rf"(?:{_BE} )?(?:a |an )?(?P<v>(?:retired|unemployed|self-employed|a freelancer|freelance|between"
            rf" jobs)\b(?: \w+)?)"
        ),
        _any,
    ),
)

# Whole clauses whose subject is not a person: "my favourite colour is …", "… is where I live", "the deadline is …".
CLAUSES = _rows(
    ("name", rf"my (?:first |full |real |given |preferred )?name is {_V}", _any),
    (
        "name",
        (
            rf"(?:I am called|I go by|(?:just |please |you can |people |everyone |everybody |friends |my friends |most"
            rf" people )*calls? me|this is(?= (?-i:[A-Z])\w+ (?:speaking|here))) {_V}"
        ),
        _any,
    ),
    ("name", r"I am (?P<v>(?-i:[A-Z])[a-z]+(?: (?-i:[A-Z])[a-z]+)?)(?=$|,)", lambda v: not is_nationality(v)),
    ("nationality", r"I am (?:half )?(?P<v>(?-i:[A-Z])[a-z]+)(?=$|[,.]| (?:but|and|by)\b)", is_nationality),
    ("birthday", rf"my (?:birthday|date of birth) (?:is|falls)(?: on)? {_V}", is_date),
    ("birthday", rf"I (?:celebrate|have) my birthday (?:on|in) {_V}", is_date),
    ("origin", rf"my home ?town is {_V}", is_place),
    (
        "home",
        (
            rf"(?:my (?:new )?(?:home|place|flat|house|apartment|address|base)|home|the (?:city|town|place) I (?:call"
            rf" home|live in))(?: for me| now)? is (?:in )?{_V}"
        ),
        is_place,
    ),
    (
        "home",
        (
            rf"{_V} (?:is|has been) (?:where I live|my (?:new )?home|home(?: for me| to me| for (?:ages|years))?|my"
            rf" city|the (?:city|town|place) I (?:call home|live in))\b"
        ),
        is_place,
    ),
    (
        "job",
        (
            rf"my (?:new |current |day )*(?:job|profession|occupation|role|title|job title|position|line of work) is"
            rf" (?:being |that of )?{_A}{_V}"
        ),
        _any,
    ),
    ("job", rf"(?:for work|for a living) I (?:am|do) {_A}{_V}", _any),
    ("employer", rf"my (?:new |current )?(?:employer|company) is (?:called |named )?{_V}", is_thing),
    ("phone", rf"my (?:new |mobile |cell |phone |work |telephone )*number is {_V}", is_date),
    ("email", rf"my (?:new |work |private |personal )*e-?mail(?: address)? is {_V}", _any),
    ("address", rf"my (?:new |home |postal |mailing )*address is {_V}", is_date),
    ("spouse", rf"my (?:late )?(?:wife|husband|spouse|hubby)(?:'s name is| is (?:called |named )?) ?{_V}", is_name),
    ("spouse", rf"my (?:late )?(?:wife|husband|spouse|hubby)(?:'s name is| is (?:called|named)) {_V}", is_word),
    (
        "partner",
        (
            rf"my (?:new )?(?:partner|girlfriend|boyfriend|fianc[eé]e?|significant other|other half|better half)(?:'s"
            rf" name is| is (?:called |named )?) ?{_V}"
        ),
        is_name,
    ),
    ("spouse", rf"my (?:late )?(?:wife|husband|spouse|hubby)(?:'s name is| is (?:called|named)) {_V}", is_word),
    (
        "partner",
        rf"my (?:new )?(?:partner|girlfriend|boyfriend|gf|bf|fianc[eé]e?)(?:'s name is| is (?:called|named)) {_V}",
        is_word,
    ),
    (
        "partner",
        (
            rf"{_V} (?:and I are (?:a couple|dating|together|engaged)|is my (?:new )?(?:partner|girlfriend|boyfriend"
            rf"|fianc[eé]e?))"
        ),
        is_name,
    ),
    ("spouse", rf"{_V} (?:and I are married|is my (?:wife|husband))", is_name),
    ("pet", rf"(?:my|our) {ANIMAL}(?:'s name is| is (?:called |named )| goes by| answers to) ?{_V}", _any),
    ("pet", rf"(?:my|our) {ANIMAL} is (?=(?-i:[A-Z])){_V}", is_name),
    ("pet", rf"(?:my|our) pet is {_A}(?P<v>{ANIMAL})|my household includes {_A}(?P<w>.+)", _any),
    (
        "vehicle",
        rf"(?:my|our) (?:new |current )?(?:car|ride|motorbike|motorcycle|van|truck)(?: I use)? is {_A}{_V}",
        is_name,
    ),
    (
        "allergy",
        (
            rf"{_V} (?:gives? me (?:hives|a rash|an allergic reaction|an allergy|anaphyla\w+)|sets? off my"
            rf" (?:allergies|allergy|asthma)|triggers? my (?:allergies|allergy)|makes? me (?:\w+ )?(?:ill|sick|itch\w*"
            rf"|sneeze|break out))"
        ),
        is_thing,
    ),
    (
        "allergy",
        rf"(?:I can not be around|my allergy is to|I break out in hives from|I get (?:hives|a rash) from) {_V}",
        is_thing,
    ),
    (
        "allergy",
        r"my (?P<v>[\w-]+) allergy\b",
        lambda v: v.casefold() not in {"main", "only", "worst", "new", "severe"},
    ),
    (
        "favourite",
        (
            rf"(?:my|our) (?:all-time |absolute |new )*(?:favourite|go-to|preferred) (?P<t>[\w -]+?) (?:of all time "
            rf"|is |are )+(?:now )?{_V}"
        ),
        _any,
    ),
    ("favourite", rf"my (?P<t>[\w]+) of choice is {_V}", _any),
    (
        "favourite",
        rf"{_V} (?:is|are) my (?:all-time |absolute |new )*(?:favourite|go-to|preferred) (?P<t>[\w -]+)",
        is_thing,
    ),
    (
        "likes",
        rf"{_V} (?:is|are) my (?:(?:all-time |absolute )?favourites?|passion|thing|guilty pleasure|jam)\b",
        is_thing,
    ),
    (
        "likes",
        (
            rf"(?:my idea of (?:heaven|bliss|fun) is|nothing (?:beats|tops)|give me|my (?:great |biggest |big )?passions? (?:is|are)|I can not get"
            rf" enough(?: of)?|I would take) {_V}"
        ),
        is_thing,
    ),
    ("likes", rf"{_V} (?:is|are) (?:something |things? |\w+ )?(?:I|that I) (?:love|like|enjoy|adore)", is_thing),
    (
        "dislikes",
        rf"{_V} (?:is|are) not (?:my (?:thing|cup of tea|jam|favourite)|for me|something I (?:like|enjoy))",
        is_thing,
    ),
    (
        "dislikes",
        (
            rf"{_V} (?:is|are) (?:my idea of (?:hell|a nightmare|torture)|the bane of my life)|(?P<w>.+) (?:drives? me (?:crazy|mad|nuts|up the wall)|freaks? me out|scares? me|terrif(?:y|ies) me|bores?"
            rf" me|annoys? me|grosses? me out)"
        ),
        is_thing,
    ),
    ("avoids", rf"{_V} (?:is|are) (?:something |things )?I do not (?:eat|drink|touch)", is_thing),
    (
        "own_new",
        r"(?:(?:I|we) (?:have|have got|got)|there is) a new (?P<t>\w+)(?:,| called| named)(?: an?)? (?P<v>(?-i:[A-Z]).+)",
        is_name,
    ),
    ("pet", rf"(?P<v>\w+) is (?:my|our) {ANIMAL}\b", is_word),
    ("kin_name", rf"(?P<v>(?-i:[A-Z])\w+) is (?:my|our) (?:new )?(?P<k>{KIN_WORD})\b", is_name),
    (
        "kin_name",
        (
            r"(?:I|we) (?:have|have got|got) a new (?P<k>boss|manager|supervisor|mentor|assistant|teacher)"
            r"(?:,| called| named) (?P<v>(?-i:[A-Z])[\w-]+)"
        ),
        is_name,
    ),
    (
        "hobby",
        (
            rf"(?:one of my hobbies|my (?:\w+ )?hobb(?:y|ies)|a (?:hobby|pastime) of mine|my (?:favourite )?pastime)"
            rf" (?:is|are|includes?) {_V}"
        ),
        is_thing,
    ),
    ("hobby", rf"in my (?:free|spare) time,? I (?:like to |like |love to |love |enjoy |do |play |go )?{_V}", is_thing),
    ("hobby", rf"{_V} is (?:something I do for fun|my hobby|how I relax)", is_thing),
    ("language", rf"my (?:native|first|second|mother) (?:language|tongue) is {_V}", _any),
    (
        "language",
        (
            rf"(?P<v>(?:{_LANGUAGE})) is (?:a language I speak|my (?:native|first|second|mother) (?:language|tongue))"
            rf"|my (?P<w>(?:{_LANGUAGE})) is (?!teacher)"
        ),
        _any,
    ),
    (
        "deadline",
        (
            rf"(?:my |our |the )?(?P<t>[\w' -]+?)(?:'s)? deadline (?:is|was|has been|got) (?:on |now |at |moved to "
            rf"|extended to |pushed to )*{_V}"
        ),
        is_date,
    ),
    (
        "deadline",
        rf"(?:my |our |the )?deadline (?:for|of) (?:my |our |the )?(?P<t>[\w' -]+?) is (?:on |now |at )*{_V}",
        is_date,
    ),
    ("deadline", rf"(?:my |our |the )(?P<t>[\w' -]+?) (?:is|are) due (?:on |by |in |at )?{_V}", is_date),
    (
        "schedule",
        (
            rf"(?:my|our) (?P<t>[\w' -]+?) (?:days?|slot|time|class|classes|lessons?) (?:(?:has|have) )?(?:is|are"
            rf"|changed|shifted|moved|switched) (?:on |every |to )?{_WHEN}"
        ),
        _any,
    ),
    (
        "date",
        (
            rf"(?:my|our|the) (?P<t>[\w' -]+?) (?:is|are|will be|takes place|starts|happens|(?:has been|got|was|is)"
            rf" (?:moved|pushed|rescheduled|scheduled|booked|set|postponed)(?: to| for)?|moved to) (?:on |at |in |for"
            rf" )?(?P<v>(?:\d{{1,2}}(?::\d\d| ?[ap]m\b)|\d{{1,2}} (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
            rf"|(?:next |this )?{_DAYS}|(?:the )?\d{{1,2}}(?:st|nd|rd|th)|tomorrow|january|february|march|april|may"
            rf"|june|july|august|september|october|november|december).*)"
        ),
        is_date,
    ),
    (
        "own",
        r"(?:my|our) (?:new |current )*(?P<t>[\w]+(?: [\w]+)?) is (?:an? |called |named )?(?P<v>(?-i:[A-Z0-9]).*)",
        lambda v: is_name(v) and len(v.split()) <= 4 and not is_nationality(v),
    ),
    ("own", r"(?P<v>(?:Dr|Mr|Ms|Mrs) .+|\S+(?: \S+)?) is (?:my|our) (?:new |current )*(?P<t>\w+)$", is_name),
    (
        "own",
        (
            rf"(?:my|our) (?P<t>(?:[\w-]+ )?(?:flat|size|shoe size|number|code|type|blood type|id|pin|plan|time ?zone"
            rf"|star sign|zodiac|height|weight|salary|budget|locker|room|postcode|zip(?: code)?|username|handle"
            rf"|nickname|title|team|dentist|gp|gym|bank|stop|alma mater|pronouns|surname|[\w]+ name|name day"
            rf"|anniversary|\w+ size|\w+ number|\w+ type)) (?:is|are) (?!not\b){_V}"
        ),
        _any,
    ),
)
