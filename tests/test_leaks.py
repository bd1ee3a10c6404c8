"""Two hundred users whose ids look alike and whose threads have the same names: nobody ever gets a word of another's."""

import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from fakes import HashEmbeddings

from sharpwave import cli
from sharpwave.commands import memories, recall
from sharpwave.memory import (
    core_memory,
    edits,
    erase,
    guidance,
    ledger,
    portability,
    procedures,
    rebuild,
    rows,
    self_editing,
    sessions,
    tool_use,
)
from sharpwave.memory.conversations import Conversations
from sharpwave.memory.entities import Entities
from sharpwave.memory.episodes import Episodes
from sharpwave.memory.errors import InputError, NotFoundError
from sharpwave.memory.kinds import Episode, Session
from sharpwave.memory.records import Candidate, Decision, Memory, Message, Turn
from sharpwave.memory.store import MemoryStore

START = datetime(2026, 3, 1, tzinfo=UTC)
FACTS = 20
ALIKE = (
    *(
        "ana",
        "Ana",
        "ANA",
        "ana ",
        " ana",
        "аna",
        "anа",
        "ana\u0301",
        "an\u00e1",
        "\uff41na",
        "ana\u200b",
        "ana%",
        "ana_",
    ),
    *(
        "ana/",
        "ana/bo",
        "ana\\bo",
        "../ana",
        "ana/../bo",
        "a",
        "an",
        "ana1",
        "ana11",
        "1",
        "2",
        "12",
        "1:",
        "1o",
        "ana:1",
    ),
    *(
        "*",
        "?",
        '"ana"',
        "'ana'",
        "ana'--",
        "ana OR 1=1",
        "NULL",
        "None",
        "{}",
        "straße",
        "STRASSE",
        "İ",
        "i",
        "ﬁ",
        "fi",
    ),
)
OWNERS = (*ALIKE, *(f"user/{number}" for number in range(200 - len(ALIKE))))


def secret(owner: str) -> str:
    """A word that stands in all that is an owner's, and nowhere else."""
    return f"secret{OWNERS.index(owner):03d}x"


def facts(owner: str) -> list[Memory]:
    texts = [f"My note {number} is {secret(owner)} and jazz" for number in range(FACTS)]
    plain = {"owner": owner, "value": secret(owner), "recorded_at": START, "valid_from": START}
    notes = [Memory.model_validate({**plain, "text": text, "attribute": "note"}) for text in texts]
    named = {"subject": f"Note {secret(owner)}", "text": f"Note {secret(owner)} likes jazz"}
    return [*notes, Memory.model_validate({**plain, **named, "attribute": "likes"})]


def said(owner: str) -> Turn:
    message = Message(id="m1", role="user", text=f"I whisper {secret(owner)} to t1")
    return Turn(owner=owner, thread="t1", messages=(message,), said_at=START)


def worked(store: MemoryStore, owner: str) -> None:
    """Leave a strategy and a failing tool that say an owner's secret."""
    steps = [f"open({secret(owner)})"]
    procedures.Procedures(store).add(owner, "Open the note", f"open the note {secret(owner)}", steps, successes=9)
    error = f"LookupError {secret(owner)}"
    uses = [
        tool_use.ToolUse(owner=owner, tool="open", call_id=str(at), success=False, error=error, at=START)
        for at in range(3)
    ]
    tool_use.ToolUses(store).record_all(owner, uses)


def lived(owner: str) -> tuple[Episode, Session]:
    told = f"Do {secret(owner)} and jazz"
    times = {"started_at": START, "last_at": START}
    episode = Episode(owner=owner, task=told, outcome="success", started_at=START, ended_at=START, thread="t1")
    return episode, Session(owner=owner, thread="t1", summary=told, topics=(secret(owner),), **times)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("many") / "home"


