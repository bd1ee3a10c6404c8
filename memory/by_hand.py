"""Changing memories by hand, and taking over what was remembered elsewhere."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection

from sharpwave.memory import edits, episodic, ledger, portability, times, undoing
from sharpwave.memory.applying import Applied
from sharpwave.memory.ledger import check_owner
from sharpwave.memory.lookup import Lookup
from sharpwave.memory.records import Memory, Utterance


class ByHand(Lookup):
    """The part of `MemoryStore` that people use themselves. Each call is an event in the log."""

    def add(self, owner: str, text: str, **fields: Any) -> Applied:
        """Add a memory by hand; `fields` are those of `Memory` (kind, subject, attribute, value, importance, tags, metadata…)."""
        text, fields = self.masked(owner, (text.strip(), fields))
        return self._edit(owner, [text], lambda c, n: edits.add(c, n, owner, text, fields, self.vector))

    def edit(self, owner: str, memory_id: str, text: str) -> Applied:
        """Give a memory a new text, as a new version."""
        text = self.masked(owner, text.strip())
        return self._edit(owner, [text], lambda c, n: edits.edit(c, n, memory_id, text, self.vector))

    def delete(self, owner: str, memory_id: str, reason: str = "deleted by hand") -> Applied:
        """Retract a memory. It leaves a tombstone and can be restored."""
        reason = self.masked(owner, reason)
        return self._edit(owner, [], lambda c, n: edits.delete(c, n, memory_id, reason))

    def release(self, owner: str, memory_id: str) -> Applied:
        """Let a memory out of quarantine: it is recalled from now on."""
        return self._edit(owner, [], lambda c, n: edits.release(c, n, memory_id))

    def drop(self, owner: str, memory_id: str) -> Applied:
        """Retract a memory that is in quarantine, as one that never held."""
        return self._edit(owner, [], lambda c, n: edits.drop(c, n, memory_id))

    def restore(self, owner: str, memory_id: str, version: int | None = None) -> Applied:
        """Make a version of a memory the current one again; the newest one before the present without `version`."""
        texts = [memory.text for memory in self.versions(owner, memory_id)]
        return self._edit(owner, texts, lambda c, n: edits.restore(c, n, memory_id, version, self.vector))

    def keep(self, owner: str, memory_id: str) -> Applied:
        """Settle the review of a memory: it still holds, as of now."""
        return self._edit(owner, [], lambda c, n: edits.keep(c, n, memory_id))

    def pin(self, owner: str, memory_id: str, pinned: bool = True) -> Applied:
        """Pin a memory, so that no decision changes it and nothing forgets it; or let it go again."""
        return self._edit(owner, [], lambda c, n: edits.pin(c, n, memory_id, pinned))

    def undo(self, owner: str, *, last: int = 1, turn: tuple[str, str] | None = None) -> list[Applied]:
        """Take back the owner's last changes, newest first, or those of one turn (thread, message id), by new events."""
        with self.transaction(owner) as (connection, number):
            chosen = edits.undoable(connection, number, last=last, turn=turn)
        self.embed([event.detail["before"]["text"] for event in chosen if event.detail["before"]])

        def work(connection: Connection) -> list[Applied]:
            number = ledger.enlist_owner(connection, owner)  # again: who was erased meanwhile has no number
            return [undoing.undo(connection, number, event, self.vector, times.now()) for event in chosen]

        return self._commit(work)

    def put_memories(self, owner: str, records: Sequence[Memory], reason: str) -> int:
        """Write memories that come from elsewhere with all their fields; ids that are there already are left alone. Returns how many were new."""
        records = self.masked(owner, list(records))
        self.embed([record.text for record in records])
        return self._commit(
            lambda c: edits.take_over(
                c, ledger.enlist_owner(c, check_owner(owner)), owner, records, reason, self.vector
            )
        )

    def put_utterances(self, owner: str, records: Sequence[Utterance]) -> int:
        """Keep messages that come from elsewhere; those that the owner has already are left alone. Returns how many were new."""
        records = self.masked(owner, list(records))
        self.embed([episodic.spoken(record.speaker, record.text) for record in records])
        return self._write(
            lambda c: portability.put_utterances(
                c, ledger.enlist_owner(c, check_owner(owner)), owner, records, self.vector
            )
        )

    def _edit(self, owner: str, texts: Sequence[str], work: Callable[[Connection, int], Applied]) -> Applied:
        self.embed([text for text in texts if text])
        return self._commit(lambda connection: work(connection, ledger.enlist_owner(connection, check_owner(owner))))
