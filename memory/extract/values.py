"""The values of slots: where a value ends, and whether it looks like a name, a place, a job, a thing.

English. No gazetteers beyond countries: what a value is follows from its form and from the words around it.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

_KIN_WORDS = {
    "sibling": "sister brother sibling twin stepsister stepbrother half-sister half-brother",
    "parent": "mother father mum mom mama dad papa parent stepmother stepfather stepmom stepdad",
    "child": "son daughter kid child children baby toddler stepson stepdaughter boy girl newborn",
    "spouse": "wife husband spouse hubby",
    "partner": "partner girlfriend boyfriend fiancé fiancée fiance fiancee gf bf",
    "friend": "friend bestie mate buddy pal flatmate roommate housemate neighbour neighbor ex ex-wife ex-husband"
    " ex-girlfriend ex-boyfriend",
    "colleague": "colleague coworker co-worker boss manager teammate supervisor mentor assistant cofounder co-founder"
    " intern student teacher",
    "relative": "grandmother grandfather grandma grandpa gran nan granny grandad granddad grandson granddaughter"
    " grandchild aunt auntie uncle"
    " cousin niece nephew mother-in-law father-in-law sister-in-law brother-in-law son-in-law daughter-in-law"
    " godmother godfather godson",
}
KIN: Mapping[str, str] = MappingProxyType({word: kind for kind, words in _KIN_WORDS.items() for word in words.split()})
"""Words for people tied to the user, and the attribute that each stands for."""

ANIMALS = frozenset(
    "dog cat puppy pup kitten parrot hamster gerbil rabbit bunny tortoise turtle goldfish ferret gecko snake"
    " lizard pony horse hedgehog canary"
    " budgie parakeet cockatiel guinea-pig chinchilla axolotl beagle poodle labrador lab retriever terrier corgi"
    " husky dachshund spaniel collie"
    " bulldog pug chihuahua greyhound whippet schnauzer dalmatian rottweiler boxer shepherd tabby siamese pet goat"
    " hen chicken donkey rat mouse"
    " bird fish duck alpaca llama pig sheep cow tarantula iguana labradoodle cockapoo mutt".split()
) | {"guinea pig", "maine coon", "bearded dragon", "golden retriever", "german shepherd"}

COUNTRIES = frozenset(
    "argentina australia austria bangladesh belgium bolivia brazil bulgaria cambodia cameroon canada chile china"
    " colombia croatia cuba cyprus"
    " czechia denmark ecuador egypt england estonia ethiopia finland france germany ghana greece guatemala hungary"
    " iceland india indonesia iran iraq"
    " ireland israel italy jamaica japan jordan kenya latvia lebanon lithuania luxembourg malaysia malta mexico"
    " moldova morocco nepal netherlands"
    " nigeria norway pakistan panama paraguay peru philippines poland portugal qatar romania russia scotland"
    " senegal serbia singapore slovakia"
    " slovenia somalia spain sweden switzerland syria taiwan tanzania thailand tunisia turkey uganda ukraine"
    " uruguay usa uk venezuela vietnam wales"
    " zambia zimbabwe".split()
) | {
    "the us",
    "the uk",
    "the netherlands",
    "new zealand",
    "south africa",
    "south korea",
    "sri lanka",
    "costa rica",
    "the states",
    "the philippines",
    "saudi arabia",
    "united states",
    "united kingdom",
    "czech republic",
}

_VERBS_AFTER_AND = (
    "am|is|are|was|have|has|had|love|loves|like|likes|live|lives|work|works|play|plays|hate|hates|speak|speaks|own"
    "|drive|want|wants|got|moved|enjoy|prefer|can|do|does"
    "|need|started|just|also|use|study|studies|go|goes|eat|drink|run|runs|read|it|that|this|now|then|so|always"
    "|never|usually|our|he|she|they|we|i|will|take|make|teach|run|bought|became|adopted|don't|not|married"
)
_END = re.compile(
    rf"""\s+(?:and\ (?:he|she|they|it|then|so)\b(?:'s|\ )|because|cause|cuz|since|so\ that|so|but|when|whenever|while|if|after|until|till|which|who|whose|where
      |although|though|unless|as\ well|as|too|again|instead
    |at\ the\ moment|these\ days|nowadays|right\ now|any\ ?more|any\ longer|after\ all|lol|haha|btw|though|ago
      |already|by\ the\ way|at\ all|altogether|for\ good|completely|entirely|for\ \w+\ reasons|of\ all\ time
      |more\ than|(?:a\ )?lot|so\ much|very\ much|the\ most|(?:the\ )?best|most\ of\ all|to\ bits|to\ death
    |yesterday|today|tonight|tomorrow|(?:last|this|next|every|each)\ \w+|for\ (?:an?|the|my|our|about|over|almost
      |nearly|some|many|years|two|three|four|five|six|seven|eight|nine|ten|\d+)\b
    |(?:and|or)\ (?=(?:{_VERBS_AFTER_AND})\b)|not\ )(?:\b|(?<=\ )).*$|\s*[;:!?(].*$|\s+[-–—]\s.*$|\s+:.*$|\.\s.*$""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_PLACE_END = re.compile(
    r"\s+(?:with|near|for|by|in|on|at|from|and|about|of which|during|together|to)\b.*$", re.IGNORECASE
)
_COMMA = re.compile(r",(?!\s*(?:[\w'-]+\s+){0,3}?(?:and|or)\s|\s*(?:[\w'-]+\s*){1,2},).*$", re.DOTALL)
_DETERMINER = re.compile(
    r"^(?:an?|the|my|our|some|any|his|her|their|all|most|both|being|being an?|to)\s+", re.IGNORECASE
)
_EDGES = " .,;:!?\"'()"
_POINTERS = frozenset(
    "it this that these those you them him her me us one ones so there here everything nothing something anything"
    " someone anyone what how why when myself"
    " do go be see say get out up down back well fine too home".split()
)
_NAME = re.compile(
    r"[A-ZÀ-ÞŁŚŠŽČ][\w'’.&-]*(?: (?:(?:de|da|van|von|der|del|of|the|&|and) )*[A-Z0-9À-Þ][\w'’.&-]*){0,4}"
)
_PLACE = re.compile(r"(?:the )?[\w'’.-]+(?: [\w'’.-]+){0,3}", re.IGNORECASE)
_NO_PLACE = frozenset(
    "a an my our your his her their this that it there here fear peace luck love hope an the same bed debt trouble"
    " front charge order particular general fact time touch"
    " sync town mind shape fashion-wise same two three one work sleep back things school".split()
)
_MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t|tember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_DATE = re.compile(
    rf"\d|\b(?:{_MONTH}|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|tomorrow|noon|midnight|tonight|weekend"
    rf"|christmas|easter)\b",
    re.IGNORECASE,
)
_JOB = re.compile(
    r"(?:er|or|ist|eer|ian|ant|ent|man|woman|person|officer|nurse|chef|pilot|vet|coach|judge|mechanic|ceo|cto|cfo"
    r"|coo|cook|clerk|analyst|barista|paramedic|intern|dev|pm|sre"
    r"|architect|scientist|athlete|dj|mp|surgeon|soldier|professor|nanny|au pair|monk|priest|rabbi|imam|sailor"
    r"|smith|guide|diplomat|representative|executive|associate|apprentice|au-pair|potter|ux|midwife|tutor|postdoc"
    r"|lead)s?$",
    re.IGNORECASE,
)
_NO_JOB = re.compile(
    r"\b(?:person|lover|believer|beginner|member|customer|user|father|mother|brother|sister|vegetarian|owner"
    r"|learner|drinker|eater|smoker|player|gamer|riser|foreigner|parent"
    r"|follower|fan|supporter|hater|sleeper|planner|thinker|listener|introvert|extrovert|newcomer|starter|winner"
    r"|loser|survivor|speaker|native|patient|student|resident|citizen|outsider|insider|hoarder|worrier|walker"
    r"|reader|collector"
    r"|homeowner|commuter|stranger|visitor|sufferer|dreamer|procrastinator|perfectionist|vegan|regular|subscriber"
    r"|non-smoker|nonsmoker|teetotaller|feminist|buddhist|christian|tourist|optimist|pessimist|realist|minimalist"
    r"|atheist|baker at heart"
    r"|different|bit|little|lot|fast|slow|heavy|keen|avid|huge|big|picky|light|night|early|one|virgo|capricorn"
    r"|cancer|taurus|scorpio|gentleman|grown|older|younger|better|former|longer|major|minor|senior|junior"
    r"|[A-Z][a-z]+ian)\b|^(?:mess|wreck|genius)$"
)
_VEHICLE = re.compile(
    r"\b(?:car|van|truck|motorbike|motorcycle|scooter|vespa|suv|pickup|camper(?:van)?|moped|toyota|honda|volvo"
    r"|fiat|tesla|mazda|jeep|skoda|subaru|audi|renault|kia|dacia|lexus|bmw|ford|volkswagen|vw|golf|mercedes|benz"
    r"|hyundai|nissan|peugeot|citroen|citroën|opel|vauxhall|seat|mini|porsche|suzuki|mitsubishi|chevrolet|chevy"
    r"|buick|cadillac|dodge|ducati|yamaha|kawasaki|harley|prius|civic|polestar|rivian|byd|cupra|land rover|range"
    r" rover|jaguar|alfa)\b",
    re.IGNORECASE,
)
_NATIONAL = re.compile(r"(?:ish|ese|ch|man|ian|ean|can|gian|ani|iot|wegian|ek|oli|qi|eli|wiss|hai|uguese)$")


def clean(raw: str, attribute: str) -> str:
    """Return the value within `raw`: cut where the phrase ends, without article and outer punctuation; "" if none is left."""
    value = raw.strip()
    if not attribute.startswith(("birthday", "date", "deadline", "schedule", "phone", "email", "address", "plan")):
        value = _END.sub("", f" {value}")
    if attribute in ("home", "origin", "home_city", "employer", "school", "name", "partner", "spouse", "kin_name"):
        value = _PLACE_END.sub("", value)
    if attribute in ("job", "studies", "vehicle"):
        value = re.sub(r"\s+(?:at|for|with|from|in|and)\b.*$", "", value, flags=re.IGNORECASE)
    if attribute == "birthday":
        value = re.sub(r"\s+(?:in|at|near)\s.*$", "", value)
    value = _COMMA.sub("", value)
    if attribute == "likes":
        value = re.sub(r"\s+(?:over|to|rather than|better than|in|on|with me)\b.*$", "", value, flags=re.IGNORECASE)
    if attribute not in ("home", "origin"):  # "a care home" is no name of a place, "the Hague" is
        value = _DETERMINER.sub("", _DETERMINER.sub("", value.strip(_EDGES)))
    value = value.strip(_EDGES)
    return value if len(value.split()) <= 10 and value.casefold() not in _POINTERS else ""


def is_name(value: str) -> bool:
    """Whether `value` is written like a proper name."""
    return bool(_NAME.match(value)) and not is_date(value)


def is_word(value: str) -> bool:
    """Whether `value` is a single word, as a name in hasty writing is."""
    return value.isalpha() and len(value) > 1


def is_place(value: str) -> bool:
    """Whether `value` can be the name of a place: written like a name, or one to four plain words."""
    first = value.casefold().split()[0]
    return (
        bool(_PLACE.fullmatch(value))
        and (first not in _NO_PLACE or value.casefold() in COUNTRIES)
        and not value[0].isdigit()
    )


def is_thing(value: str) -> bool:
    """Whether `value` names something rather than pointing at it ("it", "this idea")."""
    first = value.casefold().split()[0]
    return first not in {
        "this",
        "that",
        "these",
        "those",
        "it",
        "you",
        "your",
        "how",
        "what",
        "when",
        "why",
        "if",
        "the way",
        "him",
        "her",
        "them",
        "where",
        "who",
    }


def is_date(value: str) -> bool:
    """Whether `value` holds a number, a month, a weekday or the like."""
    return bool(_DATE.search(value))


def is_job(value: str) -> bool:
    """Whether `value` ends like a profession ("nurse", "software engineer") and is not some other kind of person."""
    head = re.split(r" (?:at|for|in|with|of|by|and|who|from)\b", value.strip(_EDGES))[0]
    return bool(_JOB.search(head)) and not _NO_JOB.search(head) and len(head.split()) <= 4


def may_be_job(value: str) -> bool:
    """Whether somebody can become `value` for a living: it is no other kind of person ("a vegetarian", "a mother")."""
    return not _NO_JOB.search(value)


def is_vehicle(value: str) -> bool:
    """Whether `value` names a car, a bike or the like."""
    return bool(_VEHICLE.search(value)) and len(value.split()) <= 6


def is_nationality(word: str) -> bool:
    """Whether a capitalised `word` after "I am" tells where somebody is from rather than a name."""
    return bool(_NATIONAL.search(word)) or word in {
        "Dutch",
        "Greek",
        "Swiss",
        "Thai",
        "Czech",
        "Israeli",
        "Iraqi",
        "Pakistani",
        "Muslim",
        "Jewish",
        "Hindu",
        "Catholic",
        "Aries",
        "Leo",
        "Virgo",
        "Libra",
        "Pisces",
    }


def place_attribute(value: str) -> str:
    """Return the slot that a place to live in fills: `home_country` or `home_city`."""
    return "home_country" if value.casefold().strip(_EDGES) in COUNTRIES else "home_city"


def thing_key(thing: str) -> str:
    """Return `thing` as the second half of an attribute's name: lower case, joined by underscores, British "colour"."""
    words = re.findall(r"[^\W_]+", _DETERMINER.sub("", thing.casefold()).replace("color", "colour"))
    return "_".join(words)
