"""Generative replay: questions about what is remembered, asked of memory itself, and repair of what they do not find.

They are made by a model, or by rules, and the best of them are those that somebody has asked. None is a fact: each is a
`Probe`, a record of its own kind. Asking one counts neither as a recall nor as a use.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from langchain_core.language_models.chat_models import BaseChatModel
from sqlalchemy import Connection

from sharpwave.memory import questions, rows, semantic, times
from sharpwave.memory.errors import BudgetExceeded, ModelError
from sharpwave.memory.kinds import Probe
from sharpwave.memory.questions import Question
from sharpwave.memory.records import Memory, Recall
from sharpwave.memory.repair import repair
from sharpwave.memory.sql import fetch
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.usage import booked

FIRST = 10
"""A probe has found its memory when it is among so many first ones."""
BUDGET = 500
"""Tokens within which evidence is looked for."""
ASKED = 20
"""Probes that are asked at a time."""
BASES = 8
"""Memories that probes are made of at a time: what fits into one call."""
PROBED = 200
"""Memories of an owner that have probes at the same time."""
FADED = 0.8
"""Importance of a made-up question, as a share of that of its memory."""


class Answer(NamedTuple):
    """What came of asking one probe."""

    probe: Probe
    memory: Memory
    """The current version of the memory that answers it."""
    found: bool
    """Whether that is among the first ten memories."""
    evidence: bool
    """Whether that, or the message it was taken from, is within the budget; False where there is none."""


class Probing:
    """Makes probes of one owner's memories after the other's, asks them, and repairs what they do not find.

    Args:
        store: the memory.
        model: rephrases; without one, questions are made by rules.
    """

    def __init__(self, store: MemoryStore, model: BaseChatModel | None = None) -> None:
        self.store, self.model = store, model

    def synthesize(
        self,
        owner: str,
        first: Sequence[str] = (),
        *,
        n: int = ASKED,
        seed: str = "",
        now: datetime | None = None,
        run: str | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Make probes of memories that have none, ask some of all there are, and repair the memories that they miss.

        Args:
            owner: whose.
            first: ids of the memories that come first; after them, the most important ones.
            n: probes that are asked at most; 0 does nothing.
            seed: the same one chooses the same probes.
            now: the present.
            run: id of the run, for the log.
            dry_run: write nothing and ask no model; `bases` are the memories that probes would be made of.

        Returns:
            `made` (how many, by what made them), `asked` and `found` (see `counts`), `missed` and `repaired` (ids of memories); a model that failed is told of under `failed`, and `over` tells of a budget.
        """
        if n < 1:
            return {}
        at = times.utc(now) if now else times.now()
        done = self._bases(owner, first) if dry_run else self._make(owner, first, at)
        answers = self.ask(owner, n=n, seed=seed, now=at)
        missed = list(dict.fromkeys(one.memory.id for one in answers if not one.found))
        repaired: list[str] = []
        if answers and not dry_run:
            with self.store.transaction(owner, writes=True) as (connection, number):
                note(connection, number, answers)
                repaired = mend(connection, number, answers, at, run)
        return {"made": {}, **done, **counts(answers), "missed": missed, "repaired": repaired}

    def _bases(self, owner: str, first: Sequence[str]) -> dict[str, Any]:
        with self.store.transaction(owner) as (connection, number):
            return {"bases": [memory.id for memory in unprobed(connection, number, first)]}

    def _make(self, owner: str, first: Sequence[str], at: datetime) -> dict[str, Any]:
        with self.store.transaction(owner, writes=True) as (connection, number):
            let_go(connection, number, owner, at)
            bases = unprobed(connection, number, first)
        failed: dict[str, Any] = {}
        made: list[Question] = []
        if self.model is not None and bases:
            try:
                with booked(self.store, owner):
                    made = questions.by_model(self.model, bases)
            except (ModelError, BudgetExceeded) as error:
                failed = {"over" if isinstance(error, BudgetExceeded) else "failed": str(error)}
        else:
            made = [question for memory in bases for question in questions.by_rules(memory)]
        made = [self._safe(owner, question) for question in made]
        with self.store.transaction(owner, writes=True) as (connection, number):
            kept = keep(connection, number, owner, [*questions.asked(connection, number), *made], at)
        return {"made": {by: sum(one.by == by for one in kept) for by in sorted({one.by for one in kept})}, **failed}

    def _safe(self, owner: str, question: Question) -> Question:
        text, *words = self.store.masked(owner, [question.text, *question.words])
        return question._replace(text=text, words=tuple(words))

    def ask(
        self,
        owner: str,
        *,
        n: int = ASKED,
        seed: str = "",
        only: Sequence[str] | None = None,
        budget: int = 0,
        now: datetime | None = None,
    ) -> list[Answer]:
        """Ask probes of memory and return what came of each; nothing is counted or written.

        Args:
            owner: whose.
            n: so many at most, drawn at random.
            seed: the same one draws the same of the same.
            only: ids of the probes that are asked, in the place of `n` drawn ones.
            budget: tokens of memories and messages among which evidence is looked for; 0 leaves that out.
            now: the present.
        """
        with self.store.transaction(owner) as (connection, number):
            probes = standing(connection, number, owner)
            if only is not None:
                probes = [probe for probe in probes if probe.id in set(only)]
            elif len(probes) > n:
                drawn = np.random.default_rng(list(seed.encode())).choice(len(probes), n, replace=False)
                probes = [probes[place] for place in sorted(drawn)]
            memories = [semantic.get(connection, number, probe.key) for probe in probes]
        pairs = [(probe, memory) for probe, memory in zip(probes, memories, strict=True) if memory]
        return [self._answer(owner, probe, memory, budget, now) for probe, memory in pairs]

    def _answer(self, owner: str, probe: Probe, memory: Memory, budget: int, now: datetime | None) -> Answer:
        first = self.store.recall(owner, probe.text, k=FIRST, stores=("semantic",), now=now)
        told = self.store.recall(owner, probe.text, budget=budget, now=now) if budget else []
        return Answer(
            probe, memory, any(hit.id == memory.id for hit in first), any(_tells(hit, memory) for hit in told)
        )


