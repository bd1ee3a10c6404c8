"""Decisions in one line, `UPDATE 2`, as a small model can be trained to make them: one question for each candidate.

Training (`memory.learning.llm`) and deciding ask in the same words, so a model is only good for the prompt it was trained on.
"""

import logging
import re
from collections.abc import Callable, Sequence

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.errors import ModelError, SharpwaveError
from sharpwave.memory.records import Candidate, Decision, Operation, Recall, Turn
from sharpwave.memory.structured import explain
from sharpwave.memory.usage import check_budget, record_call
from sharpwave.prompts import quoted, render

log = logging.getLogger(__name__)

SHOWN = 5
"""Memories that a model is shown, best first."""
LONGEST = 300
"""Characters of a memory or statement that it is shown."""

Choose = Callable[[Sequence[BaseMessage], Sequence[str]], tuple[str, float]]
"""Chooses among the legal operations that go with a question: what it says, and how sure it is, 0..1."""

_OPERATION = re.compile(r"\s*(ADD|NOOP|UPDATE|DELETE)(?:\s+#?(\d{1,2}))?\b", re.IGNORECASE)
_SHOWN_LINE = re.compile(r'^\d+\. "', re.MULTILINE)


def question(candidate: Candidate, memories: Sequence[str]) -> list[BaseMessage]:
    """Return the messages that ask what to do about a candidate, given the memories near it, at most `SHOWN`."""
    lines = [f"{number}. {quoted(text, LONGEST)}" for number, text in enumerate(memories, 1)]
    ended = " (no longer so)" if candidate.polarity == "retract" else ""
    told = "\n".join(["Memories:", *lines, f"New statement{ended}: {quoted(candidate.text, LONGEST)}", "Operation:"])
    return [SystemMessage(render("operate")), HumanMessage(told)]


def shown_in(prompt: str) -> int:
    """Return how many memories a question, as text, shows."""
    return len(_SHOWN_LINE.findall(prompt))


def legal(memories: int) -> list[str]:
    """Return the operations that may be chosen where so many memories are shown."""
    aimed = [f"{op} {number}" for op in ("UPDATE", "DELETE") for number in range(1, memories + 1)]
    return ["ADD", "NOOP", *aimed]


def parse(said: str, memories: int) -> tuple[Operation, int | None] | None:
    """Return the operation that a text begins with, and the place of its target from 0 on; None where it is not legal."""
    found = _OPERATION.match(said)
    if found is None:
        return None
    op, number = found[1].upper(), found[2]
    if op == "ADD" or op == "NOOP":
        return ("ADD" if op == "ADD" else "NOOP"), None
    if number is None or not 1 <= int(number) <= memories:
        return None
    return ("UPDATE" if op == "UPDATE" else "DELETE"), int(number) - 1


class OperationPolicy:
    """Lets a model that was trained to name an operation decide; see `Policy`. One question for each candidate.

    Args:
        choose: asks the model, as `asking(chat_model)` or `memory.learning.llm.load(folder)` do.
        name: name and version, for the ledger.
    """

    def __init__(self, choose: Choose, *, name: str = "llm-trained/1") -> None:
        self._choose, self.name = choose, name

    def decide(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Recall]], turn: Turn
    ) -> list[Decision]:
        """Return one decision a candidate; where nothing is near the rules decide, and what is not legal adds."""
        return [self._one(c, near[:SHOWN], turn) for c, near in zip(candidates, neighbours, strict=True)]

    def _one(self, candidate: Candidate, near: Sequence[Recall], turn: Turn) -> Decision:
        if not near:
            return RulesPolicy().decide([candidate], [near], turn)[0]
        said, sure = self._choose(question(candidate, [recall.text for recall in near]), legal(len(near)))
        read = parse(said, len(near))
        if read is None:
            log.warning("Rejected what the model said: it is no legal operation")
            return self._made("ADD", candidate, None, 0.5, "the model named no legal operation")
        op, place = read
        return self._made(
            op, candidate, None if place is None else near[place].id, sure, "decided by the trained model"
        )

    def _made(self, op: Operation, candidate: Candidate, target: str | None, sure: float, reason: str) -> Decision:
        return Decision(op=op, candidate=candidate, target=target, confidence=sure, reason=reason, policy=self.name)


def asking(model: BaseChatModel) -> Choose:
    """Return what asks a chat model, such as `ChatOpenAI` at a server that runs the trained one. Its word counts as 0.8 sure.

    The calls are counted under "decide".
    """

    def choose(messages: Sequence[BaseMessage], operations: Sequence[str]) -> tuple[str, float]:
        check_budget()
        try:
            answer = model.invoke(list(messages), {"tags": ["nostream"]})
        except (SharpwaveError, AssertionError):
            raise
        except Exception as error:  # whatever a provider raises
            raise ModelError(explain(error, messages, "decide")) from error
        record_call("decide", answer, sum(len(message.text) for message in messages))
        return answer.text, 0.8

    return choose
