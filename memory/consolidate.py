"""Consolidation: what a resting agent makes of what it remembers, in parts that are each planned and carried out alone.

A plan writes nothing and asks no model. Each part is carried out in one transaction (each episode is learned from in its own), on
what is there then and not when it was planned, and a second time it does nothing. A model that fails leaves everything as it was.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from sqlalchemy import Connection

from sharpwave.memory import (
    concluding,
    deriving,
    insights,
    merging,
    planning,
    reflect,
    rolling_up,
    semantic,
    settling,
    times,
)
from sharpwave.memory.errors import InputError
from sharpwave.memory.ledger import check_owner
from sharpwave.memory.procedures import Procedures
from sharpwave.memory.records import Memory, Source
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.usage import booked

WRITTEN = 50
"""Facts that are written in one transaction: others write in between."""
COUNTS = ("merged", "derived", "rolled_up", "learned", "insights", "settled", "expired")


class Consolidator:
    """Consolidates the memories of one owner after the other.

    Args:
        store: the memory.
        model: finds facts in what was said, and words summaries and insights; without one, all of that is extractive.
    """

    def __init__(self, store: MemoryStore, model: BaseChatModel | None = None) -> None:
        self.store, self.model = store, model

    def plan(self, owner: str, *, kinds: Collection[str] = planning.KINDS) -> list[planning.Part]:
        """Return what there is to do, as JSON-like parts: `kind`, `ids` of what it is about, and `why`.

        The kinds are settle, merge, derive, roll_up, procedures, insight, in this order. `ids` are, in turn, the memory; those
        that are merged and merged into, with `groups` of which the first one is kept; utterances; sessions; episodes; episodes.

        Args:
            owner: whose.
            kinds: leave out all others.
        """
        with self.store.transaction(owner) as (connection, number):
            return list(planning.parts(connection, number, owner, with_model=self.model is not None, kinds=kinds))

    def carry_out(self, owner: str, part: Mapping[str, Any], *, run: str | None = None) -> dict[str, Any]:
        """Do one part of a plan; returns how many of each of `COUNTS`, and the `ids` of what was written.

        Args:
            owner: whose plan it is.
            part: of the plan.
            run: id of the run, for the log.

        Raises:
            InputError: an unknown kind of part.
            ModelError: a model failed; nothing was written.
        """
        check_owner(owner)
        works: dict[str, Callable[[str, Mapping[str, Any], str | None], dict[str, Any]]] = {
            "settle": self._settle,
            "merge": self._merge,
            "derive": self._derive,
            "roll_up": self._roll_up,
            "procedures": self._learn,
            "insight": self._understand,
        }
        if part.get("kind") not in works or not part.get("ids"):
            raise InputError(
                f"A part of a plan has ids and one of these kinds: {', '.join(works)}; got {dict(part)!r}."
            )
        with booked(self.store, owner):
            done = works[part["kind"]](owner, part, run)
        return {**dict.fromkeys(COUNTS, 0), "ids": [], **done}

    def _settle(self, owner: str, part: Mapping[str, Any], run: str | None) -> dict[str, Any]:
        with self.store.transaction(owner, writes=True) as (connection, number):
            found = settling.settle(connection, number, part["ids"][0], times.now())
        if found is None:
            return {}
        return {"settled": 1, "expired": int(found.op == "expire"), "ids": part["ids"]}

    def _merge(self, owner: str, part: Mapping[str, Any], run: str | None) -> dict[str, Any]:
        with self.store.transaction(owner, writes=True) as (connection, number):
            at = times.now()
            done = [
                one
                for group in part.get("groups", [part["ids"]])
                for one in merging.merge(connection, number, group, at, run)
            ]
        return {"merged": len(done), "ids": done}

    # Facts from what was said

    def _derive(self, owner: str, part: Mapping[str, Any], run: str | None) -> dict[str, Any]:
        by_model = part.get("by") == "model"
        with self.store.transaction(owner) as (connection, number):
            said, memories = planning.sources(connection, number, owner, part["ids"])
            seen = concluding.considered(connection, number, "facts") if by_model else set()
        if by_model and (self.model is None or len(said) < 2 or seen.issuperset(one.id for one in said)):
            return {}
        if by_model and self.model is not None:
            facts = deriving.read_together(self.model, said, memories)
        else:
            facts = list(deriving.repeated(said, memories))
        facts = [fact._replace(text=self.store.masked(owner, fact.text)) for fact in facts]
        self.store.embed([fact.text for fact in facts])
        policy = "llm/1" if by_model else "rules/1"
        batches = (facts[at : at + WRITTEN] for at in range(0, len(facts), WRITTEN))
        kept = [memory.id for some in batches for memory in self._concluded(owner, some, run, policy)]
        if by_model:
            with self.store.transaction(owner, writes=True) as (connection, number):
                read = planning.there(connection, number, [one.id for one in said])
                concluding.consider(connection, number, "facts", sorted(read), times.now())
        return {"derived": len(kept), "ids": kept}

    def _concluded(self, owner: str, facts: Sequence[deriving.Fact], run: str | None, policy: str) -> list[Memory]:
        """Write facts whose sources are still there, and that nobody has written meanwhile."""
        with self.store.transaction(owner, writes=True) as (connection, number):
            there = planning.there(connection, number, [one.id for fact in facts for one in fact.sources])
            return [
                self._conclude(connection, number, _of(owner, fact), None, run, policy)
                for fact in facts
                if there.issuperset(one.id for one in fact.sources)
                and not semantic.same_text_rows(connection, number, fact.text)
            ]

    def _conclude(
        self, connection: Connection, number: int, memory: Memory, known: Memory | None, run: str | None, policy: str
    ) -> Memory:
        reason = f"concluded from {len(memory.derived_from)} sources"
        return concluding.conclude(
            *(connection, number, memory, known), policy=policy, reason=reason, embed=self.store.vector, run=run
        )

    # Summaries of conversations

    def _roll_up(self, owner: str, part: Mapping[str, Any], run: str | None) -> dict[str, Any]:
        with self.store.transaction(owner) as (connection, number):
            what = planning.rolling(connection, number, owner, part["name"])
        if what is None:
            return {}
        made, policy = rolling_up.rolled_up(owner, what, times.now(), self.model)
        made = self.store.masked(owner, made)
        self.store.embed([made.text])
        with self.store.transaction(owner, writes=True) as (connection, number):
            if planning.rolling(connection, number, owner, part["name"]) != what:
                return {}
            known = [
                memory
                for memory in semantic.find(connection, number, kinds=("summary",))
                if memory.metadata.get("rolled_up") == what.name
            ]
            kept = self._conclude(connection, number, made, known[0] if known else None, run, policy)
        return {"rolled_up": 1, "ids": [kept.id]}

    # What was lived

    def _learn(self, owner: str, part: Mapping[str, Any], run: str | None) -> dict[str, Any]:
        with self.store.transaction(owner) as (connection, number):
            left = {episode.id: episode for episode in planning.untaught(connection, number, owner, part["ids"])}
        learned: list[str] = []
        taught_nothing: list[str] = []
        for episode in (left[one] for one in part["ids"] if one in left):
            found = Procedures(self.store).learn(owner, episode, self.model)
            if found is not None and episode.id in found.learned_from:
                learned.append(found.id)
            else:
                taught_nothing.append(episode.id)
        if taught_nothing:
            with self.store.transaction(owner, writes=True) as (connection, number):
                concluding.consider(connection, number, "procedures", taught_nothing, times.now())
        return {"learned": len(learned), "ids": list(dict.fromkeys(learned))}

    def _understand(self, owner: str, part: Mapping[str, Any], run: str | None) -> dict[str, Any]:
        with self.store.transaction(owner) as (connection, number):
            episodes, known = planning.insight_of(connection, number, owner, part["ids"])
        if len(episodes) < insights.FEWEST or not insights.grown(episodes, known):
            return {}
        found = self.store.masked(owner, reflect.synthesise(episodes, self.model))
        text = found.text if found.lesson in found.text else f"{found.text} {found.lesson}"
        made = concluding.concluded(
            *(owner, text, found.episodes, times.now()),
            kind="insight",
            subject="agent",
            confidence=concluding.confidence(len(episodes)),
            metadata={"policy": found.policy},
        )
        self.store.embed([made.text])
        with self.store.transaction(owner, writes=True) as (connection, number):
            episodes, known = planning.insight_of(connection, number, owner, part["ids"])
            if len(episodes) != len(found.episodes) or not insights.grown(episodes, known):
                return {}
            live = known if known is not None and known.status == "active" else None
            kept = self._conclude(connection, number, made, live, run, found.policy)
        return {"insights": 1, "ids": [kept.id]}


def _of(owner: str, fact: deriving.Fact) -> Memory:
    last, candidate = fact.sources[-1], fact.candidate
    more = (
        {}
        if candidate is None
        else candidate.model_dump(include={"kind", "subject", "attribute", "value", "importance"})
    )
    source = Source(
        kind="inferred", thread=last.thread, message_id=last.message_id, quote=fact.quotes[-1], said_at=last.said_at
    )
    return concluding.concluded(
        *(owner, fact.text, [one.id for one in fact.sources], times.now()),
        **more,
        source=source,
        confidence=concluding.confidence(len(fact.sources)),
        valid_from=fact.sources[0].said_at,
        last_confirmed_at=last.said_at,
    )