def _tells(hit: Recall, memory: Memory) -> bool:
    said = hit.utterance
    source = (memory.source.thread, memory.source.message_id)
    return hit.id == memory.id or (said is not None and (said.thread, said.message_id) == source)


def counts(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the ids of the probes that were asked, of those that found their memory, and of those that found its evidence."""
    return {
        "asked": [one.probe.id for one in answers],
        "found": [one.probe.id for one in answers if one.found],
        "evidence": [one.probe.id for one in answers if one.evidence],
    }


def compared(done: Mapping[str, Any], after: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what probes say of a run: `made`, `asked`, `missed`, `repaired`, and three shares (0..1).

    `recall_before` and `recall_after` are the shares that found their memory among the first ten, `evidence` is the share that
    found its evidence within 500 tokens, at the end; None where none was asked. Probes whose memory went in the run are left
    out of all three.

    Args:
        done: what `Probing.synthesize` returned.
        after: `counts` of the same probes, asked again at the end; None where they were not.
    """
    asked = set((done if after is None else after).get("asked", ()))

    def share(found: Mapping[str, Any] | None, what: str = "found") -> float | None:
        return len(asked & set(found[what])) / len(asked) if found and asked else None

    return {
        "made": done.get("made", {}),
        "asked": len(asked),
        "missed": len(done.get("missed", ())),
        "repaired": len(done.get("repaired", ())),
        "recall_before": share(done),
        "recall_after": share(after),
        "evidence": share(after, "evidence"),
    }


_PROBED = (
    "SELECT 1 FROM records r WHERE r.owner = m.owner AND r.kind = 'probe' AND r.status = 'active' AND r.key = m.id"
)
_LIVE = "FROM memories m WHERE m.owner = ?1 AND m.current AND m.status = 'active'"


def unprobed(connection: Connection, owner: int, first: Sequence[str], n: int = BASES) -> list[Memory]:
    """Return up to `n` memories that have no probes: those among `first`, then the most important ones."""
    ((probed,),) = fetch(connection, f"SELECT count(*) {_LIVE} AND EXISTS ({_PROBED})", (owner,))
    statement = f"""
        SELECT m.id {_LIVE} AND m.kind != 'summary' AND json_extract(m.record, '$.confidence') >= {semantic.BELIEVED}
        AND NOT EXISTS ({_PROBED}) ORDER BY m.id IN (SELECT value FROM json_each(?2)) DESC,
            json_extract(m.record, '$.importance') DESC, m.row DESC LIMIT ?3
    """
    room = max(0, min(n, PROBED - probed))
    ids = [one for (one,) in fetch(connection, statement, (owner, json.dumps(list(first)), room))]
    return [memory for one in ids if (memory := semantic.get(connection, owner, one)) is not None]


def standing(connection: Connection, owner: int, name: str) -> list[Probe]:
    """Return the probes of memories that say what they said when the probes were made, in the order of their making."""
    versions = dict(fetch(connection, f"SELECT m.id, m.version {_LIVE}", (owner,)))
    probes = rows.find(connection, owner, name, Probe, statuses=("active",))
    return [probe for probe in probes if versions.get(probe.key) == probe.version]


def let_go(connection: Connection, owner: int, name: str, at: datetime) -> int:
    """Let go of the probes of memories that have changed or are gone; returns how many."""
    stand = {probe.id for probe in standing(connection, owner, name)}
    gone = [one for one in rows.find(connection, owner, name, Probe, statuses=("active",)) if one.id not in stand]
    for probe in gone:
        _put(
            connection, owner, probe.model_copy(update={"status": "expired"}), "its memory has changed, or is gone", at
        )
    return len(gone)


def keep(connection: Connection, owner: int, name: str, made: Sequence[Question], at: datetime) -> list[Probe]:
    """Write questions as probes; those that are there already, and those without a live memory, are left out."""
    there = {(probe.key, probe.text) for probe in standing(connection, owner, name)}
    kept: list[Probe] = []
    for one in made:
        memory = semantic.get(connection, owner, one.memory)
        if memory is None or memory.status != "active" or (one.memory, one.text) in there:
            continue
        real = one.by == "asked/1"
        probe = Probe(
            owner=name,
            text=one.text,
            derived_from=(memory.id,),
            version=memory.version,
            synthetic=not real,
            importance=memory.importance * (1 if real else FADED),
            words=one.words,
            by=one.by,
            thread=one.thread,
            message_id=one.message_id,
            created_at=at,
        )
        _put(connection, owner, probe, "a question whose answer is known", at)
        there.add((one.memory, one.text))
        kept.append(probe)
    return kept


def _put(connection: Connection, owner: int, probe: Probe, reason: str, at: datetime) -> None:
    rows.put(connection, owner, probe, op="PROBE", at=at, policy=probe.by, reason=reason, embed=_never)


def _never(text: str) -> np.ndarray:
    raise AssertionError("probes have no vector")


def note(connection: Connection, owner: int, answers: Sequence[Answer]) -> None:
    """Note of each memory how many probes about it were asked, and how many missed it: what its priority goes by."""
    statement = """
        INSERT INTO uses (owner, memory_id, recalled, cited, asked, missed) VALUES (?, ?, 0, 0, ?, ?)
        ON CONFLICT (owner, memory_id) DO UPDATE SET asked = excluded.asked, missed = excluded.missed
    """
    about = {one.memory.id: [a for a in answers if a.memory.id == one.memory.id] for one in answers}
    values = [(owner, one, len(all_), sum(not a.found for a in all_)) for one, all_ in about.items()]
    if values:
        connection.exec_driver_sql(statement, values)


def mend(connection: Connection, owner: int, answers: Sequence[Answer], at: datetime, run: str | None) -> list[str]:
    """Repair the memories that probes missed; returns their ids."""
    repaired: list[str] = []
    for memory_id in dict.fromkeys(one.memory.id for one in answers if not one.found):
        missing = [one.probe for one in answers if one.memory.id == memory_id and not one.found]
        memory = semantic.get(connection, owner, memory_id)
        if memory is None or memory.status != "active" or memory.version != missing[0].version:
            continue
        texts = [probe.text for probe in missing] + [word for probe in missing for word in probe.words]
        if repair(connection, owner, memory, texts, at, run) is not None:
            repaired.append(memory_id)
    return repaired
