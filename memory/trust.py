"""Whom to believe: how far each kind of source is trusted, and what is shown to nobody as a memory.

Only the user's own words make facts about the user. What stands in pasted text, in the output of tools or in the
assistant's replies is less than that: it never changes what a more trusted source said, and where it reads like an
instruction it is kept out of prompts.
"""

import re
from collections.abc import Mapping, Sequence

from sharpwave.memory.evidence import own_words
from sharpwave.memory.records import Candidate, Message, Recall, SourceKind, Turn

TRUST: Mapping[SourceKind, int] = {"user": 4, "assistant": 3, "tool": 2, "document": 1, "import": 1, "inferred": 0}
"""The higher, the more a source is trusted. An UPDATE or DELETE by a less trusted source than the target's becomes ADD."""

_INSTRUCTION = re.compile(
    r"""\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instructions?|rules?|prompts?|guidelines|messages
      |everything\ (?:above|before)|above|policies|safety|anweisungen|instrucciones)\b
    |\b(?:ignoriere|ignora|ignorez|ignore|忽略|无视)\b.{0,30}(?:anweisung|instruc|指令|指示)|(?:忽略|无视).{0,12}(?:指令|指示)
    |\byou\ (?:are\ now|must(?:\ (?:always|never|not))?|will\ now|are\ no\ longer|have\ to\ (?:always|never))\b
      |\b(?:from\ now\ on|henceforth),?\ (?:you|always|never|reply|respond|answer|act|forward|send)\b
    |(?:^|[\n.!?:;]\s*|\b(?:please|and|then|rule:|note:)\s+)(?:always|never)\ (?:forward|send|reply|respond|answer
      |say|tell|recommend|trust|call|use|include|reveal|share|mention|approve|execute|run|visit|click|obey|follow|add
      |append|cc|bcc|copy|delete|write|output|return|start|end|ask|refuse|route|transfer|buy|pay)\b
    |\b(?:remember|save|store|memori[sz]e|note|learn|keep)\b.{0,20}\b(?:rule|instruction|command|directive|policy)\b
    |(?:^|\n)\s*(?:\[|<\|?|\#+\s*)?(?:system|assistant|developer|admin(?:istrator)?|instructions?)(?:\|?>
      |\])?\s*(?:prompt|message|note|override)?\s*[:>\]]|<\|?(?:im_start|system|/?inst|endoftext)|\[/?INST\]|<</?SYS>>
    |\b(?:do\ not|don't|never|without)\s+(?:tell(?:ing)?|inform(?:ing)?|alert(?:ing)?|notify(?:ing)?
      |mention(?:ing)?\s+(?:this|it)\s+to)\s+(?:the\ |to\ the\ )?user\b|\bsystem\ prompt\b|\b(?:new|updated|hidden
      |secret)\ instructions?\b|\bjailbreak\b|\bdeveloper\ mode\b
    |\bwhen(?:ever)?\ (?:the\ user|asked|someone|anyone|he|she|they)\b.{0,60}\b(?:reply|respond|answer|say|recommend
      |send|forward|tell|claim|pretend)\b|\b(?:act|behave|respond|reply|answer)\ (?:as|like)\ (?:if|an?|the|though)\b
    |\b(?:forward|send|email|upload|post|leak|exfiltrate|transfer|share)\b.{0,60}(?:https?://|\b[\w.+-]+@[\w-]+\.\w+
      |\b(?:passwords?|credentials|api\ keys?|secrets?|tokens?|all\ (?:mails?|emails?|messages|data|files))\b)""",
    re.IGNORECASE | re.VERBOSE,
)


def looks_like_instruction(text: str) -> bool:
    """Whether `text` tells a model what to do rather than stating something: not a thing to believe from a document."""
    return bool(_INSTRUCTION.search(text[:100_000]))


def traced(candidate: Candidate, turn: Turn) -> Candidate:
    """Return `candidate` with the kind of source that its quote has in the turn, if that is trusted less than it claims.

    What the user pasted is a document's; a quote that stands nowhere in the turn leaves the claim as it is.
    """
    kinds: list[SourceKind] = [kind for message in turn.messages for kind in _kinds_of(candidate.quote, message)]
    kind = max(kinds, key=TRUST.__getitem__, default=candidate.source_kind)
    return (
        candidate if TRUST[kind] >= TRUST[candidate.source_kind] else candidate.model_copy(update={"source_kind": kind})
    )


def _kinds_of(quote: str, message: Message) -> Sequence[SourceKind]:
    if not quote.strip() or quote not in message.text:
        return ()
    if message.role == "user":
        return ("user",) if quote in own_words(message.text) else ("document",)
    return ("tool",) if message.role == "tool" else ("assistant",)


def may_be_shown(hit: Recall) -> bool:
    """Whether something that was found may stand in a prompt: no message that holds instructions of somebody else's does.

    Instructions in the user's own words are the user's; in pasted text, tool output and replies they are anybody's.
    """
    if hit.utterance is None:
        return True
    text = hit.utterance.text
    foreign = pasted(text) if hit.utterance.role == "user" else text
    return not looks_like_instruction(foreign)


def pasted(text: str) -> str:
    """Return the lines of a user's message that are not the user's own words."""
    own = {line.strip() for line in own_words(text).splitlines()}
    return "\n".join(line for line in text.splitlines() if line.strip() not in own)
