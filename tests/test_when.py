"""When things happened: the phrases that tell it, read from the day on which they were said."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sharpwave.memory.errors import InputError
from sharpwave.memory.when import event_time, foreign, resolve_range

WEDNESDAY = datetime(2026, 3, 4, 15, 30, tzinfo=UTC)


def told(text: str, said: datetime = WEDNESDAY, zone: str = "UTC") -> tuple[str, str, str, str] | None:
    """Start and end in the speaker's own zone, precision and phrase."""
    found = event_time(text, said, zone)
    if found is None:
        return None
    start, end = (
        moment.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%dT%H:%M").removesuffix("T00:00")
        for moment in (found.start, found.end)
    )
    return start, end, found.precision, found.phrase or ""


NOW = "2026-03-04T15:30"
ENGLISH = [
    ("I went there yesterday.", "2026-03-03", "2026-03-04", "day", "yesterday"),
    ("The day before yesterday I ran.", "2026-03-02", "2026-03-03", "day", "The day before yesterday"),
    ("I start my new job tomorrow.", "2026-03-05", "2026-03-06", "day", "tomorrow"),
    ("I leave the day after tomorrow", "2026-03-06", "2026-03-07", "day", "the day after tomorrow"),
    ("I moved last month", "2026-02-01", "2026-03-01", "month", "last month"),
    ("I was ill last week", "2026-02-23", "2026-03-02", "week", "last week"),
    ("the week before last I quit", "2026-02-16", "2026-02-23", "week", "the week before last"),
    ("I graduate next year", "2027-01-01", "2028-01-01", "year", "next year"),
    ("two weeks ago I saw Anna", "2026-02-16", "2026-02-23", "week", "two weeks ago"),
    ("I saw her two weeks ago Friday", "2026-02-20", "2026-02-21", "day", "two weeks ago Friday"),
    ("I saw her on Friday last week", "2026-02-27", "2026-02-28", "day", "on Friday last week"),
    ("I bought it a few days ago", "2026-02-27", "2026-03-03", "week", "a few days ago"),
    ("I bought it a few days ago on a Friday", "2026-02-27", "2026-03-03", "week", "a few days ago"),
    ("I bought it a few weeks ago on Friday", "2026-01-26", "2026-02-23", "month", "a few weeks ago"),
    ("I bought it a couple of months ago", "2026-01-01", "2026-02-01", "month", "a couple of months ago"),
    ("I ate 20 minutes ago", "2026-03-04T15:10", "2026-03-04T15:11", "minute", "20 minutes ago"),
    ("I'm back in two days", "2026-03-06", "2026-03-07", "day", "in two days"),
    ("I'm hiking this weekend", "2026-03-07", "2026-03-09", "day", "this weekend"),
    ("I rested last weekend", "2026-02-28", "2026-03-02", "day", "last weekend"),
    ("I have an exam next Friday", "2026-03-06", "2026-03-07", "day", "next Friday"),
    ("last Friday was fun", "2026-02-27", "2026-02-28", "day", "last Friday"),
    ("I met him on Friday", "2026-02-27", "2026-02-28", "day", "on Friday"),
    ("I will meet him on Friday", "2026-03-06", "2026-03-07", "day", "on Friday"),
    ("I met him on Sat", "2026-02-28", "2026-03-01", "day", "on Sat"),
    ("in May I went to Rome", "2025-05-01", "2025-06-01", "month", "in May"),
    ("in May I will go to Rome", "2026-05-01", "2026-06-01", "month", "in May"),
    ("I'm going to Rome in May", "2026-05-01", "2026-06-01", "month", "in May"),
    ("I moved in May last year", "2025-05-01", "2025-06-01", "month", "in May last year"),
    ("I moved in May 2019", "2019-05-01", "2019-06-01", "month", "in May 2019"),
    ("in 2019 I moved", "2019-01-01", "2020-01-01", "year", "in 2019"),
    ("back in 2015 I smoked", "2015-01-01", "2016-01-01", "year", "back in 2015"),
    ("on 3 March I bought a car", "2026-03-03", "2026-03-04", "day", "on 3 March"),
    ("I bought a car on 3rd of March 2021", "2021-03-03", "2021-03-04", "day", "on 3rd of March 2021"),
    ("I was born on March 3rd, 1990", "1990-03-03", "1990-03-04", "day", "on March 3rd, 1990"),
    ("On March 3rd I'll fly", "2027-03-03", "2027-03-04", "day", "On March 3rd"),
    ("we met on the 5th", "2026-02-05", "2026-02-06", "day", "on the 5th"),
    ("we meet on the 5th of next month", "2026-04-05", "2026-04-06", "day", "on the 5th of next month"),
    ("call me at 5 pm tomorrow", "2026-03-05T17:00", "2026-03-05T18:00", "hour", "at 5 pm tomorrow"),
    ("the bus leaves tomorrow at 17:30", "2026-03-05T17:30", "2026-03-05T17:31", "minute", "tomorrow at 17:30"),
    ("I eat out tonight", "2026-03-04T18:00", "2026-03-05", "hour", "tonight"),
    ("this morning I ran", "2026-03-04T06:00", "2026-03-04T12:00", "hour", "this morning"),
    ("I danced on Friday night", "2026-02-27T18:00", "2026-02-28T06:00", "hour", "on Friday night"),
    ("last summer I was in Greece", "2025-06-01", "2025-09-01", "season", "last summer"),
    ("I was in Greece in the summer of 2019", "2019-06-01", "2019-09-01", "season", "in the summer of 2019"),
    ("I have worked at Acme since May", "2025-05-01", NOW, "month", "since May"),
    ("I've lived here since last summer", "2025-06-01", NOW, "season", "since last summer"),
    ("I've lived here for three years", "2023-01-01", NOW, "year", "for three years"),
    ("I'm vegan for about 2 years now", "2024-01-01", NOW, "year", "for about 2 years now"),
    ("I slept badly the last two weeks", "2026-02-16", NOW, "week", "the last two weeks"),
    ("I'm away until June", NOW, "2026-06-01", "month", "until June"),
    ("I'm away until Friday", NOW, "2026-03-07", "day", "until Friday"),
    ("I worked there until 2019", "2019-01-01", "2020-01-01", "year", "until 2019"),
    ("I studied from 2015 to 2018", "2015-01-01", "2019-01-01", "year", "from 2015 to 2018"),
    ("I fly on 2026-03-10", "2026-03-10", "2026-03-11", "day", "2026-03-10"),
    ("It broke at 2026-03-01T10:05Z", "2026-03-01T10:05", "2026-03-01T10:06", "minute", "2026-03-01T10:05Z"),
    ("born 25/4/1990", "1990-04-25", "1990-04-26", "day", "25/4/1990"),
    ("born 3.4.1990", "1990-04-03", "1990-04-04", "day", "3.4.1990"),
    ("I was born on 29 February", "2024-02-29", "2024-03-01", "day", "on 29 February"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "start", "end", "precision", "phrase"), ENGLISH)
