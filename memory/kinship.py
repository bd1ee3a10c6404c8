"""Kinship: what people and pets are to somebody, in the words of several languages."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from sharpwave.memory import keywords
from sharpwave.memory.extract.values import ANIMALS, KIN

_KIN_ELSEWHERE = {
    "sibling": "schwester bruder hermana hermano soeur sœur frère frere sorella fratello irmã irma irmão zus broer syster bror søster",
    "parent": "mutter vater mama madre padre mère père mae mãe pai moeder vader",
    "child": "tochter sohn hija hijo fille fils figlia figlio filha filho dochter zoon",
    "spouse": "ehefrau ehemann mann frau esposa esposo marido mujer épouse mari femme moglie marito mulher echtgenoot",
    "partner": "freundin novia novio copine copain fidanzata fidanzato namorada namorado vriendin",
    "relative": "oma opa tante onkel abuela abuelo tía tío prima primo grand-mère oncle nonna nonno zia zio avó avô",
    "colleague": "chef chefin kollege kollegin jefe jefa patron capo collega",
    "friend": "freund amiga amigo amie ami amica amico vriend",
}
_PLURAL = frozenset("kid child children baby toddler boy girl newborn sibling parent ex pet bird fish".split())
ROLES: Mapping[str, str] = MappingProxyType(
    {keywords.fold(word): kind for kind, words in _KIN_ELSEWHERE.items() for word in words.split()}
    | {keywords.fold(word): kind for word, kind in KIN.items()}
    | {keywords.fold(animal): "pet" for animal in ANIMALS}
)
"""What somebody can be to somebody, folded, and the attribute that it stands for."""


def identifies(role: str) -> bool:
    """Whether "my" with this role means one person as a rule: "my sister" does, "my friend" does not."""
    kind = kin(role)
    word = role.split()[-1]
    return (
        kind is not None
        and word not in _PLURAL
        and (kind not in ("friend", "colleague") or word in ("boss", "manager"))
    )


def kin(role: str) -> str | None:
    """Return the attribute that a role stands for ("older sister": sibling), None for other words."""
    return ROLES.get(role) or ROLES.get(role.split()[-1]) if role else None


# As parts of patterns

MY = (
    r"(?i:\b(?:my|our|meine?[rnms]?|unsere?[rnms]?|mis?|nuestr[ao]|mon|ma|notre|mi[ao]|nostr[ao]|meu|minha|noss[ao]|mijn|onze?"
    r"|min|mitt|vår))"
)
ADJECTIVES = (
    r"(?i:(?:older|elder|younger|little|big|eldest|oldest|youngest|late|twin|best|good|old|dear|new|große[rnms]?|kleine[rnms]?"
    r"|ältere[rnms]?|jüngere[rnms]?|beste[rnms]?|mayor|menor|grande|petite?|maggiore|minore|mais velh[ao]|mais nov[ao]) )*"
)
ROLE = (
    "(?i:"
    + "|".join(
        re.escape(word)
        for word in sorted({*KIN, *ANIMALS, *" ".join(_KIN_ELSEWHERE.values()).split()}, key=len, reverse=True)
    )
    + ")"
)
ROLE_WORDS = {
    word for role in (*KIN, *ANIMALS, *" ".join(_KIN_ELSEWHERE.values()).split()) for word in re.findall(r"\w+", role)
}
