"""Records, times and token estimates: what they take, what they refuse, and that nothing is guessed."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from sharpwave.memory import times
from sharpwave.memory.embed import LocalEmbeddings
from sharpwave.memory.errors import InputError, NotFoundError, SharpwaveError
from sharpwave.memory.records import Decision, EventTime, Memory, Message, Source, Turn, new_id
from sharpwave.memory.tokens import estimate, shorten

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
TOKYO = timezone(timedelta(hours=9))


def a_memory(**fields: object) -> Memory:
    return Memory.model_validate(
        {"owner": "ana", "text": "Lives in Oslo", "recorded_at": AT, "valid_from": AT, **fields}
    )


# Records


def test_a_record_cannot_be_changed_and_knows_no_other_fields() -> None:
    memory = a_memory()
    with pytest.raises(ValidationError, match="frozen"):
        memory.text = "Lives in Lisbon"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs"):
        a_memory(colour="blue")


@pytest.mark.parametrize(
    "fields",
    [
        {"importance": 1.1},
        {"importance": -0.1},
        {"confidence": 2},
        {"strength": -1},
        {"kind": "x"},
        {"status": "x"},
        {"text": None},
    ],
)
def test_values_out_of_range_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        a_memory(**fields)


def test_a_memory_survives_json_with_all_its_fields() -> None:
    memory = a_memory(
        subject="sister Maria",
        attribute="home_city",
        value="Berlin",
        source=Source(kind="import", thread="t", message_id="m", quote="in Berlin"),
        event_time=EventTime(start=AT, end=AT + timedelta(days=1), precision="day", phrase="yesterday"),
        valid_to=AT + timedelta(days=9),
        tags=("a", "b"),
        metadata={"a": [None, 0, False, "", {"b": []}], "é": "🧑🏽‍🚀"},
        pinned=True,
    )
    assert Memory.model_validate_json(memory.model_dump_json()) == memory


def test_ids_are_unique_and_sorted_by_the_time_of_their_making() -> None:
    ids = [new_id() for _ in range(1000)]
    assert len(set(ids)) == 1000 and ids == sorted(ids)
    assert all(len(made) == 36 and made[14] == "7" for made in ids)


def test_a_turn_is_known_by_what_the_user_said() -> None:
    hello, answer = Message(id="a", role="assistant", text="Hello"), Message(id="u", role="user", text="I live in Oslo")
    turn = Turn(owner="ana", thread="t", messages=(hello, answer), said_at=AT)
    assert (turn.message_id, turn.user_text) == ("u", "I live in Oslo")
    alone = Turn(owner="ana", thread="t", messages=(hello,), said_at=AT)
    assert (alone.message_id, alone.user_text) == ("a", "")
    with pytest.raises(ValidationError, match="messages"):
        Turn(owner="ana", thread="t", messages=(), said_at=AT)


def test_halves_of_surrogate_pairs_are_joined_or_replaced() -> None:
    assert a_memory(text="\ud83c\udfb7 jazz").text == "🎷 jazz"
    assert a_memory(text="half \ud83c").text == "half \ufffd"
    assert Message(id="m", role="user", text="a\udfb7b").text == "a\ufffdb"


def test_a_decision_names_one_of_four_operations() -> None:
    with pytest.raises(ValidationError):
        Decision.model_validate({"op": "MERGE", "candidate": {}, "reason": "", "policy": ""})


def test_errors_are_one_tree() -> None:
    assert issubclass(NotFoundError, InputError) and issubclass(InputError, SharpwaveError)


# Times


def test_aware_times_become_utc() -> None:
    assert times.utc(datetime(2026, 3, 2, 18, 0, tzinfo=TOKYO)) == AT
    assert times.utc(datetime(2026, 3, 2, 18, 0, tzinfo=TOKYO)).tzinfo is UTC
    assert (
        a_memory(valid_from=datetime(2026, 3, 2, 18, 0, tzinfo=TOKYO)).valid_from.isoformat()
        == "2026-03-02T09:00:00+00:00"
    )
    assert '"2026-03-02T09:00:00Z"' in a_memory(recorded_at=datetime(2026, 3, 2, 18, 0, tzinfo=TOKYO)).model_dump_json()


def test_naive_times_are_read_in_the_declared_zone_or_refused() -> None:
    assert times.utc(datetime(2026, 7, 2, 10, 0), "Europe/Lisbon") == datetime(2026, 7, 2, 9, 0, tzinfo=UTC)
    assert times.utc(AT, "Asia/Tokyo") == AT
    for call in (
        lambda: times.utc(datetime(2026, 3, 2)),
        lambda: times.parse_time("2026-03-02T10:00:00"),
        lambda: a_memory(recorded_at=datetime(2026, 3, 2)),
        lambda: Turn(
            owner="a", thread="t", messages=(Message(id="m", role="user", text="x"),), said_at=datetime(2026, 3, 2)
        ),
    ):
        with pytest.raises(InputError, match="has no zone"):
            call()


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2026-03-02T09:00:00Z", None, AT),
        ("2026-03-02T10:00:00+01:00", None, AT),
        (" 2026-03-02T09:00 ", "UTC", AT),
        ("2026-03-02", "Asia/Tokyo", datetime(2026, 3, 1, 15, 0, tzinfo=UTC)),
        ("20260302T090000Z", None, AT),
    ],
)
def test_times_are_read(text: str, zone: str | None, expected: datetime) -> None:
    assert times.parse_time(text, zone) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "02.03.2026", "2026-02-30T00:00:00Z", "1e9", "٢٠٢٦"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="ISO 8601"):
        times.parse_time(text, "UTC")


@pytest.mark.parametrize(
    "zone", ["", "Mars/Olympus", "../../etc/passwd", "Europe", "/etc/localtime", "a\x00b", "x" * 5000]
)
def test_a_zone_that_does_not_exist_is_refused(zone: str) -> None:
    with pytest.raises(InputError, match="Unknown time zone"):
        times.time_zone(zone)


@pytest.mark.parametrize("edge", [datetime.min, datetime.max])
def test_times_at_the_end_of_the_calendar_are_refused_not_crashed_on(edge: datetime) -> None:
    with pytest.raises(InputError):
        times.utc(edge, "Asia/Tokyo" if edge is datetime.min else "America/Lima")


# Tokens


@settings(deadline=None, database=None, derandomize=True)
@given(st.text(max_size=300), st.integers(1, 80))
def test_a_shortened_text_fits(text: str, tokens: int) -> None:
    short = shorten(text, tokens)
    assert estimate(short) <= tokens
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


@settings(deadline=None, database=None, derandomize=True)
@given(st.text(max_size=300), st.integers(1, 80), st.floats(0, 1))
def test_a_text_shortened_in_the_middle_keeps_both_ends(text: str, tokens: int, tail: float) -> None:
    short = shorten(text, tokens, tail=tail)
    assert estimate(short) <= tokens
    cuts = [at for at, c in enumerate(short) if c == "…"]
    assert short == text or any(text.startswith(short[:at]) and text.endswith(short[at + 1 :]) for at in cuts)


def test_shortening_a_huge_text_reads_little_of_it() -> None:
    read: list[int] = []

    def count(text: str) -> int:
        read.append(len(text))
        return estimate(text)

    assert len(shorten("word " * 1_000_000, 50, tail=0.5, count=count)) < 300
    assert sum(read) < 20_000


@settings(deadline=None, database=None, derandomize=True)
@given(st.text(max_size=200), st.text(max_size=200))
def test_more_text_is_never_fewer_tokens(one: str, other: str) -> None:
    assert estimate(one + other) >= max(estimate(one), estimate(other))
    assert estimate(one + other) <= estimate(one) + estimate(other)
    assert (estimate(one) == 0) == (one == "")


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("I moved from Oslo to Lisbon last month and I'm allergic to shellfish, which my sister Maria still forgets.", 24),
        ("我上个月从奥斯陆搬到了里斯本，而且我对贝类过敏。我的妹妹在上海的一家公司工作，她喜欢打羽毛球。", 62),
        ("저는 지난달에 오슬로에서 리스본으로 이사했고 갑각류 알레르기가 있습니다. 여동생은 서울에서 일합니다.", 52),
        ("先月オスロからリスボンに引っ越しました。甲殻類アレルギーがあります。妹は大阪で働いています。", 49),
        ("ฉันอาศัยอยู่ในเชียงใหม่และแพ้อาหารทะเล น้องสาวของฉันทำงานที่กรุงเทพ", 62),
        ("मैं पिछले महीने ओस्लो से लिस्बन आया और मुझे समुद्री भोजन से एलर्जी है", 67),
        ("ባለፈው ወር ከኦስሎ ወደ ሊዝበን ተዛወርኩ", 63),
        ("🎷🧑🏽‍🚀🇵🇹❤️🦐🫠🥹👨‍👩‍👧‍👦🏴󠁧󠁢󠁥󠁮󠁧󠁿", 70),
        ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==Zx8+/qP0vBmTnQ3yKsLw7RfHj2Gd5", 82),
        ("018f3b7e-92c4-7d10-a6b1-5f0e3c9d8a21 018f3b7e-92c4-7d10-a6b1-5f0e3c9d8a22", 61),
        ('{"facts":[{"text":"Lives in Porto","quote":"I live in Porto","kind":"fact","n":[1,2,3]}]}', 30),
    ],
)  # fmt: skip
def test_estimates_are_above_the_count_of_a_hungry_tokenizer_and_below_twice_that(text: str, counted: int) -> None:
    """`counted` is by cl100k_base; o200k_base takes fewer for each."""
    assert counted <= estimate(text) <= 2 * counted


@pytest.mark.parametrize(
    "text",
    [
        "I moved from Oslo to Lisbon last month and I'm allergic to shellfish, which my sister Maria still forgets.",
        "我上个月从奥斯陆搬到了里斯本，而且我对贝类过敏。",
        "ฉันอาศัยอยู่ในเชียงใหม่และแพ้อาหารทะเล",
        "先月オスロからリスボンに引っ越しました。甲殻類アレルギーがあります。",
        "انتقلت الشهر الماضي من أوسلو إلى لشبونة",
        "В прошлом месяце я переехал из Осло в Лиссабон",
        "🎷🧑🏽‍🚀🇵🇹❤️🦐",
    ],
)
def test_estimates_are_rather_too_high_than_too_low(text: str) -> None:
    counted = len(LocalEmbeddings()._encoder().ids(text)) - 2  # a rough guide: another tokenizer, without its two marks
    assert estimate(text) >= counted