def test_phrases_are_read_from_the_day_they_were_said(
    text: str, start: str, end: str, precision: str, phrase: str
) -> None:
    assert told(text) == (start, end, precision, phrase)


OTHERS = [
    ("Ich habe gestern ein Boot gekauft.", "2026-03-03", "2026-03-04", "day", "gestern"),
    ("Heute Morgen war ich laufen", "2026-03-04T06:00", "2026-03-04T12:00", "hour", "Heute Morgen"),
    ("Letzten Monat war ich in Wien", "2026-02-01", "2026-03-01", "month", "Letzten Monat"),
    ("Vor zwei Wochen war ich krank", "2026-02-16", "2026-02-23", "week", "Vor zwei Wochen"),
    ("Ich wohne seit Mai in Bonn", "2025-05-01", NOW, "month", "seit Mai"),
    ("Ich wohne seit drei Jahren hier", "2023-01-01", NOW, "year", "seit drei Jahren"),
    ("Im März 2019 habe ich geheiratet", "2019-03-01", "2019-04-01", "month", "Im März 2019"),
    ("Am 3. März 2021 zog ich um", "2021-03-03", "2021-03-04", "day", "Am 3. März 2021"),
    ("Am Freitag habe ich Tennis gespielt", "2026-02-27", "2026-02-28", "day", "Am Freitag"),
    ("Am Freitag habe ich einen Termin", "2026-03-06", "2026-03-07", "day", "Am Freitag"),
    ("Ayer compré un coche", "2026-03-03", "2026-03-04", "day", "Ayer"),
    ("Me mudé el mes pasado", "2026-02-01", "2026-03-01", "month", "el mes pasado"),
    ("La vi hace dos semanas", "2026-02-16", "2026-02-23", "week", "hace dos semanas"),
    ("Vivo aquí desde mayo", "2025-05-01", NOW, "month", "desde mayo"),
    ("Vivo aquí desde hace tres años", "2023-01-01", NOW, "year", "desde hace tres años"),
    ("Empiezo la semana que viene", "2026-03-09", "2026-03-16", "week", "la semana que viene"),
    ("Nací el 3 de marzo de 1990", "1990-03-03", "1990-03-04", "day", "el 3 de marzo de 1990"),
    ("Hier j'ai acheté un vélo", "2026-03-03", "2026-03-04", "day", "Hier"),
    ("J'étais à Nice la semaine dernière", "2026-02-23", "2026-03-02", "week", "la semaine dernière"),
    ("Je l'ai vue il y a deux ans", "2024-01-01", "2025-01-01", "year", "il y a deux ans"),
    ("J'habite ici depuis mars", "2026-03-01", NOW, "month", "depuis mars"),
    ("J'ai vu Anna à 17h30", "2026-03-03T17:30", "2026-03-03T17:31", "minute", "à 17h30"),
    ("Elle est partie il y a un an", "2025-01-01", "2026-01-01", "year", "il y a un an"),
    ("Je pars le mois prochain", "2026-04-01", "2026-05-01", "month", "le mois prochain"),
    ("Ontem comprei um carro", "2026-03-03", "2026-03-04", "day", "Ontem"),
    ("Mudei-me há dois anos", "2024-01-01", "2025-01-01", "year", "há dois anos"),
    ("Estive doente no mês passado", "2026-02-01", "2026-03-01", "month", "no mês passado"),
    ("Ieri ho comprato una barca", "2026-03-03", "2026-03-04", "day", "Ieri"),
    ("Ci siamo visti due settimane fa", "2026-02-16", "2026-02-23", "week", "due settimane fa"),
    ("Abito qui da tre anni", "2023-01-01", NOW, "year", "da tre anni"),
    ("A maggio sono andato a Roma", "2025-05-01", "2025-06-01", "month", "A maggio"),
    ("我昨天买了一条船", "2026-03-03", "2026-03-04", "day", "昨天"),
    ("我上个月搬家了", "2026-02-01", "2026-03-01", "month", "上个月"),
    ("去年我在北京", "2025-01-01", "2026-01-01", "year", "去年"),
    ("我上个礼拜搬家了", "2026-02-23", "2026-03-02", "week", "上个礼拜"),
    ("我三年前搬家了", "2023-01-01", "2024-01-01", "year", "三年前"),
    ("上周五我去了上海", "2026-02-27", "2026-02-28", "day", "上周五"),
    ("昨日、船を買った", "2026-03-03", "2026-03-04", "day", "昨日"),
    ("先月引っ越した", "2026-02-01", "2026-03-01", "month", "先月"),
    ("2019年3月3日に結婚した", "2019-03-03", "2019-03-04", "day", "2019年3月3日"),
    ("2019年から東京に住んでいます", "2019-01-01", NOW, "year", "2019年から"),
    ("5 мая 2019 я женился", "2019-05-05", "2019-05-06", "day", "5 мая 2019"),
    ("Op 3 mei 2019 getrouwd", "2019-05-03", "2019-05-04", "day", "3 mei 2019"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "start", "end", "precision", "phrase"), OTHERS)
