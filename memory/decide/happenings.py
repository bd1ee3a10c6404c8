"""What happened stays so, whatever comes next: "I went to the support group yesterday" is not outdated by how the group goes on.

A statement of something done once is told by its first verb, which is past. Verbs that begin or end a state tell of none: who has
joined a choir may leave it, and who was offered a job may lose the offer. English.
"""

import re
from functools import lru_cache

from sharpwave.memory.phrases import expanded


def _any(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


_LASTING = _any(
    "mov start join adopt sign enrol enroll switch chang appli invit settl decid promis agree plann hir stopp retir inherit register subscrib open"
    " swapp upgrad downgrad replac rent leas borrow turn arrang schedul book order pick land secur expand renew extend postpon resign divorc marri"
    " graduat diagnos prescrib offer accept promot transferr relocat resum continu remain stay liv work us lov lik hat want need seem prefer enjoy"
    " believ hop expect intend own reserv commit commission assign appoint elect pledg reli depend involv includ contain belong concern call nam"
    " limit relat ti interest pleas excit worri scar tir bor learn train cancell clos dropp finish end discontinu bann allow install convert renovat"
    " redecorat plant paint dy pierc tattoo injur bump push rais lower reduc increas restart doubl sprain fractur twist develop contract creat found"
    " launch"
)
"""Stems of regular verbs after which something is so, or no longer so."""
_LASTING_TOO = _any("set put quit cut hung hurt let")
_PAST = _any(
    r"went ran met saw ate drank came sang swam rode drove flew spent heard told sat slept woke fell threw taught made did had(?!\sto\b) gave wrote"
    r" stood brought caught fought shook wore swore rang rung won sent showed shown felt spoke thought took(?!\s(?:up|on|over)\b) hit beat lit fed"
    r" dug hid seen eaten been\sto gone\sto drawn drew blew bit slid sold lost(?=\s(?:by|against|to)\b)"
    r" left(?=\s(?:early|late|at|the\s(?:party|house|office)))"
)
_OPENING = (
    r"(?:(?:so|and|but|then|well|ok|okay|oh|yes|yeah|anyway|finally|today|tonight|yesterday|last\ \w+|this\ \w+|on\ \w+|the\ other\ \w+"
    r"|one\ \w+|earlier|just|even|also|a\ (?:few\ )?\w+\ ago),?\ )*"
)
_NO_NOUN = r"(?!(?:is|are|am|was|were|I|we|he|she|they|it|you|get|gets|have|has|will|can|do|does|who|that|which)\b)"
_SUBJECT = (
    rf"(?:I|we|he|she|they|it|you|(?:(?:my|our|his|her|their|the|some|an?|one\ of\ \w+)\ )?{_NO_NOUN}[\w'’-]+"
    rf"(?:\ (?:and|of|from|at|in)?\ ?(?:my\ |the\ )?{_NO_NOUN}[\w'’-]+){{0,4}}?)\ "
)
_ADVERBS = (
    r"(?:(?:have|has|had)\ )?(?:(?:just|also|even|all|both|finally|actually|really|\w+ly|already|once|then|only)\ )*"
)
_HAPPENED = re.compile(
    rf"{_OPENING}(?:{_SUBJECT})?{_ADVERBS}(?!{_LASTING}ed\b|{_LASTING_TOO}\b)"
    rf"(?:{_PAST}|(?!(?:shed|bred|sled|hundred|naked|red)\b)[a-z]+[^\We]ed(?!\ (?:by|to\ be|in\ love)\b))\b",
    re.IGNORECASE | re.VERBOSE,
)


@lru_cache(maxsize=4096)
def happened(text: str) -> bool:
    """Whether a text tells of something that was done, or took place, once."""
    return bool(_HAPPENED.match(expanded(text)))
