"""Scoring what was written in one labelled dialogue: counts, from which all rates are made.

A candidate is about a fact when half of the shorter of the two is shared, letter by letter, or when its text holds the
fact. A text *holds* words when it has `HOLDS` of their index terms (stems without stop words; bigrams of Chinese and Japanese).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sharpwave.benchmarks.labelled import Case, Fact, Key, LabelledTurn
from sharpwave.memory.applying import Applied
from sharpwave.memory.keywords import fold, terms
from sharpwave.memory.records import Candidate, Decision, Memory, Operation
from sharpwave.memory.slots import FORMER

HOLDS = 0.8
SUPPORTED = 0.5
"""Least share of a stored text's terms that the user has used; names and numbers have to be there all."""
_TELLING = re.compile(r"(?<=[^.!?\s]\s)[A-Z][\w'-]+|\b[\w-]*\d[\w-]*")
_NARRATOR = frozenset({"user", "speaker"})

Written = tuple[Decision, Applied]


def holds(text: str, words: str) -> bool:
    """Return whether `text` says `words`, in this or in much the same form."""
    wanted = set(terms(words))
    return len(wanted & set(terms(text))) >= HOLDS * len(wanted) if wanted else fold(words) in fold(text)


def about(candidate: Candidate, fact: str, said: str) -> bool:
    """Return whether a candidate is about a fact, both taken from what was said."""
    one, other = _span(said, candidate.quote), _span(said, fact)
    if one and other:
        shared = min(one.stop, other.stop) - max(one.start, other.start)
        if 2 * shared >= min(len(one), len(other)):
            return True
    return holds(candidate.text, fact)


def _span(said: str, part: str) -> range | None:
    at = said.lower().find(part.lower())
    return range(at, at + len(part)) if at >= 0 and part else None


def is_supported(text: str, own: str) -> bool:
    """Return whether the user's own words carry a stored text: half of its terms, and all its names and numbers."""
    wanted, have = set(terms(text)) - _NARRATOR, set(terms(own))
    telling = {term for found in _TELLING.findall(text) for term in terms(found)} - _NARRATOR
    return telling <= have and len(wanted & have) >= SUPPORTED * len(wanted)


@dataclass(frozen=True)
class Outcome:
    """What happened in one turn."""

    candidates: Sequence[Candidate]
    written: Sequence[Written]
    before: dict[str, str]
    """Texts of the current memories before the turn, by id."""
    after: Sequence[Memory]
    """The current memories after it."""

    def shows(self, words: str) -> bool:
        """Return whether the current memories say `words`."""
        return any(holds(memory.text, words) for memory in self.after)


@dataclass(frozen=True)
class Verdict:
    """What was made of one labelled fact."""

    expected: Operation
    made: Operation
    right: bool
    memory: str | None
    lost: bool = False
    """What the fact speaks of is not among what was kept."""