def test_other_languages_keep_the_speakers_words(text: str, start: str, end: str, precision: str, phrase: str) -> None:
    assert told(text) == (start, end, precision, phrase)


@pytest.mark.parametrize(
    "text",
    [
        "May I ask something?", "We may go.", "This may be wrong.", "a May wedding", "March on!", "We march on Washington", "Wait a second", "the second time",
        "I sat on the sun deck", "I can last an hour", "I live on the 5th floor", "down 10 in the 4th", "I need a bed", "about 2000 words", "in 2000 words",
        "every Monday I swim", "I swim on Mondays", "I get up at 7 am", "In the morning I drink coffee", "I love hiking in summer", "Guten Morgen!", "Ich wohne hier", "jeden Montag",
        "I finished it in two days", "I lived in Rome for three years", "version 10.0.2019.1", "call 555-2019", "3:10 was the score", "31 June", "2026-02-30", "99/99/2026",
        "My tag is red, this tag too", "", " ", "days", "I have two cats.",
    ],
)  # fmt: skip
def test_words_that_only_look_like_times_tell_none(text: str) -> None:
    assert event_time(text, WEDNESDAY, "Europe/Lisbon") is None


def test_a_date_with_two_readings_spans_both() -> None:
    assert told("signed 3/4/2025") == ("2025-03-04", "2025-04-04", "month", "3/4/2025")
    assert told("signed 1/12/2025") == ("2025-01-12", "2025-12-02", "year", "1/12/2025")
    assert told("signed 4/4/2025") == ("2025-04-04", "2025-04-05", "day", "4/4/2025")


