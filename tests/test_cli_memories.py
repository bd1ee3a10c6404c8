"""The commands that look at memories and change them by hand, through the command line's own entry."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from commanding import Outcome, Run, runner
from fakes import HashEmbeddings

from sharpwave.commands import entities, memories, recall, upkeep
from sharpwave.memory.records import Candidate, Decision, Message, Turn
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.turn_queue import TurnQueue


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("COLUMNS", "200")
    return runner(home, (memories, recall, upkeep, entities), monkeypatch, capsys)


def complaint(outcome: Outcome, code: int = 2) -> str:
    assert outcome.code == code, outcome
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith("sharpwave: ")
    return outcome.err


def test_a_memory_can_be_added_shown_changed_and_brought_back(run: Run) -> None:
    added = run(
        *("memories", "add", "Lives in Oslo", "--user", "ana", "--subject", "user", "--attribute", "home_city"),
        *("--value", "Oslo", "--importance", "0.9", "--tag", "home", "--tag", "city", "--json"),
    ).json
    assert (added["op"], added["version"], added["text"]) == ("ADD", 1, "Lives in Oslo")
    memory_id = added["memory_id"]

    shown = run("memories", "show", memory_id, "--user", "ana", "--json").json
    assert (shown["attribute"], shown["value"], shown["importance"]) == ("home_city", "Oslo", 0.9)
    assert shown["tags"] == ["home", "city"]

    assert run("memories", "edit", memory_id, "Lives in Lisbon", "--user", "ana", "--json").json["version"] == 2
    assert run("memories", "pin", memory_id, "--user", "ana", "--json").json["op"] == "PIN"
    assert run("memories", "show", memory_id, "--user", "ana", "--json").json["pinned"] is True
    run("memories", "pin", memory_id, "--off", "--user", "ana")
    assert run("memories", "show", memory_id, "--user", "ana", "--json").json["pinned"] is False

    deleted = run("memories", "delete", memory_id, "--user", "ana", "--reason", "a test")
    assert deleted.code == 0
    assert "kept by design" in deleted.out
    assert f"sharpwave memories restore {memory_id}" in deleted.out
    assert run("memories", "list", "--user", "ana", "--json").json["memories"] == []
    assert run("memories", "list", "--user", "ana").out.strip() == "Nothing to list."

    restored = run("memories", "restore", memory_id, "--version", "1", "--user", "ana", "--json").json
    assert restored["text"] == "Lives in Oslo"
    assert [m["text"] for m in run("memories", "list", "--user", "ana", "--json").json["memories"]] == ["Lives in Oslo"]


def test_a_history_is_in_the_order_of_time_and_every_row_has_one(run: Run, home: Path) -> None:
    times = [datetime(2026, 3, 2, hour, tzinfo=UTC) for hour in (9, 10, 11)]
    with MemoryStore.open(home, embeddings=HashEmbeddings()) as store:
        memory_id = None
        for at, op, text in zip(
            times, ("ADD", "UPDATE", "DELETE"), ("Has a cat", "Has two cats", "No cats"), strict=True
        ):
            message = Message(id=f"m{at.hour}", role="user", text=text)
            turn = Turn(owner="ana", thread="t1", messages=(message,), said_at=at)
            candidate = Candidate(text=text, quote=text, message_id=message.id, attribute="pet", value="cat")
            decision = Decision(op=op, candidate=candidate, target=memory_id, reason=f"because {op}", policy="rules/1")
            store.queue([turn])
            memory_id = store.apply(turn, [decision], revision=None)[0].memory_id
    assert memory_id

    told = run("memories", "history", memory_id, "--user", "ana", "--json").json
    assert [event["op"] for event in told["events"]] == ["ADD", "UPDATE", "DELETE"]
    stamps = [datetime.fromisoformat(event["at"]) for event in told["events"]]
    assert all(stamp.tzinfo is not None for stamp in stamps)
    assert stamps == sorted(stamps)
    assert [event["quote"] for event in told["events"]] == ["Has a cat", "Has two cats", "No cats"]
    assert (told["events"][1]["before"], told["events"][1]["after"]) == ("Has a cat", "Has two cats")
    assert told["events"][2]["status"] == "retracted"
    assert [version["valid_from"] for version in told["versions"]] == ["2026-03-02T09:00:00Z", "2026-03-02T10:00:00Z"]

    table = run("memories", "history", memory_id, "--user", "ana").out
    assert table.index("ADD") < table.index("UPDATE") < table.index("DELETE")
    assert "Has a cat → Has two cats" in table
    assert "because UPDATE (rules/1)" in table
    assert "“No cats”" in table


def test_the_ledger_shows_the_newest_decisions_and_undo_takes_them_back(run: Run) -> None:
    for text in ("One", "Two", "Three"):
        run("memories", "add", text, "--user", "ana")
    assert [e["after"] for e in run("ledger", "--user", "ana", "--last", "2", "--json").json["events"]] == [
        "Two",
        "Three",
    ]
    assert "added by hand (user)" in run("ledger", "--user", "ana").out

    undone = run("undo", "--user", "ana", "--last", "2", "--json").json["undone"]
    assert [one["text"] for one in undone] == ["Three", "Two"]
    assert [m["text"] for m in run("memories", "list", "--user", "ana", "--json").json["memories"]] == ["One"]
    assert run("undo", "--user", "ana").code == 0
    assert "nothing to undo" in complaint(run("undo", "--user", "ana"))
    assert len(run("ledger", "--user", "ana", "--json").json["events"]) == 6
    assert run("ledger", "--user", "nobody").out.strip() == "Nothing has been decided yet."


def test_one_turn_can_be_undone_by_its_name(run: Run, home: Path) -> None:
    with MemoryStore.open(home, embeddings=HashEmbeddings()) as store:
        for number in (1, 2):
            message = Message(id=f"m{number}", role="user", text=f"Fact {number}")
            turn = Turn(owner="ana", thread="t1", messages=(message,), said_at=datetime(2026, 3, number, tzinfo=UTC))
            candidate = Candidate(text=f"Fact {number}", quote=f"Fact {number}", message_id=message.id)
            store.queue([turn])
            store.apply(turn, [Decision(op="ADD", candidate=candidate, reason="new", policy="rules/1")], revision=None)
    assert [
        one["text"] for one in run("undo", "--user", "ana", "--turn", "m1", "--thread", "t1", "--json").json["undone"]
    ] == ["Fact 1"]
    assert "--turn and --thread together" in complaint(run("undo", "--user", "ana", "--turn", "m2"))
    assert "not both" in complaint(run("undo", "--user", "ana", "--turn", "m2", "--thread", "t1", "--last", "1"))
    assert "changed nothing" in complaint(run("undo", "--user", "ana", "--turn", "m9", "--thread", "t1"))


def test_the_beginning_of_an_id_stands_for_it_unless_it_is_ambiguous(run: Run, home: Path) -> None:
    with MemoryStore.open(home, embeddings=HashEmbeddings()) as store:
        for memory_id in ("abcdef-1", "abcdef-22", "fedcba-3"):
            store.add("ana", f"Memory {memory_id}", id=memory_id)
    assert run("memories", "show", "fedcba", "--user", "ana", "--json").json["id"] == "fedcba-3"
    assert run("memories", "show", "abcdef-2", "--user", "ana", "--json").json["id"] == "abcdef-22"
    error = complaint(run("memories", "delete", "abcdef", "--user", "ana"))
    assert "abcdef-1" in error
    assert "abcdef-2" in error
    assert "There is no memory 'fedcb'" in complaint(run("memories", "show", "fedcb", "--user", "ana"))
    assert "There is no memory" in complaint(run("memories", "show", "fedcba", "--user", "bo"))
    listed = run("memories", "list", "--user", "ana").out
    assert "abcdef-1 " in listed
    assert "abcdef-2 " in listed


def test_lists_can_be_narrowed_and_read_as_of_the_past(run: Run, home: Path) -> None:
    with MemoryStore.open(home, embeddings=HashEmbeddings()) as store:
        jan, may = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)
        store.add("ana", "Likes jazz", kind="preference", valid_from=jan)
        store.add("ana", "Lives in Oslo", valid_from=may)
        store.delete("ana", store.add("ana", "Owns a boat").memory_id or "")

    def texts(*words: str) -> list[str]:
        return [m["text"] for m in run("memories", "list", "--user", "ana", "--json", *words).json["memories"]]

    assert texts() == ["Likes jazz", "Lives in Oslo"]
    assert texts("--kind", "preference") == ["Likes jazz"]
    assert texts("--status", "retracted") == ["Owns a boat"]
    assert texts("--status", "all") == ["Likes jazz", "Lives in Oslo", "Owns a boat"]
    assert texts("--as-of", "2026-02-01") == ["Likes jazz"]
    assert "retracted" in complaint(run("memories", "list", "--user", "ana", "--status", "gone"))
    assert "preference" in complaint(run("memories", "list", "--user", "ana", "--kind", "idea"))
    assert "preference" in complaint(run("memories", "add", "Text", "--user", "ana", "--kind", "idea"))
    assert "ISO 8601" in complaint(run("memories", "list", "--user", "ana", "--as-of", "last May"))


def test_a_time_without_a_zone_is_read_in_the_zone_of_the_settings(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryStore.open(home, embeddings=HashEmbeddings()) as store:
        store.add("ana", "Lives in Tokyo", valid_from=datetime(2026, 3, 1, 12, tzinfo=UTC))
    command = ("memories", "list", "--user", "ana", "--json", "--as-of", "2026-03-01T20:00")
    assert len(run(*command).json["memories"]) == 1
    monkeypatch.setenv("SHARPWAVE_TIMEZONE", "Asia/Tokyo")
    assert run(*command).json["memories"] == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("memories", "show", "no-such-id", "--user", "ana"), "no-such-id"),
        (("memories", "history", "no-such-id", "--user", "ana"), "no-such-id"),
        (("memories", "restore", "no-such-id", "--user", "ana"), "no-such-id"),
        (("memories", "add", "  ", "--user", "ana"), "blank"),
        (("memories", "add", "Text", "--user", "ana", "--importance", "7"), "importance"),
        (("memories", "add", "Text", "--user", "ana", "--importance", "nan"), "importance"),
        (("memories", "add", "Text"), "--user"),
        (("memories", "add", "Text", "--user", " "), "blank"),
        (("undo", "--user", "ana", "--last", "0"), "at least 1"),
        (("ledger", "--user", "ana", "--last", "0"), "at least 1"),
        (("recall", "  ", "--user", "ana"), "blank"),
        (("recall", "jazz", "--user", "ana", "--store", "working"), "semantic"),
        (("recall", "jazz", "--user", "ana", "--k", "-1"), "k"),
        (("memories", "import", "no-such-file", "--user", "ana"), "no-such-file"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(run: Run, words: tuple[str, ...], says: str) -> None:
    assert says in complaint(run(*words))


def test_a_text_is_shown_as_it_is_and_steers_no_terminal(run: Run) -> None:
    run("memories", "add", "[bold]認証方式[/bold] \x1b[2J 🧑🏽‍🚀", "--user", "ana")
    shown = run("memories", "list", "--user", "ana").out
    assert "[bold]認証方式[/bold] \\x1b[2J 🧑🏽‍🚀" in shown
    assert "\x1b" not in shown
    stored = run("memories", "list", "--user", "ana", "--json")
    assert stored.json["memories"][0]["text"] == "[bold]認証方式[/bold] \x1b[2J 🧑🏽‍🚀"
    assert "認証方式" in stored.out


OWNERS = [
    "../../outside",
    "..",
    ".",
    "/outside/evil",
    "a/../../b",
    "..\\..\\outside",
    "CON",
    "ana%2f..%2fb",
    "用户 1",
    "a b",
]


def test_any_user_id_works_stays_itself_and_touches_no_other_file(run: Run, home: Path, tmp_path: Path) -> None:
    for owner in OWNERS:
        assert run("memories", "add", f"Belongs to {owner}", "--user", owner).code == 0
    for owner in OWNERS:
        lines = run("memories", "export", "--user", owner).out.splitlines()
        assert [json.loads(line)["text"] for line in lines if '"memory"' in line] == [f"Belongs to {owner}"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]
    assert {path.name for path in home.iterdir()} <= {
        *("chroma", "lock", "lock.next", "ledger.sqlite3", "ledger.sqlite3-wal", "ledger.sqlite3-shm")
    }


def test_an_export_goes_to_a_file_and_comes_back_from_it(run: Run, tmp_path: Path) -> None:
    run("memories", "add", "Lives in 東京", "--user", "ana")
    file = tmp_path / "ana.jsonl"
    told = run("memories", "export", str(file), "--user", "ana", "--json").json
    assert (told["memories"], told["utterances"], told["events"]) == (1, 0, 1)
    assert "東京" in file.read_text(encoding="utf-8")
    arrived = {"user": "bo", "memories": 1, "utterances": 0, "records": 0, "tool_uses": 0, "known": 0, "masked": 0}
    assert run("memories", "import", str(file), "--user", "bo", "--json").json == arrived
    assert "1 were there already" in run("memories", "import", str(file), "--user", "bo").out
    assert [m["text"] for m in run("memories", "list", "--user", "bo", "--json").json["memories"]] == ["Lives in 東京"]


def test_files_that_cannot_be_used_are_refused(run: Run, tmp_path: Path) -> None:
    assert "Cannot write" in complaint(run("memories", "export", str(tmp_path), "--user", "ana"))
    assert "Cannot write" in complaint(run("memories", "export", str(tmp_path / "no" / "file"), "--user", "ana"))
    garbage = tmp_path / "garbage.jsonl"
    garbage.write_bytes(bytes(range(256)))
    assert "garbage.jsonl" in complaint(run("memories", "import", str(garbage), "--user", "ana"))
    garbage.write_text('[{"role": "user", "content": "hi"}]', encoding="utf-8")
    assert "garbage.jsonl" in complaint(run("memories", "import", str(garbage), "--user", "ana"))
    garbage.write_text("", encoding="utf-8")
    assert "empty" in complaint(run("memories", "import", str(garbage), "--user", "ana"))


def test_recall_finds_only_what_belongs_to_the_user(run: Run) -> None:
    run("memories", "add", "Lives in Lima", "--user", "ana")
    run("memories", "add", "Lives in Oslo", "--user", "bo")
    found = run("recall", "lives in", "--user", "ana", "--json").json
    assert found["query"] == "lives in"
    assert [hit["text"] for hit in found["results"]] == ["Lives in Lima"]
    assert "parts" not in found["results"][0]
    assert "Lives in Lima" in run("recall", "lives in", "--user", "ana").out

    nothing = run("recall", "lives in", "--user", "cy", "--json")
    assert (nothing.code, nothing.json) == (0, {"query": "lives in", "results": []})
    told = run("recall", "lives in", "--user", "cy")
    assert (told.code, told.out.strip()) == (0, "Nothing is known about that.")


def test_recall_explains_its_scores_and_can_be_limited(run: Run, home: Path) -> None:
    with MemoryStore.open(home, embeddings=HashEmbeddings()) as store:
        start = datetime(2026, 3, 1, tzinfo=UTC)
        for number, text in enumerate(("I like jazz music", "Jazz music is loud", "I bought a jazz record")):
            message = Message(id=f"m{number}", role="user", text=text)
            turn = Turn(owner="ana", thread="t1", messages=(message,), said_at=start + timedelta(hours=number))
            store.queue([turn])
        store.index_pending()
        store.add("ana", "Likes jazz music", valid_from=start)

    def hits(*words: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = run("recall", "jazz music", "--user", "ana", "--json", *words).json["results"]
        return found

    assert {hit["store"] for hit in hits("--store", "episodic")} == {"episodic"}
    assert [hit["text"] for hit in hits("--store", "semantic")] == ["Likes jazz music"]
    assert len(hits("--k", "1")) == 1
    assert hits("--budget", "0") == []
    assert hits("--as-of", "2026-02-01") == []
    parts = hits("--explain", "--store", "semantic")[0]["parts"]
    assert set(parts) == {
        "keyword",
        "dense",
        "subject",
        "time",
        "tie_break",
        "summary",
        "cosine",
        "coverage",
        "learned",
        "total",
    }
    assert parts["coverage"] == 1
    table = run("recall", "jazz music", "--user", "ana", "--explain").out
    assert all(name in table for name in ("keyword", "dense", "subject", "tie_break", "cosine", "coverage"))
    assert "user in t1" in table


def test_stats_count_one_user_or_everybody(run: Run, home: Path) -> None:
    run("memories", "add", "One", "--user", "ana")
    run("memories", "add", "Two", "--user", "bo")
    memory_id = run("memories", "add", "Three", "--user", "bo", "--json").json["memory_id"]
    run("memories", "delete", memory_id, "--user", "bo")
    everybody = run("stats", "--json").json
    assert (everybody["owners"], everybody["memories"], everybody["events"]) == (2, {"active": 2, "retracted": 1}, 4)
    assert everybody["bytes"]["ledger"] > 0
    assert run("stats", "--user", "ana", "--json").json["memories"] == {"active": 1}
    assert run("stats", "--user", "cy", "--json").json["memories"] == {}
    assert "2 active, 1 retracted" in run("stats").out


def test_doctor_and_reindex_report(run: Run, home: Path) -> None:
    run("memories", "add", "Lives in Lima", "--user", "ana")
    (home / "chroma" / "chroma.sqlite3").write_bytes(b"")

    assert "sharpwave reindex" in complaint(run("recall", "Lima", "--user", "ana"), code=1)
    ill = run("doctor", "--json")
    assert ill.code == 1
    assert ill.json["healthy"] is False
    assert [check["name"] for check in ill.json["checks"] if not check["ok"]] == ["index"]
    told = run("doctor")
    assert told.code == 1
    assert "sharpwave reindex" in told.out

    assert run("reindex", "--json").json["rows"] == 1
    well = run("doctor", "--json")
    assert (well.code, well.json["healthy"]) == (0, True)
    hits = run("recall", "Lima", "--user", "ana", "--json").json["results"]
    assert [hit["text"] for hit in hits] == ["Lives in Lima"]


def test_another_embedder_is_refused_until_everything_is_embedded_anew(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("memories", "add", "Lives in Lima", "--user", "ana")
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings(dimensions=96))
    assert "sharpwave reindex --embed" in complaint(run("memories", "list", "--user", "ana"), code=1)
    monkeypatch.setattr("sharpwave.memory.doctor._probe", lambda store, sample: {"error": "not asked in this test"})
    told = run("doctor")
    assert told.code == 1
    assert "sharpwave reindex --embed" in told.out
    assert "indexed anew" in run("reindex", "--embed").out
    hits = run("recall", "Lima", "--user", "ana", "--json").json["results"]
    assert [hit["text"] for hit in hits] == ["Lives in Lima"]


def test_what_was_given_up_is_tried_again(run: Run, home: Path) -> None:
    said = Message(id="m1", role="user", text="I have a cat.")
    waiting = Turn(owner="ana", thread="t1", messages=(said,), said_at=datetime(2026, 3, 2, tzinfo=UTC))
    with MemoryStore.open(home, embeddings=HashEmbeddings()) as store:
        queue = TurnQueue(store.ledger)
        queue.put(waiting)
        queue.give_up(waiting, "The chat model failed.")
        assert store.pending() == []
    assert json.loads(run("retry", "--user", "bo", "--json").out) == {"user": "bo", "written": 0, "waiting": 0}
    assert "1 messages written" in run("retry").out
    assert "I have a cat." in run("memories", "list", "--user", "ana").out


def test_entities_are_listed_shown_related_and_merged(run: Run) -> None:
    slot = ("--subject", "Anna", "--attribute", "employer", "--value")
    run("memories", "add", "Anna works at Siemens", *slot, "Siemens", "-u", "ana")
    run("memories", "add", "Anna works at Simens", *slot, "Simens", "-u", "ana")
    listed = run("entities", "list", "-u", "ana", "--json").json["entities"]
    assert {(one["name"], one["type"]) for one in listed} == {
        ("Anna", "person"),
        ("Siemens", "organization"),
        ("Simens", "organization"),
    }
    assert "Siemens" in run("entities", "list", "-u", "ana", "--type", "organization").out
    made = run("entities", "relate", "user", "sister", "Anna", "-u", "ana", "--json").json
    assert (made["source"], made["relation"], made["target_name"]) == ("user", "sibling", "Anna")
    assert "sibling of the user" in run("entities", "show", "sister", "-u", "ana").out
    assert run("entities", "show", "Anna", "-u", "ana", "--json").json["relations"]
    assert "a few letters" in run("entities", "merge", "--suggest", "-u", "ana").out
    kept = run("entities", "merge", "Siemens", "Simens", "-u", "ana", "--json").json
    assert kept["aliases"] == ["Simens"]
    everything = run("entities", "list", "--all", "-u", "ana", "--json").json["entities"]
    (other,) = [one["id"] for one in everything if one["status"] == "merged"]
    assert "alone again" in run("entities", "unmerge", other[:8], "-u", "ana").out
    for words in (
        ("show", "Zoe"),
        ("merge", "Anna", "Siemens"),
        ("merge",),
        ("unmerge", "Anna"),
        ("list", "--type", "x"),
    ):
        failed = run("entities", *words, "-u", "ana")
        assert failed.code == 2 and failed.err.startswith("sharpwave:") and not failed.out
