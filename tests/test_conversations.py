"""Conversation files: every format that is read, and every way in which one can be broken."""

import json
import os
import tracemalloc
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sharpwave.conversations import count, read
from sharpwave.memory.errors import InputError
from sharpwave.memory.records import Turn

HELLO = {"role": "user", "content": "I live in Oslo."}
REPLY = {"role": "assistant", "content": "Noted."}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "talk.dat"


def turns(file: Path, content: Any, format: Any = "auto", owner: str | None = "ana", **options: Any) -> list[Turn]:
    """Write `content` (bytes, text, or JSON) to the file and read it."""
    if not isinstance(content, bytes):
        content = (content if isinstance(content, str) else json.dumps(content)).encode()
    file.write_bytes(content)
    return list(read(file, format, owner=owner, **options))


def lines(*messages: Any) -> str:
    return "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in messages)


def texts(read_turns: list[Turn]) -> list[list[str]]:
    return [[message.text for message in turn.messages] for turn in read_turns]


class TestMessages:
    def test_a_turn_is_what_the_user_says_and_what_answers_it(self, file: Path) -> None:
        messages = [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Weather in Oslo?"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "weather"}}]},
            {"role": "tool", "content": "4 °C", "tool_call_id": "c1"},
            {"role": "assistant", "content": "Cold."},
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "Thanks!", "name": "Ana"},
            {"role": "function", "name": "log", "content": "done"},
        ]
        first, second = turns(file, messages)
        assert [(m.role, m.text) for m in first.messages] == [
            ("user", "Weather in Oslo?"),
            ("tool", "4 °C"),
            ("assistant", "Cold."),
        ]
        assert (first.owner, first.thread) == ("ana", "talk")
        assert [(m.role, m.speaker) for m in second.messages] == [("user", "Ana"), ("tool", "log")]

    def test_text_blocks_are_kept_and_images_dropped(self, file: Path) -> None:
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        messages = [
            {"role": "user", "content": [{"type": "text", "text": "I love night hikes"}, picture, "in the rain"]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Nice."}, {"type": "reasoning"}]},
            {"role": "user", "content": [picture]},
            {"role": "assistant", "content": [{"type": "text", "text": {"value": "What a picture!"}}]},
        ]
        found = turns(file, messages)
        assert texts(found) == [["I love night hikes\nin the rain", "Nice."], ["What a picture!"]]
        assert "AAAA" not in str(found)

    def test_blank_and_missing_texts_are_skipped(self, file: Path) -> None:
        messages = [
            HELLO,
            {"role": "assistant", "content": " \n"},
            {"role": "user", "content": None},
            {"role": "assistant", "refusal": "No."},
        ]
        assert texts(turns(file, messages)) == [["I live in Oslo."]]

    def test_a_document_may_hold_one_conversation_or_many(self, file: Path) -> None:
        many = [{"messages": [HELLO, REPLY], "id": "c-7", "user": "bob"}, {"messages": [HELLO]}]
        assert [t.thread for t in turns(file, {"messages": [HELLO, REPLY]})] == ["talk"]
        assert [(t.owner, t.thread) for t in turns(file, many)] == [("bob", "c-7"), ("ana", "talk/2")]
        assert [t.thread for t in turns(file, [[HELLO], [HELLO]], thread="old")] == ["old/1", "old/2"]
        assert texts(turns(file, json.dumps(many, indent=2))) == [["I live in Oslo.", "Noted."], ["I live in Oslo."]]

    def test_long_text_and_text_of_any_script_passes_unchanged(self, file: Path) -> None:
        said = "я живу в 東京 \u2028 " * 400_000
        assert len(said.encode()) > 5_000_000
        assert turns(file, [{"role": "user", "content": said}])[0].user_text == said
        assert turns(file, lines({"role": "user", "content": said}, REPLY))[0].user_text == said

    def test_half_a_surrogate_pair_is_replaced(self, file: Path) -> None:
        found = turns(file, '[{"role": "user", "content": "a\\ud83d b \\ud83d\\ude00"}]')
        assert found[0].user_text == "a\ufffd b 😀"


class TestLines:
    def test_each_line_may_name_user_thread_id_time_and_speaker(self, file: Path) -> None:
        row = {
            **HELLO,
            "user": "эмиль/1. x",
            "conversation_id": 7,
            "id": "m1",
            "timestamp": "2024-05-01T10:00:00+02:00",
        }
        (turn,) = turns(file, lines({**row, "speaker": "Emil"}))
        assert (turn.owner, turn.thread, turn.message_id) == ("эмиль/1. x", "7", "m1")
        assert turn.said_at == datetime(2024, 5, 1, 8, tzinfo=UTC)
        assert turn.messages[0].speaker == "Emil"

    def test_another_user_or_thread_ends_a_turn(self, file: Path) -> None:
        rows = [{**HELLO, "thread": "a"}, {**REPLY, "thread": "b"}, {**REPLY, "thread": "b", "owner": "bob"}]
        assert [(t.owner, t.thread, len(t.messages)) for t in turns(file, lines(*rows))] == [
            ("ana", "a", 1),
            ("ana", "b", 1),
            ("bob", "b", 1),
        ]

    def test_a_line_may_be_a_conversation(self, file: Path) -> None:
        found = turns(file, lines({"messages": [HELLO, REPLY]}, {"messages": [HELLO], "user": "bob"}))
        assert [(t.owner, t.thread, len(t.messages)) for t in found] == [("ana", "talk/1", 2), ("bob", "talk/2", 1)]

    def test_blank_lines_and_windows_line_ends_are_nothing(self, file: Path) -> None:
        assert len(turns(file, "\r\n" + lines(HELLO, REPLY).replace("\n", "\r\n\r\n"))) == 1

    def test_a_long_file_is_not_held_in_memory(self, file: Path) -> None:
        file.write_text(lines(*({"role": "user", "content": f"{i} " + "word " * 400} for i in range(5_000))))
        tracemalloc.start()
        assert count(file, owner="ana") == 5_000
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < file.stat().st_size / 4


class TestIdentity:
    def test_ids_are_the_same_each_time_and_after_the_file_has_grown(self, file: Path) -> None:
        rows = [HELLO, REPLY, HELLO, {"role": "user", "content": "Ça va"}]
        first = turns(file, lines(*rows[:3]))
        grown = turns(file, "\ufeff" + lines(*rows))
        as_document = turns(file, rows)
        assert len({t.message_id for t in grown}) == 3
        assert [t.message_id for t in grown[:2]] == [t.message_id for t in first]
        assert [t.message_id for t in as_document] == [t.message_id for t in grown]

    def test_the_same_words_in_another_thread_are_another_message(self, file: Path) -> None:
        a, b = turns(file, [[HELLO], [HELLO]])
        assert a.message_id != b.message_id

    def test_the_same_id_twice_in_a_thread_is_refused(self, file: Path) -> None:
        row = {**HELLO, "id": 1}
        assert len(turns(file, [[row], [row]])) == 2
        with pytest.raises(InputError, match="message 2 has the id '1' of an earlier message"):
            turns(file, [row, row])

    @pytest.mark.parametrize("owner", ["ana/../b", "a.b c", "王小明", " ", ""])
    def test_an_owner_is_any_text_that_is_not_blank(self, file: Path, owner: str) -> None:
        if owner.strip():
            assert turns(file, [HELLO], owner=owner)[0].owner == owner
            assert turns(file, [{**HELLO, "user": owner}])[0].owner == owner
            return
        for content, named in (([HELLO], owner), ([{**HELLO, "user": owner}], "ana")):
            with pytest.raises(InputError, match="not blank"):
                turns(file, content, owner=named)

    @pytest.mark.parametrize("value", [7, True, ["ana"], {"id": "ana"}])
    def test_an_owner_that_is_no_text_is_refused(self, file: Path, value: Any) -> None:
        with pytest.raises(InputError, match=r'line 2 "user" is (a number|true or false|a list|an object)'):
            turns(file, lines(HELLO, {**HELLO, "user": value}))

    def test_no_owner_at_all_is_refused(self, file: Path) -> None:
        with pytest.raises(InputError, match=r'message 1 names no "user".*--user'):
            turns(file, [HELLO], owner=None)


class TestTimes:
    @pytest.mark.parametrize(
        "value", ["2024-05-01T10:00:00Z", "2024-05-01T12:00:00+02:00", 1714557600, 1714557600.0, 1714557600000]
    )
    @pytest.mark.parametrize("key", ["timestamp", "created_at", "create_time"])
    def test_times_are_iso_or_seconds_or_milliseconds(self, file: Path, key: str, value: Any) -> None:
        assert turns(file, [{**HELLO, key: value}])[0].said_at == datetime(2024, 5, 1, 10, tzinfo=UTC)

    def test_naive_times_are_read_in_the_zone(self, file: Path) -> None:
        (turn,) = turns(file, [{**HELLO, "timestamp": "2024-05-01T10:00:00"}], timezone="Asia/Tokyo")
        assert turn.said_at == datetime(2024, 5, 1, 1, tzinfo=UTC)
        assert turn.timezone == "Asia/Tokyo"
        (turn,) = turns(file, [HELLO], timezone="Asia/Tokyo", said_at=datetime(2024, 5, 1, 10))
        assert turn.said_at == datetime(2024, 5, 1, 1, tzinfo=UTC)

    def test_messages_without_a_time_follow_by_a_second(self, file: Path) -> None:
        conversation = {"created_at": "2024-05-01T10:00:00Z", "messages": [HELLO, REPLY, HELLO]}
        assert [t.said_at.second for t in turns(file, conversation)] == [0, 2]
        start = datetime(2024, 5, 1, 10, tzinfo=UTC)
        assert [t.said_at.second for t in turns(file, [[HELLO], [HELLO, REPLY, HELLO]], said_at=start)] == [0, 1, 3]

    def test_a_file_without_times_ends_when_it_was_written(self, file: Path) -> None:
        file.write_text(lines({**HELLO, "content": 'He said "role" twice.'}, HELLO, HELLO))
        os.utime(file, (1_700_000_000, 1_700_000_000))
        said = [t.said_at.timestamp() - 1_700_000_000 for t in read(file, owner="ana")]
        assert said == [-3, -2, -1]

    @pytest.mark.parametrize("value", ["soon", "9999-12-31T23:59:59Z", 1e300, float("nan"), True, ["2024-05-01"]])
    def test_what_is_no_time_is_refused(self, file: Path, value: Any) -> None:
        with pytest.raises(InputError, match='message 2 "timestamp" is no time'):
            turns(file, [HELLO, {**HELLO, "timestamp": value}])

    def test_an_unknown_zone_is_refused(self, file: Path) -> None:
        with pytest.raises(InputError, match="Mars"):
            turns(file, [HELLO], timezone="Mars/Olympus")


SAMPLE = {
    "sample_id": "conv-1",
    "qa": [],
    "conversation": {
        "speaker_a": "Cleo",
        "speaker_b": "Max",
        "session_10_date_time": "12:05 am on 1 January, 2024",
        "session_10": [{"speaker": "Max", "dia_id": "D10:1", "text": "Happy new year!"}],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [
            {"speaker": "Cleo", "dia_id": "D2:1", "text": "I swim."},
            {"speaker": "Max", "dia_id": "D2:2", "text": "Look.", "img_url": ["x"], "blip_caption": "a red kite"},
        ],
        "session_11_date_time": "3:00 pm on 2 January, 2024",
    },
}


class TestLocomo:
    def test_each_line_of_dialogue_is_a_turn_of_its_speaker(self, file: Path) -> None:
        found = turns(file, [SAMPLE], owner=None)
        assert [(t.owner, t.thread, t.message_id, t.messages[0].speaker) for t in found] == [
            ("conv-1", "session_2", "D2:1", "Cleo"),
            ("conv-1", "session_2", "D2:2", "Max"),
            ("conv-1", "session_10", "D10:1", "Max"),
        ]
        assert found[1].user_text == "Look. [shares a photo of a red kite]"
        assert found[1].said_at == datetime(2023, 5, 8, 13, 56, 1, tzinfo=UTC)
        assert found[2].said_at == datetime(2024, 1, 1, 0, 5, tzinfo=UTC)

    def test_session_times_are_read_in_the_zone(self, file: Path) -> None:
        assert turns(file, SAMPLE, timezone="Asia/Tokyo")[0].said_at == datetime(2023, 5, 8, 4, 56, tzinfo=UTC)

    @pytest.mark.parametrize(
        ("change", "hint"),
        [
            ({"session_2_date_time": "8.5.2023"}, 'conv-1, session_2 needs a "session_2_date_time"'),
            ({"session_2": [{"speaker": "Cleo", "text": "no id"}]}, "session_2, line 1 needs"),
            ({"session_2": "x"}, "session_2, line 1 needs"),
        ],
    )
    def test_a_broken_session_is_named(self, file: Path, change: dict[str, Any], hint: str) -> None:
        with pytest.raises(InputError, match=hint):
            turns(file, [{**SAMPLE, "conversation": {**SAMPLE["conversation"], **change}}])  # type: ignore[dict-item]

    def test_a_sample_without_a_name_is_refused(self, file: Path) -> None:
        with pytest.raises(InputError, match="sample_id of sample 1"):
            turns(file, [{**SAMPLE, "sample_id": None}])

    @pytest.mark.data
    def test_the_whole_benchmark_is_read(self, data: Path) -> None:
        found = list(read(data / "locomo10.json", owner=None))
        assert len(found) == 5_882
        assert len({t.owner for t in found}) == 10
        assert sum("[shares a photo of " in t.user_text for t in found) == 1_226
        assert all(a.said_at < b.said_at for a, b in pairwise(found) if a.owner == b.owner)


class TestBroken:
    @pytest.mark.parametrize(
        ("content", "hint"),
        [
            (b"", "is empty"),
            (b"\xef\xbb\xbf \n\n", "is empty"),
            ("[]", "no conversation in it.*openai.*jsonl.*locomo"),
            ("{}", "no conversation in it"),
            ("42", "no conversation in it"),
            ('[{"mapping": {}}]', "no conversation in it"),
            ("Dear diary,\ntoday I", r"line 1, column 1: Expecting value"),
            ('[\n {"role": "user",\n  "content": "x"', r"line 3, column 17"),
            (json.dumps([HELLO]).encode("utf-16"), "UTF-16"),
            (b"\x89PNG\r\n\x1a\n\x00\x00", "binary"),
            (b'[\n{"role": "user", "content": "caf\xe9"}]', "line 2 is not UTF-8"),
            ("[" * 100_000, "recursion"),
            ('[{"role": "user", "content": "a", "content": "b"}]', '"content" is given twice, in {"role": "user"'),
            ([HELLO, {"role": "wizard", "content": "x"}], "message 2 has the unknown role 'wizard'. Known are user"),
            ([HELLO, {"content": "x"}], 'message 2 has no "role"'),
            ([HELLO, "x"], "message 2 is .*not an object"),
            ([{"messages": [HELLO]}, {"messages": {}}], 'conversation 2 "messages" is an object, not a list'),
            ({"messages": [HELLO, {"role": "user", "text": "x"}]}, 'message 2 has no "content"'),
            ([{"role": "user", "content": {"a": 1}}], 'message 1 "content" is an object'),
        ],
    )
    def test_a_broken_document_is_told_in_one_line(self, file: Path, content: Any, hint: str) -> None:
        with pytest.raises(InputError, match=hint) as caught:
            turns(file, content)
        assert str(file) in str(caught.value) and "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("bad", "hint"),
        [
            ('{"role": "user", "content": "x"', "line 2, column 32"),
            ('{"role": "wizard", "content": "x"}', "line 2 has the unknown role 'wizard'"),
            ('{"role": "user", "role": "tool", "content": "x"}', 'line 2: the key "role" is given twice'),
            ('{"text": "x"}', 'line 2 has no "role"'),
            ('["x"]', "line 2 is neither"),
            ("null", "line 2 is neither"),
        ],
    )
    def test_a_bad_line_is_named(self, file: Path, bad: str, hint: str) -> None:
        with pytest.raises(InputError, match=hint):
            turns(file, f"{lines(HELLO)}{bad}\n{lines(HELLO)}")

    def test_a_bad_first_line_does_not_hide_the_format(self, file: Path) -> None:
        with pytest.raises(InputError, match="line 1, column 32"):
            turns(file, '{"role": "user", "content": "x"\n' + lines(HELLO))

    def test_a_line_that_is_not_utf_8_is_named(self, file: Path) -> None:
        with pytest.raises(InputError, match="line 3 is not UTF-8"):
            turns(file, lines(HELLO, REPLY).encode() + b'{"role": "user", "content": "caf\xe9"}\n')

    def test_the_turns_before_a_bad_line_come_first_and_count_refuses_it(self, file: Path) -> None:
        file.write_text(lines(HELLO, HELLO) + "oops\n")
        reading = read(file, owner="ana")
        assert next(reading).user_text == "I live in Oslo."
        with pytest.raises(InputError, match="line 3"):
            list(reading)
        with pytest.raises(InputError, match="line 3"):
            count(file, owner="ana")

    def test_a_format_that_is_said_and_wrong_is_told(self, file: Path) -> None:
        with pytest.raises(InputError, match=r"Extra data.*JSONL"):
            turns(file, lines(HELLO, REPLY), format="openai")
        with pytest.raises(InputError, match='sample 1 has no "conversation"'):
            turns(file, [HELLO], format="locomo")
        with pytest.raises(InputError, match="line 1 is neither"):
            turns(file, [SAMPLE], format="jsonl")
        with pytest.raises(InputError, match="Unknown format 'csv'"):
            turns(file, [HELLO], format="csv")

    def test_a_file_that_is_not_there_or_is_a_folder_is_told(self, tmp_path: Path) -> None:
        for path in (tmp_path / "nothing.json", tmp_path):
            with pytest.raises(InputError, match="Cannot read"):
                read(path, owner="ana")