def test_an_imported_chat_is_read_from_its_own_day() -> None:
    said = datetime(2023, 5, 24, 10, tzinfo=UTC)
    assert told("I went to Lisbon last week", said) == ("2023-05-15", "2023-05-22", "week", "last week")
    assert told("I start my new job tomorrow.", said) == ("2023-05-25", "2023-05-26", "day", "tomorrow")


def test_what_was_said_before_midnight_belongs_to_that_local_day() -> None:
    athens = ZoneInfo("Europe/Athens")
    said = datetime(2026, 8, 31, 23, 50, tzinfo=athens)
    assert told("I handed in my thesis today.", said, "Europe/Athens") == ("2026-08-31", "2026-09-01", "day", "today")
    later = datetime(2026, 9, 1, 0, 10, tzinfo=athens)
    assert told("I handed in my thesis yesterday.", later, "Europe/Athens") == (
        "2026-08-31",
        "2026-09-01",
        "day",
        "yesterday",
    )


def test_the_day_is_the_speakers_not_that_of_utc() -> None:
    said = datetime(2026, 7, 24, 22, 0, tzinfo=UTC)  # already the 25th in Athens
    bought = event_time("I bought a boat today.", said, "Europe/Athens")
    assert bought is not None
    assert (bought.start, bought.end) == (datetime(2026, 7, 24, 21, tzinfo=UTC), datetime(2026, 7, 25, 21, tzinfo=UTC))
    assert resolve_range("What did I do on 25 July?", said, "Europe/Athens") == (bought.start, bought.end)


@pytest.mark.parametrize("machine", ["America/Los_Angeles", "Asia/Tokyo"])
def test_the_machines_own_zone_changes_nothing(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["I bought a boat today.", "5 мая 2019", "an hour ago", "since May", "at 5 pm tomorrow"]
    said = datetime(2026, 7, 25, 2, tzinfo=UTC)
    here = [event_time(text, said, "Europe/Athens") for text in texts]
    monkeypatch.setenv("TZ", machine)
    time.tzset()
    foreign.foreign_month.cache_clear()
    foreign.date_parser.cache_clear()
    try:
        assert [event_time(text, said, "Europe/Athens") for text in texts] == here
    finally:
        monkeypatch.undo()
        time.tzset()
    assert None not in here


def test_days_keep_their_local_bounds_when_the_clocks_change() -> None:
    said = datetime(2026, 3, 9, 15, tzinfo=UTC)
    short = event_time("yesterday", said, "America/New_York")  # clocks went forward on 8 March
    assert short is not None
    assert (short.start, short.end) == (datetime(2026, 3, 8, 5, tzinfo=UTC), datetime(2026, 3, 9, 4, tzinfo=UTC))
    after = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)  # 02:30 for the second time in Berlin
    hour = event_time("two hours ago", after, "Europe/Berlin")
    assert hour is not None
    assert (hour.start, hour.end) == (datetime(2026, 10, 24, 23, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC))


def test_winter_runs_over_the_new_year() -> None:
    january = datetime(2026, 1, 10, tzinfo=UTC)
    assert told("this winter I learned to ski", january) == ("2025-12-01", "2026-03-01", "season", "this winter")
    assert told("last winter was cold", january) == ("2024-12-01", "2025-03-01", "season", "last winter")


def test_the_tense_that_counts_is_that_of_the_clause() -> None:
    text = "I went to Lisbon in June and I start my new job on Monday."
    assert told(text) == ("2025-06-01", "2025-07-01", "month", "in June")
    assert told("We talked a lot, and I will fly to Rome in June") == ("2026-06-01", "2026-07-01", "month", "in June")


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("What did I do in March?", "2026-03-01", "2026-04-01"),
        ("what did I do in May?", "2025-05-01", "2025-06-01"),
        ("Where was I on 25 July?", "2025-07-25", "2025-07-26"),
        ("What happened last week?", "2026-02-23", "2026-03-02"),
        ("Anything on Friday?", "2026-02-27", "2026-02-28"),
        ("How was summer in 2019?", "2019-06-01", "2019-09-01"),
        ("What have I bought since February?", "2026-02-01", NOW),
        ("What will I do on Friday?", "2026-03-06", "2026-03-07"),
        ("Was habe ich im Mai gemacht?", "2025-05-01", "2025-06-01"),
    ],
)  # fmt: skip
def test_questions_ask_about_the_most_recent_one(text: str, start: str, end: str) -> None:
    found = resolve_range(text, WEDNESDAY, "UTC")
    assert found == tuple(datetime.fromisoformat(moment).replace(tzinfo=UTC) for moment in (start, end))