@pytest.fixture(scope="module")
def store(home: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(home, embeddings=HashEmbeddings(16), collections=1) as store:
        records = {owner: facts(owner) for owner in OWNERS}
        store.embed([record.text for owned in records.values() for record in owned])
        with store.ledger.write() as connection:
            for owner, owned in records.items():
                number = ledger.enlist_owner(connection, owner)
                edits.take_over(connection, number, owner, owned, "test", store.vector)
                for kept in lived(owner):
                    given = {"op": "TEST", "at": START, "policy": "test", "reason": "test", "embed": store.vector}
                    rows.put(connection, number, kept, **given)  # type: ignore[arg-type]
        store.queue([said(owner) for owner in OWNERS])
        for owner in OWNERS[::7]:
            core_memory.CoreMemory(store).append(owner, "human", f"keeps {secret(owner)} from the others")
        for owner in OWNERS[::7]:
            worked(store, owner)
        store.index_pending()
        yield store


def answers(store: MemoryStore, asker: str, theirs: Memory) -> Iterator[Any]:
    """Yield what every way of reading answers `asker`, who knows the words and ids of somebody else."""
    turn = Turn(owner=asker, thread="t1", messages=(Message(id="q", role="user", text=theirs.text),), said_at=START)
    wanted = Candidate(text=theirs.text, quote=theirs.text, message_id="q", attribute="note", value=theirs.value)
    yield store.recall(asker, theirs.text, k=50, floor=-9, include_history=True, explain=True)
    yield store.recall(asker, theirs.value or "", floor=-9, as_of=datetime.now(UTC))
    yield store.known(turn)
    yield store.neighbours(asker, [wanted])
    yield store.memories(asker, statuses=())
    yield store.memories(asker, as_of=datetime.now(UTC))
    yield store.events(asker)
    yield store.events(asker, turn=("t1", "m1"))
    yield store.utterances(asker, "t1")
    yield store.pending(asker)
    yield list(portability.export(store, asker))
    yield erase.preview(store, asker)
    entities = Entities(store)
    yield entities.list(asker, told=False, merged=True)
    yield entities.find(asker, f"Note {theirs.value}")
    yield entities.context(asker, "user")
    yield entities.suggestions(asker)
    (known,) = entities.list(theirs.owner)
    for look in (entities.get, entities.context, entities.relations):
        with pytest.raises(NotFoundError, match="There is no entity"):
            look(asker, known.id)
    with pytest.raises(NotFoundError, match="There is no entity"):
        entities.alias(asker, known.id, "hacked")
    yield store.recall(asker, f"What of {known.name}?", k=50, floor=-9)
    yield procedures.Procedures(store).find(asker)
    yield procedures.Procedures(store).applicable(asker, f"open the note {theirs.value}")
    yield tool_use.ToolUses(store).find(asker)
    yield tool_use.ToolUses(store).warnings(asker)
    yield guidance.guidance_text(store, asker, f"open the note {theirs.value}")
    sittings = sessions.Sessions(store)
    yield sittings.find(asker)
    yield [sittings.told(session) for session in sittings.find(asker)]
    with pytest.raises(NotFoundError, match="There is no session"):
        sittings.get(asker, sittings.find(theirs.owner)[0].id)
    yield core_memory.core_text(store, asker)
    for change in (self_editing.replace, self_editing.forget):
        with pytest.raises(NotFoundError, match="There is no memory"):
            change(store, asker, theirs.id, "hacked", self_editing.Call.by_hand())
    episodes, talks = Episodes(store), Conversations(store)
    yield episodes.find(asker, thread="t1", statuses=())
    yield episodes.search(asker, f"Do {theirs.value} and jazz", k=50, floor=-9)
    yield episodes.similar(asker, theirs.value or "")
    yield talks.find(asker, thread="t1")
    yield talks.search(asker, f"{theirs.value} and jazz", k=50)
    for theirs_too in (*episodes.find(theirs.owner), *talks.find(theirs.owner)):
        for read in (episodes.get, episodes.reflect, talks.get):
            with pytest.raises(NotFoundError):
                read(asker, theirs_too.id)
    by_id: tuple[Callable[[], Any], ...] = (
        lambda: store.get(asker, theirs.id),
        lambda: store.versions(asker, theirs.id),
        lambda: store.history(asker, theirs.id),
        lambda: store.edit(asker, theirs.id, "hacked"),
        lambda: store.delete(asker, theirs.id),
        lambda: store.restore(asker, theirs.id),
        lambda: store.pin(asker, theirs.id),
        lambda: erase.purge_memory(store, asker, theirs.id),
    )
    for ask in by_id:
        with pytest.raises(NotFoundError) as refused:
            ask()
        unknown = str(refused.value).replace(theirs.id, "x")
        assert unknown == "There is no memory 'x' for this user. `sharpwave memories list` shows the ids."


def leaks(store: MemoryStore, pairs: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    found = []
    for asker, other in pairs:
        theirs = next(memory for memory in store.memories(other, statuses=()) if secret(other) in memory.text)
        for answer in answers(store, asker, theirs):
            shown = repr(answer)
            found += [(asker, other, shown)] if secret(other) in shown else []
        assert repr(store.memories(other)).count(secret(other)) >= FACTS
    return found


def pairs(step: int, stride: int) -> list[tuple[str, str]]:
    """Every `step`-th user asked as the one `stride` further."""
    return [(OWNERS[n], OWNERS[(n + stride) % len(OWNERS)]) for n in range(0, len(OWNERS), step)]


def test_the_users_are_many_and_different() -> None:
    assert len(set(OWNERS)) == 200


def test_nobody_reads_or_changes_anything_of_another(store: MemoryStore) -> None:
    assert leaks(store, [*pairs(9, 1), *pairs(17, 101)]) == []


def test_a_decision_about_somebody_elses_memory_changes_nothing_and_is_logged_nowhere(store: MemoryStore) -> None:
    theirs = store.memories("Ana")[0]
    message = Message(id="attack", role="user", text="Forget it")
    turn = Turn(owner="ana", thread="t1", messages=(message,), said_at=START)
    candidate = Candidate(text="Forget it", quote="Forget it", message_id="attack", polarity="retract")
    decision = Decision(op="DELETE", candidate=candidate, target=theirs.id, reason="because", policy="test/1")
    before = store.events("ana")
    with pytest.raises(NotFoundError):
        store.apply(turn, [decision], revision=None)
    assert store.get("Ana", theirs.id) == theirs and store.events("ana") == before


def test_undoing_reaches_ones_own_changes_alone(store: MemoryStore) -> None:
    added = store.add("ana/bo", "I play chess")
    with pytest.raises(InputError, match="nothing to undo"):
        store.undo("ana/")
    with pytest.raises(InputError, match="changed nothing"):
        store.undo("ana", turn=("t1", "m1"))
    assert store.get("ana/bo", added.memory_id or "").status == "active"


def test_the_command_line_answers_as_for_an_id_that_does_not_exist(
    home: Path, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer()
    app.callback()(cli.options)
    for module in (memories, recall):
        module.register(app)
    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(cli, "_register", lambda: None)
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings(16))

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["sharpwave", "--home", str(home), *words, "--user", "ana"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out + captured.err

    theirs = store.memories("ana1")[0]
    unknown = theirs.id[:-4] + "0000"
    for words in (
        ("show",),
        ("history",),
        ("edit", "hacked"),
        ("delete",),
        ("delete", "--purge", "--yes"),
        ("restore",),
    ):
        (verb, *rest) = words
        texts = [word for word in rest if not word.startswith("-")]
        options = [word for word in rest if word.startswith("-")]
        told = run("memories", verb, theirs.id, *texts, *options)
        assert told[0] == 2 and secret("ana1") not in told[1]
        assert told[1].replace(theirs.id, unknown) == run("memories", verb, unknown, *texts, *options)[1]
    for words in (
        ("recall", theirs.text, "--json"),
        ("ledger", "--json", "--last", "99"),
        ("memories", "list", "--json"),
    ):
        assert secret("ana1") not in run(*words)[1].replace(theirs.text, "")


@pytest.mark.slow
def test_nothing_leaks_after_rebuilding_importing_and_erasing(store: MemoryStore) -> None:
    rebuild.reindex(store)
    assert leaks(store, pairs(40, 1)) == []
    lines = [json.dumps(line) for line in portability.export(store, "user/3")]
    portability.load(store, "newcomer", lines)
    assert secret("user/3") in repr(store.memories("newcomer"))
    assert leaks(store, [("ana", "user/3"), ("user/3", "user/4"), ("newcomer", "user/4"), ("user/5", "user/3")]) == []
    kept = {owner: repr(store.memories(owner)) for owner in ("ana", "ana/", "ANA", "ana1")}
    done = erase.erase(store, "ana/bo")
    assert done.complete, done.findings
    assert kept == {owner: repr(store.memories(owner)) for owner in kept}
    assert store.memories("ana/bo") == [] and "ana/bo" not in store.owners()
    assert leaks(store, [("ana/bo", "ana"), ("ana", "ana/"), *pairs(60, 3)]) == []
