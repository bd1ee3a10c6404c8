"""English verbs whose past has another stem than the present, so that "Who sold it?" meets "to sell"."""

from collections.abc import Mapping
from types import MappingProxyType

from sharpwave.memory.keywords import terms

_FORMS = """become became, begin began begun, bend bent, bite bit bitten, blow blew blown, break broke broken, bring brought,
build built, burn burnt, buy bought, catch caught, choose chose chosen, come came, creep crept, deal dealt, dig dug, draw drew
drawn, drink drank drunk, drive drove driven, eat ate eaten, fall fell fallen, feed fed, feel felt, fight fought, find found,
flee fled, fly flew flown, forget forgot forgotten, freeze froze frozen, get got gotten, give gave given, go went gone, grow
grew grown, hang hung, hear heard, hide hid hidden, hold held, keep kept, know knew known, lay laid, lead led, leave left, lend
lent, lie lay lain, lose lost, make made, mean meant, meet met, pay paid, ride rode ridden, ring rang rung, rise rose risen,
run ran, say said, see saw seen, seek sought, sell sold, send sent, shake shook shaken, shine shone, shoot shot, sing sang
sung, sink sank sunk, sit sat, sleep slept, speak spoke spoken, spend spent, stand stood, steal stole stolen, stick stuck,
strike struck, swear swore sworn, sweep swept, swim swam swum, swing swung, take took taken, teach taught, tear tore torn, tell
told, think thought, throw threw thrown, understand understood, wake woke woken, wear wore worn, win won, write wrote written"""


def _table() -> dict[str, str]:
    table: dict[str, str] = {}
    for line in _FORMS.split(","):
        base, *past = terms(line)
        for form in past:
            table.setdefault(form, base)
    return table


_BASES: Mapping[str, str] = MappingProxyType(_table())


def words(text: str) -> list[str]:
    """Return the index terms of a text (`keywords.terms`), those of irregular verbs by the stem of the present."""
    return [_BASES.get(term, term) for term in terms(text)]