def test_a_question_without_a_time_has_no_range() -> None:
    assert resolve_range("Where do I live?", WEDNESDAY, "UTC") is None


def test_a_naive_time_is_read_in_the_declared_zone_and_an_unknown_zone_is_refused() -> None:
    naive = datetime(2026, 3, 4, 0, 30)
    assert told("today", naive, "Asia/Tokyo") == ("2026-03-04", "2026-03-05", "day", "today")
    with pytest.raises(InputError, match="Mars/Base"):
        event_time("today", WEDNESDAY, "Mars/Base")


WORDS = st.sampled_from(
    "in on the last next this since until for from to at of may May March 3 3rd 5 12 31 2019 99 999 Monday Friday weekend week month year years days ago hours a few two summer winter"
    " morning night tomorrow yesterday pm 17:30 2026-03-04 3/4/2026 29 February before after and , . gestern seit Mai vor zwei Jahren hace años il y a ans 昨天 3月 31日 2019年 前 から İ ſ ı I went will".split()
)  # fmt: skip
MOMENTS = st.datetimes(timezones=st.sampled_from([UTC, ZoneInfo("Pacific/Apia"), ZoneInfo("America/Sao_Paulo")]))


@settings(deadline=None)
@given(
    st.one_of(st.text(), st.lists(WORDS, max_size=12).map(" ".join)),
    MOMENTS,
    st.sampled_from(["UTC", "Europe/Athens", "America/Sao_Paulo"]),
)
@example("999 years ago", datetime(1, 1, 1, tzinfo=UTC), "UTC")
@example("yesterday", datetime(1, 1, 1, tzinfo=UTC), "America/Sao_Paulo")
@example("tomorrow", datetime(9999, 12, 31, 23, tzinfo=UTC), "Europe/Athens")
def test_any_text_gives_an_aware_ordered_interval_or_none(text: str, said: datetime, zone: str) -> None:
    found = event_time(text, said, zone)
    if found is not None:
        assert found.start <= found.end
        assert found.start.utcoffset() == found.end.utcoffset() == timedelta(0)
        assert found.phrase and found.phrase in text
    span = resolve_range(text, said, zone)
    assert span is None or span[0] <= span[1]


SMALL_TALK = "I love hiking with my dog in the hills near Porto, and we often bring lunch. "


def spent(text: str, times: int) -> float:
    """CPU milliseconds a call."""
    event_time(text, WEDNESDAY, "UTC")
    begun = time.process_time()
    for _ in range(times):
        event_time(text, WEDNESDAY, "UTC")
    return (time.process_time() - begun) / times * 1000


def test_a_text_without_a_time_costs_next_to_nothing() -> None:
    assert spent(SMALL_TALK, 200) < 0.3


@pytest.mark.parametrize(
    "text",
    ["a" * 5_000_000, " " * 5_000_000, "at 5 pm " * 300, "on the 5th " * 200, "I did in 2 days " * 130, "may " * 500, "in May he" + " " * 3000, "in May " + "ge" * 990, "日" * 2000, "he a " * 500 + "in May"],
)  # fmt: skip
def test_hostile_and_huge_texts_stay_cheap(text: str) -> None:
    assert spent(text, 1) < 200


def test_a_time_late_in_a_long_text_is_found_at_little_cost() -> None:
    text = f"{SMALL_TALK * 24}I moved in May 2019."
    assert told(text) == ("2019-05-01", "2019-06-01", "month", "in May 2019")
    assert spent(text, 5) < 12


def test_a_word_is_read_whole_at_the_edge_of_what_is_looked_at() -> None:
    for gap in range(60, 110):
        assert told(f"I have a second {'x' * gap} in Mayonnaise") is None
        assert told(f"I have a second{' x' * gap} in May 2019") == ("2019-05-01", "2019-06-01", "month", "in May 2019")


def test_threads_read_the_same() -> None:
    texts = ["5 мая 2019", "Op 3 mei 2019 getrouwd", "3 maja 2018 roku", "I moved last month"] * 8
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(told, texts)) == [told(text) for text in texts]
