"""Which words say the same, so that a statement in other words can be held against a known one.

Small tables of everyday words, in the manner of a thesaurus: words for one thing, and words that are broader than others.
What a statement says beyond another is what neither these, nor a common root, nor a slip of the pen explains.
"""

from functools import lru_cache
from itertools import pairwise

from sharpwave.memory.phrases import akin, stems

_ALIKE = (
    "mum mom mother mama mam mummy mommy",
    "dad father papa daddy pa",
    "child kid kids children offspring",
    "sister sis",
    "brother bro",
    "gran grandma grandmother granny nan nana",
    "grandpa grandad granddad grandfather",
    "wife husband spouse hubby married",
    "partner girlfriend boyfriend dating gf bf",
    "flatmate roommate housemate",
    "boss manager supervisor",
    "colleague coworker workmate",
    "friend mate buddy pal bestie",
    "bestie best",
    "flat apartment",
    "house home",
    "live reside residence dwell based home",
    "wohne lebe wohnen leben",
    "habite vis vivons habitons",
    "vivo casa vivimos",
    "work employ employer employed employment employee job company firm works",
    "job profession occupation living trade career",
    "doctor gp physician",
    "vegetarian veggie",
    "car drive automobile vehicle wheels",
    "bike bicycle cycle cycling cyclist",
    "phone mobile cell cellphone number",
    "dinner supper",
    "study student studying major degree enrolled pupil",
    "school pupil attend attends",
    "teach teacher teaching taught",
    "piano pianist",
    "guitar guitarist",
    "sing singer choir",
    "write writer author writing",
    "cook chef cooking",
    "nurse nursing",
    "swim swimmer swimming",
    "run runner running jog jogging",
    "hate stand dislike loathe detest bear",
    "favourite fave fav best preferred",
    "fly airline flight flying",
    "bank account banking",
    "support club team fan",
    "follow fan",
    "gym train trainer training workout",
    "member membership belong belongs",
    "buy bought purchase purchased get",
    "wedding marry married marriage",
    "begin start started began starts",
    "meet meeting meetings",
    "appointment booked booking",
    "holiday vacation trip",
    "save saving savings money aside",
    "sick ill",
    "bad sore dodgy",
    "scared afraid frighten fear terrified terrify scare",
    "loud noisy",
    "quiet silent",
    "bed bedtime asleep",
    "shop store",
    "sofa couch",
    "deaf hear hearing",
    "lawyer solicitor attorney",
    "university uni college",
    "maths math mathematics",
    "drums drummer drum",
    "violin violinist fiddle",
    "glasses spectacles specs",
    "single unmarried",
    "pregnant expecting expect",
    "fiancé fiancée engaged engagement",
    "smoke smoker cigarette smoking",
    "diabetes diabetic",
    "asthma asthmatic",
    "epilepsy epileptic",
    "coeliac celiac gluten",
    "lactose dairy",
    "teeth dentist",
    "taxi cab",
    "miner mines",
    "money cash",
    "rude impolite",
    "hubby man",
    "tea cuppa",
    "wealthy rich",
    "weekly week",
    "daily day",
    "monthly month",
    "yearly year annual",
    "fly plane",
    "electric ev",
    "one first",
    "two second",
    "three third",
    "four fourth",
    "five fifth",
    "six sixth",
    "retired retiree pensioner",
    "allergic allergy allergies reaction intolerant intolerance sneeze hives",
    "night evening nights",
    "lease rent renting",
    "pay cost costs price paying",
    "learn learning study studying",
    "speak talk language fluent speaks",
    "left-handed lefty southpaw left hand handed",
    "garden gardening allotment",
    "dog pup puppy",
    "cat kitten kitty",
    "rabbit bunny",
    "tv telly television",
    "email mail",
    "laptop computer machine",
    "use using run runs rely",
    "expire valid good expires",
    "prefer rather go-to",
    "alcohol booze teetotal drink sober",
    "shift shifts",
    "book novel",
    "movie film films",
    "football soccer",
    "call name called",
    "own belong have",
    "born birthday",
    "grow grew grown raise raised origin originally hometown",
    "drive car",
    "night shift",
    "twice two",
    "big large",
    "little small",
    "usual usually always ever",
)
"""Each line: words of which one may stand for another. A word may stand in several lines."""

