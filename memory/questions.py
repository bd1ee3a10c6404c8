"""Questions whose answer is known: those that somebody has asked, and those that rules or a model make of a memory."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from sharpwave.memory import keywords, semantic
from sharpwave.memory.evidence import asks
from sharpwave.memory.records import Memory
from sharpwave.memory.slots import slot
from sharpwave.memory.sql import fetch
from sharpwave.memory.structured import ask
from sharpwave.memory.trust import looks_like_instruction
from sharpwave.prompts import quoted, render

EACH, WORDS = 2, 12
"""Most questions, and other words, that are made of one memory."""
LONGEST = 300
"""Characters of a question that is taken as it was asked; a longer one brings its own context."""
TELLING = 8
"""Words of a memory that a question by rules is made of."""
_WORD = re.compile(r"[^\W_]+")


class Question(NamedTuple):
    """A question, and the memory that answers it."""

    memory: str
    text: str
    by: str
    words: tuple[str, ...] = ()
    """Other words by which that memory may be looked for."""
    thread: str | None = None
    message_id: str | None = None
    """Of the message in which it was asked, where it was."""


# Asked by somebody

_CITING = """
SELECT c.memory_id, s.text, s.thread, s.message_id FROM uses c
JOIN utterances s ON s.owner = c.owner AND s.said_at = c.last_cited_at AND s.role = 'user'
WHERE c.owner = ? AND c.cited > 0 GROUP BY c.memory_id HAVING count(*) = 1
"""


def asked(connection: Connection, owner: int) -> list[Question]:
    """Return the last question that cited each memory, where it is clear which message that was."""
    return [
        Question(memory, text.strip(), "asked/1", (), thread, message)
        for memory, text, thread, message in fetch(connection, _CITING, (owner,))
        if len(text) <= LONGEST and asks(text.strip())
    ]


# By rules

_OF_SLOT = {
    "name": "What {is} {my} name?",
    "age": "How old {am} {I}?",
    "birthday": "When {is} {my} birthday?",
    "home_city": "Where {do} {I} live?",
    "home_country": "In which country {do} {I} live?",
    "job": "What {do} {I} do for a living?",
    "employer": "Who {do} {I} work for?",
    "workplace": "Where {do} {I} work?",
    "commute": "How {do} {I} get to work?",
    "school": "Where {do} {I} study?",
    "studies": "What {do} {I} study?",
    "allergy": "What {am} {I} allergic to?",
    "diet": "What {do} {I} eat?",
    "handedness": "Which hand {do} {I} write with?",
    "marital_status": "{Am} {I} married?",
    "partner": "Who {is} {my} partner?",
    "spouse": "Who {is} {my} spouse?",
    "child": "Who {are} {my} children?",
    "pet": "Which pets {do} {I} have?",
    "language": "Which languages {do} {I} speak?",
    "vehicle": "What {do} {I} drive?",
    "phone": "What {is} {my} phone number?",
    "email": "What {is} {my} email address?",
    "address": "What {is} {my} address?",
    "weight": "How much {do} {I} weigh?",
}
_MINE = {"I": "I", "my": "my", "do": "do", "am": "am", "Am": "Am", "is": "is", "are": "are"}
_THEIRS = {"do": "does", "am": "is", "Am": "Is", "is": "is", "are": "are"}


def by_rules(memory: Memory) -> list[Question]:
    """Return a question by the slot of a memory, if it has one, and one of the telling words of its text.

    They find what they were made of, as a rule: they tell whether something else crowds it out, and not whether people who use
    other words would find it.
    """
    told = " ".join([word for word in _WORD.findall(memory.text) if keywords.terms(word)][:TELLING])
    return [Question(memory.id, text, "rules/1") for text in (_of_slot(memory), told) if text]


def _of_slot(memory: Memory) -> str | None:
    attribute = memory.attribute or ""
    form = _OF_SLOT.get(attribute)
    if form is None and attribute and not slot(attribute).many and ":" not in attribute:
        form = f"What {{is}} {{my}} {attribute.replace('_', ' ')}?"
    who = memory.subject
    return form and form.format_map(_MINE if who == "user" else {**_THEIRS, "I": who, "my": f"{who}'s"})


# By a model


class _Probe(BaseModel):
    statement: int
    questions: list[str]
    words: list[str] = Field(default_factory=list)


class _Probes(BaseModel):
    probes: list[_Probe]


def by_model(model: BaseChatModel, memories: Sequence[Memory]) -> list[Question]:
    """Return the questions that a model makes of memories, in one call.

    Raises:
        ModelError: the model failed, or gave no usable answer.
    """
    shown = "\n".join(f"{n}. {_told(memory)}" for n, memory in enumerate(memories, 1))
    answer = ask(model, [SystemMessage(render("probe")), HumanMessage(shown)], _Probes, purpose="probe")
    found = {one.statement - 1: one for one in answer.probes if 0 < one.statement <= len(memories)}
    return [question for place, one in found.items() for question in _usable(memories[place], one)]


def _told(memory: Memory) -> str:
    about = "" if memory.subject == "user" else f"({memory.subject}) "
    return about + quoted(memory.text, LONGEST)


def _usable(memory: Memory, found: _Probe) -> Iterator[Question]:
    """Yield questions that are some, and do not hold the answer; no text that would instruct whoever reads it."""
    value, held = semantic.folded(memory.value or ""), set(semantic.index_terms(memory))
    single = dict.fromkeys(word.strip().lower() for word in found.words if _WORD.fullmatch(word.strip()))
    words = tuple(word for word in single if not held.issuperset(keywords.terms(word)))[:WORDS]
    texts = dict.fromkeys(" ".join(text.split()) for text in found.questions)
    for text in [one for one in texts if 3 <= len(one) <= LONGEST and not looks_like_instruction(one)][:EACH]:
        if not value or value not in semantic.folded(text):
            yield Question(memory.id, text, "llm/1", words)
