"""What ends what: states of a life, and the events after which they are no more. English.

"I found a job at Delta" has no word of "I am unemployed", and everybody knows that it is the end of it. The table holds what
anybody would conclude; both sides have to be about the same person, and where a state is of a thing ("saving up for a
campervan") the event has to name the thing.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from sharpwave.memory.decide.sameness import brings_up_another, is_past, same_subject
from sharpwave.memory.phrases import LIGHT, expanded, stems
from sharpwave.memory.records import Candidate, Memory, Operation


class Transition(NamedTuple):
    """A state, the event after which it is over, what becomes of it, and whether the event has to name its thing."""

    state: re.Pattern[str]
    event: re.Pattern[str]
    op: Operation = "UPDATE"
    named: bool = False


def _row(state: str, event: str, op: Operation = "UPDATE", *, named: bool = False) -> Transition:
    return Transition(
        re.compile(rf"\b(?:{state})\b", re.IGNORECASE), re.compile(rf"\b(?:{event})\b", re.IGNORECASE), op, named
    )


_JOB = r"(?:job|role|post|position|contract)"
_HOME = r"(?:house|flat|home|place|apartment|cottage|bungalow|studio)"
_CHILD = r"(?:baby|girl|boy|son|daughter|twins|child)"
_ILL = r"(?:sprained|broke|broken|injured|injury|fractur\w+|in a cast|on crutches|concussion|flu|infection|tore|torn|pulled a muscle)"
TRANSITIONS = (
    _row(
        rf"unemployed|jobless|out of work|between jobs|job[- ]hunting|looking for (?:a )?(?:new )?(?:work|{_JOB})",
        rf"(?:got|found|landed|have|took|accepted) (?:a|the|my|this) (?:new )?{_JOB}|got hired|(?:start|started|starting) (?:at|with|as)\b.*",
    ),
    _row(
        rf"(?:am|we) renting|rent (?:a|an|the|our|my)|(?:a|our|my) rented {_HOME}|lodger",
        rf"bought (?:a|an|our|my|the) (?:[\w-]+ )?{_HOME}",
    ),
    _row(
        r"pregnant|expecting(?: a| our| my| her)?(?: \w+)?(?: in| on|$)|baby is due|due (?:in|on|at|end|early|late) \w+|trying for a baby",
        rf"had (?:a|her|the|our|their|my) (?:little |beautiful )?(?:{_CHILD})|gave birth|(?:{_CHILD}) (?:was born|is here|has arrived|arrived)",
    ),
    _row(
        r"am single|single these days|not seeing anyone",
        r"got (?:married|engaged)|am (?:dating|seeing) (?:someone|a \w+)|have a (?:girl|boy)friend",
    ),
    _row(
        r"engaged|fianc\w+|getting married|wedding (?:is|on|in)",
        r"got married|are married|tied the knot|are now (?:husband and wife|married)",
    ),
    _row(
        r"student|studying|at uni\w*|degree|dissertation|thesis|Ph\.?D|(?:first|second|third|final) year",
        r"(?:have |has )?graduated|got my degree|dropped out(?: of uni\w*)?|defended my|handed in my (?:thesis|dissertation)",
    ),
    _row(
        r"trainee|apprentice\w*|training (?:as|to be|to become)",
        r"(?:am|have|has|have just|finally) qualified|I qualified|finished my (?:training|apprenticeship)",
    ),
    _row(
        r"learning to drive|driving lessons|provisional licen[cs]e",
        r"passed (?:my|the|her|his) (?:driving )?test|got (?:my|her|his) (?:driving )?licen[cs]e",
    ),
    _row(
        r"saving (?:up )?for|thinking of (?:buying|getting)|looking for an?|shopping for|want to buy|waiting for (?:a|an|the|my|our)|waiting list for",
        r"bought|got|found|picked up|had (?:my|the|it|her|his)|arrived",
        named=True,
    ),
    _row(
        r"training for|signed up for|entered|preparing for",
        r"ran|finished|completed|dropped out of|pulled out of",
        named=True,
    ),
    _row(
        _ILL,
        r"(?:fully |all |completely |finally |now )?(?:healed|recovered)|all[- ]clear|out of (?:the|my|her|his) cast|cast (?:is|came) off|can (?:run|walk|climb|play|train) again",
        "DELETE",
    ),
    _row(
        r"contact lenses|contacts|(?:wear|need) glasses",
        r"eyes (?:lasered|done|fixed)|laser (?:eye )?surgery|LASIK|had (?:my )?eyes lasered",
    ),
    _row(
        r"in hospital|in rehab|in intensive care",
        r"(?:is|am|are|came|back) home|discharged|out of hospital|let (?:me|him|her|them) (?:go )?home",
    ),
    _row(r"in (?:prison|jail)|inside for", r"released|got out|is out|was let out", "DELETE"),
    _row(
        r"suing|lawsuit|taking .* to court|court case",
        r"dropped (?:the|my|our)|settled|(?:won|lost) (?:the|my|our)",
        "DELETE",
    ),
    _row(
        r"(?:trying to sell|selling) (?:my|our|the)|for sale|on the market",
        r"sold|off the market|not selling",
        "DELETE",
        named=True,
    ),
    _row(
        r"out of (?:service|order)|broken|being (?:repaired|fixed)|leak\w*|faulty",
        r"fixed|repaired|works again|working again|back (?:in service|on the road|up and running)|replaced",
        named=True,
    ),
    _row(
        r"lives? (?:alone|by (?:my|her|him)self|on (?:my|her|his) own)",
        r"moved in with|lives with .* now|(?:am|is|are) not alone any ?more",
    ),
    _row(
        r"interview|applied|application",
        r"got the job|got it|turned (?:me|her|him) down|rejected|did not get it|offered (?:me|him|her) (?:the|a)",
        named=True,
    ),
    _row(
        r"(?:have|got) (?:the )?(?:builders|decorators|plumbers|visitors|guests)",
        r"(?:builders|decorators|plumbers|visitors|guests) (?:are|have) (?:finally |all )?(?:out|gone|left|finished)",
        "DELETE",
    ),
    _row(
        r"(?:live|lives|living|based|settled) (?:in|near|outside)",
        r"(?:am|are|is)(?: back)? in (?-i:[A-Z])[\w-]+(?: (?-i:[A-Z])[\w-]+)? (?:as of|since (?:last|this|the)|these days|now|for good)",
    ),
    _row(
        r"moving to|about to move|plan(?:ning)? to move",
        r"(?:have |has )?(?:finally |just )?moved (?:in )?to|settled in",
        named=True,
    ),
)


def transition(candidate: Candidate, memory: Memory) -> Operation | None:
    """Return what becomes of a memory of a state after the event that a candidate tells; None where they are not such a pair."""
    said = expanded(candidate.text)
    told = _events(said)
    if not told or candidate.history or is_past(memory) or not _of_one(candidate, memory):
        return None
    known = expanded(memory.text)
    shared = (stems(said) & stems(known)) - LIGHT - stems(candidate.subject)
    for one in told:
        state = one.state.search(known)
        if state and not one.state.search(said) and (shared - stems(state[0]) or not one.named):
            return one.op
    return None


@lru_cache(maxsize=1024)
def _events(said: str) -> tuple[Transition, ...]:
    """Return the transitions whose event a statement tells; it is asked of one statement and each memory near it."""
    return tuple(one for one in TRANSITIONS if one.event.search(said))


def _of_one(candidate: Candidate, memory: Memory) -> bool:
    """Whether both are about one person."""
    if brings_up_another(candidate, memory):
        return False
    named = candidate.subject != "user" and stems(candidate.subject) <= stems(memory.text)
    told = memory.subject != "user" and stems(memory.subject) <= stems(candidate.text)
    return same_subject(candidate, memory) or named or told