_BROADER = {
    "child kid": "son daughter baby toddler boy girl twins",
    "parent": "mother father mum dad mom",
    "sibling": "brother sister twin",
    "pet": "dog cat rabbit parrot hamster tortoise bird fish horse greyhound spaniel puppy kitten",
    "dog": "greyhound spaniel labrador poodle beagle terrier collie dachshund boxer husky corgi puppy",
    "bird": "parrot budgie canary",
    "car": "golf volvo skoda fiat toyota honda tesla mazda mini polo focus audi bmw",
    "eat": "meat vegetarian vegan diet",
    "meat": "vegetarian vegan pork beef chicken ham bacon",
    "animal": "dog cat rabbit vegan",
    "dairy": "vegan lactose milk cheese",
    "egg": "vegan",
    "instrument": "piano guitar violin saxophone flute cello drums trumpet",
    "sport": "tennis football rugby cricket hockey judo squash golf",
    "relative": "aunt uncle cousin gran grandpa niece nephew",
    "married": "wife husband",
    "alcohol": "wine beer spirits",
    "nut": "walnut peanut hazelnut almond cashew",
    "fish": "salmon tuna shellfish prawn",
    "runner": "marathon",
    "gym": "workout weights",
}
"""Words, and narrower ones: who has named one of these has said the words."""

_EMPTY = frozenset().union(
    *(
        stems(words)
        for words in (
            (
                "still yet remain remains stay stays ever usual usually always fact indeed same before again course actually yes yep"
                " yeah sure certainly thing main mostly here there lot bit way kind sort mine ours own known know tell told"
                " mention mentioned remember said say sed forget forgot remind reminder already record note have get keep take make"
                " do come put mean guess think well please oh no fave fav stand bear"
            ),
            (
                "ich bin habe mein meine meinen meiner ist sind der das ein eine einen im in am bei immer noch weiterhin nach"
                " wie vor und zu als für mit heißt"
            ),
            (
                "yo soy estoy tengo mi mis es el la los las un una en de del sigo sigue todavía aún que se llama como a con"
                " siendo"
            ),
            "je j ai suis mon ma mes est sont le la les un une des à au aux en chez toujours encore c qui s appelle et l d du de",
            "io sono ho il mio mia è sempre ancora eu sou tenho meu minha o a um uma em ainda continuo",
        )
    )
)
"""Words that add nothing to a statement which is known."""


def _lines() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _ALIKE:
        members = stems(line)
        for word in members:
            found.setdefault(word, set()).update(members)
    return {word: frozenset(members) for word, members in found.items()}


_SAME = _lines()
_NARROWER = {word: stems(members) for name, members in _BROADER.items() for word in stems(name)}


def synonyms(one: str, other: str) -> bool:
    """Whether two stems are one, or stand for one thing."""
    return one == other or other in _SAME.get(one, ())


def speaks_of(said: str, asked: str) -> bool:
    """Whether a text with the stem `said` may speak of `asked`: by the same word, a synonym, a relative or a narrower one."""
    return synonyms(asked, said) or akin(asked, said) or said in _NARROWER.get(asked, ())


@lru_cache(maxsize=16384)
def alike(one: str, other: str) -> bool:
    """Whether two stems are synonyms, of one root, or one of them a slip of the pen."""
    return synonyms(one, other) or akin(one, other) or _one_root(one, other) or _slip(one, other)


def unsaid(new: frozenset[str], known: frozenset[str], exact: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the stems of `new` that `known` does not say, without those that never add anything.

    A word is said where `known` has it, or one alike, or a narrower one; those of `exact` only where it has them.
    """
    loose = known - exact
    left = new - known - _EMPTY
    return frozenset(
        word
        for word in left
        if word in exact or not any(alike(word, stem) or stem in _NARROWER.get(word, ()) for stem in loose)
    )


def telling(words: frozenset[str]) -> frozenset[str]:
    """Return the stems that can add something to what is known."""
    return words - _EMPTY


def _one_root(one: str, other: str) -> bool:
    """Whether two words share so much of their beginning that they inflect or derive from one ("trabajo", "trabajando")."""
    short, long = sorted((len(one), len(other)))
    shared = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), short)
    return shared >= 5 and long - shared <= 5 and short - shared <= 2


def _slip(one: str, other: str) -> bool:
    """Whether one word of at least five letters becomes the other by one letter put in, left out, changed or swapped."""
    if min(len(one), len(other)) < 5 or abs(len(one) - len(other)) > 1 or one[0] != other[0] or one.isdigit():
        return False
    start = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    first, second = one[start:], other[start:]
    swapped = any(a + b == second[:2] for b, a in pairwise(first[:2])) and first[2:] == second[2:]
    return swapped or first[1:] == second[1:] or first[1:] == second or first == second[1:]