class CaseScore:
    """The counts of one case. Feed it the turns in order."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.counts: Counter[str] = Counter()
        self.failures: list[dict[str, str]] = []
        self._home: dict[Key, str] = {}
        self._alive: set[Key] = set()
        self._own = ""

    def home(self, fact: Key) -> str | None:
        """Return the id of the memory in which a fact of an earlier turn is kept."""
        return self._home.get(fact)

    def turn(self, at: int, outcome: Outcome) -> None:
        """Count one turn; `at` is its index in the case."""
        turn = self.case.turns[at]
        self._own += f"\n{without(turn.user, turn.foreign)}"
        verdicts = self._verdicts(at, turn, outcome)
        if not turn.seed:
            self._extraction(at, turn, outcome)
            self._decisions(at, turn, verdicts)
        self._move_on(at, turn, verdicts)
        if not turn.seed:
            self._harm(at, turn, outcome, verdicts)
            self._view(at, turn, outcome)

    def _fail(self, kind: str, at: int, detail: str) -> None:
        self.failures.append({"kind": kind, "case": self.case.id, "said": self.case.turns[at].user, "detail": detail})

    def _count(self, name: str, hit: bool) -> bool:
        self.counts[f"{name}/all"] += 1
        self.counts[f"{name}/hit"] += hit
        return hit

    # What was found

    def _extraction(self, at: int, turn: LabelledTurn, outcome: Outcome) -> None:
        for candidate in outcome.candidates:
            if not self._count("precision", any(about(candidate, fact.text, turn.user) for fact in turn.facts)):
                self._fail("not a fact", at, candidate.text)
        for fact in turn.facts:
            found = any(
                holds(f"{c.text} {c.quote}", fact.text) for c in outcome.candidates if about(c, fact.text, turn.user)
            )
            if fact.op is not None and not self._count("recall", found):
                self._fail("not found", at, fact.text)
        if not turn.facts and self._count("noise", any(applied.op != "NOOP" for _, applied in outcome.written)):
            self._fail("wrote in a turn without facts", at, "; ".join(a.text for _, a in outcome.written))
        for decision, applied in outcome.written:
            if applied.op in ("ADD", "UPDATE"):
                quote = decision.candidate.quote
                borrowed = 2 * len(terms(without(quote, turn.foreign))) < len(terms(quote))
                supported = is_supported(applied.text, f"{self._own}\n{applied.before or ''}")
                if self._count("unsupported", borrowed or not supported):
                    self._fail("unsupported", at, applied.text)

    # What was decided

    def _verdicts(self, at: int, turn: LabelledTurn, outcome: Outcome) -> dict[int, Verdict]:
        verdicts: dict[int, Verdict] = {}
        good: list[Written] = []
        for number, fact in enumerate(turn.facts):
            mine = [w for w in outcome.written if about(w[0].candidate, fact.text, turn.user)]
            if fact.op is None or not mine:
                continue
            verdicts[number], answer = self._verdict(fact, mine, outcome)
            good += [answer] if answer else []
        for number, verdict in verdicts.items():
            text = turn.facts[number].text
            carried = not verdict.right and verdict.expected in ("ADD", "NOOP") and outcome.shows(text)
            carrier = next((w for w in good if about(w[0].candidate, text, turn.user)), None) if carried else None
            if carrier:  # the words went in, or stayed, with those of another fact
                verdicts[number] = Verdict(verdict.expected, verdict.expected, True, carrier[1].memory_id)
        return verdicts

    def _verdict(self, fact: Fact, mine: Sequence[Written], outcome: Outcome) -> tuple[Verdict, Written | None]:
        assert fact.op is not None
        targets = {self._home[key] for key in fact.targets if self._home.get(key) in outcome.before}
        lost = fact.op != "ADD" and not targets  # what it speaks of was never kept: there is nothing but to add it
        expected: Operation = "ADD" if lost and fact.op != "DELETE" else fact.op
        allowed = {"ADD"} if lost else fact.ops
        for written in mine:
            decision, applied = written
            if decision.op in allowed and (decision.op == "ADD" or decision.target in targets):
                return Verdict(expected, decision.op, True, applied.memory_id, lost), written
        hits = {d.op: (d, a) for d, a in mine if d.target in targets}
        if fact.op == "UPDATE" and "DELETE" in hits and any(d.op == "ADD" for d, _ in mine):
            added = next(w for w in mine if w[0].op == "ADD")
            return Verdict(expected, "UPDATE", True, added[1].memory_id), added
        if fact.op == "DELETE" and "UPDATE" in hits and not self._says_any(outcome, fact):
            return Verdict(expected, "DELETE", True, None), hits["UPDATE"]
        return Verdict(expected, mine[0][0].op, False, mine[0][1].memory_id, lost), None

    def _says_any(self, outcome: Outcome, fact: Fact) -> bool:
        return any(outcome.shows(self._text(key)) for key in fact.targets)

    def _text(self, key: Key) -> str:
        return self.case.turns[key[0]].facts[key[1]].text

    def _decisions(self, at: int, turn: LabelledTurn, verdicts: dict[int, Verdict]) -> None:
        for number, fact in enumerate(turn.facts):
            verdict = verdicts.get(number)
            if fact.op in ("UPDATE", "DELETE"):
                self._count(f"{fact.op.lower()}_recall", verdict is not None and verdict.right and not verdict.lost)
            if verdict is None or (fact.op == "DELETE" and verdict.lost):
                continue
            self.counts[f"{verdict.expected}>{verdict.made}"] += 1
            if verdict.expected in ("ADD", "UPDATE"):
                self._count("lost", verdict.made == "NOOP" and not verdict.right)
            if not self._count("accuracy", verdict.right):
                self._fail(f"{verdict.expected} was {verdict.made}", at, fact.text)

    def _move_on(self, at: int, turn: LabelledTurn, verdicts: dict[int, Verdict]) -> None:
        for number, fact in enumerate(turn.facts):
            if fact.op in ("UPDATE", "DELETE"):
                self._alive -= set(fact.targets) | set(self._details(fact.targets))
            if fact.op in ("ADD", "UPDATE"):
                self._alive.add((at, number))
            memory = verdicts[number].memory if number in verdicts else None
            if memory is not None and fact.op != "DELETE":
                self._home[at, number] = memory

    def _details(self, parents: Sequence[Key]) -> Iterator[Key]:
        """Go through the facts that were details of others: they fall with them."""
        for i, turn in enumerate(self.case.turns):
            for j, fact in enumerate(turn.facts):
                if fact.op == "ADD" and fact.target in parents:
                    yield i, j

    # What it did to what was known

    def _harm(self, at: int, turn: LabelledTurn, outcome: Outcome, verdicts: dict[int, Verdict]) -> None:
        added: list[str] = []
        for decision, applied in outcome.written:
            mine = [(n, f) for n, f in enumerate(turn.facts) if f.op and about(decision.candidate, f.text, turn.user)]
            if applied.op in ("UPDATE", "DELETE") and self._count(
                "wrong_delete", self._loses(applied, [f for _, f in mine], outcome)
            ):
                self._fail("wrong delete", at, f"{applied.before} -> {applied.text if applied.op == 'UPDATE' else ''}")
            if applied.op == "UPDATE":
                homes = {self._home.get(key) for _, fact in mine for key in fact.targets}
                fits = applied.memory_id in homes or any(n in verdicts and verdicts[n].right for n, _ in mine)
                if self._count("wrong_update", not fits):
                    self._fail("wrong update", at, f"{applied.before} -> {applied.text}")
            if applied.op == "ADD":
                again = any(fold(applied.text) == fold(text) for text in [*outcome.before.values(), *added])
                confirmed = [
                    f for _, f in mine if f.op == "NOOP" and any(self._home.get(k) in outcome.before for k in f.targets)
                ]
                twice = any(holds(text, f.text) for text in added for _, f in mine)
                if self._count("duplicate", again or (bool(mine) and (len(confirmed) == len(mine) or twice))):
                    self._fail("duplicate", at, applied.text)
            added += [applied.text] if applied.op in ("ADD", "UPDATE") else []

    def _loses(self, applied: Applied, mine: Sequence[Fact], outcome: Outcome) -> bool:
        """Return whether an UPDATE or DELETE took away a fact that still holds."""
        restated = (
            {key for fact in mine if fact.op == "NOOP" for key in fact.targets} if applied.op == "UPDATE" else set()
        )
        lived_in = {key for key, home in self._home.items() if home == applied.memory_id}
        # What this very turn says has only just been written there.
        earlier = {key for key in lived_in & self._alive - restated if holds(applied.before or "", self._text(key))}
        return any(not outcome.shows(self._text(key)) for key in earlier)

    def _view(self, at: int, turn: LabelledTurn, outcome: Outcome) -> None:
        present = [fold(memory.text) for memory in outcome.after if not (memory.attribute or "").startswith(FORMER)]
        for text in turn.forbidden:
            if self._count("stale", any(fold(text) in said for said in present)):
                self._fail("stale", at, text)
        for text in turn.current:
            self._count("kept", outcome.shows(text))


def without(text: str, foreign: Sequence[str]) -> str:
    """Return `text` with the words cut out that are not the user's own."""
    for words in foreign:
        text = text.replace(words, " ")
    return text
