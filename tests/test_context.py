"""The assembler: nothing over the window, the instructions and the question whole, the lowest ranks left out first."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpwave.memory.context import FLEXIBLE, LAYOUT, LEAST_QUERY, Assembled, assemble
from sharpwave.memory.errors import InputError
from sharpwave.memory.tokens import estimate

LINES = st.lists(st.text(alphabet="ab 你好😀\n", max_size=60), max_size=12)


def words(tokens: int, mark: str = "x") -> str:
    """Return a text that is estimated at this many tokens."""
    text = (mark + " ") * (tokens * 2)
    while estimate(text) > tokens:
        text = text[:-1]
    assert estimate(text) == tokens
    return text


@settings(max_examples=400)
@given(
    window=st.integers(1, 3000),
    system=st.integers(0, 400),
    query=st.integers(0, 2000),
    recent=st.integers(0, 5000),
    tools=st.integers(0, 200),
    sections=st.fixed_dictionaries({name: LINES for name in FLEXIBLE if name != "recent"}),
)
def test_nothing_is_ever_over_the_window(window, system, query, recent, tools, sections) -> None:
    try:
        made = assemble(window, system=system, query=query, recent=recent, tools=tools, sections=sections)
    except InputError:
        assert system + tools + min(query, LEAST_QUERY) > window - window * 700 // 8000
        return
    texts = [line for section in made.sections for line in section.lines]
    assert system + tools + sum(map(estimate, texts)) + made.recent + made.query <= made.tokens <= window - made.reserve
    assert made.recent <= recent and made.query <= query
    for name, lines in sections.items():
        section = made.section(name)
        assert [*section.lines, *section.left_out] == lines
    if query + system + tools <= window - made.reserve:
        assert made.query == query


@given(recent=st.integers(0, 9000), sections=st.fixed_dictionaries({name: LINES for name in ("facts", "profile")}))
def test_what_is_left_is_used_as_long_as_a_line_fits(recent, sections) -> None:
    made = assemble(1200, system=3, query=20, recent=recent, sections=sections)
    left = made.window - made.reserve - made.tokens
    for name in sections:
        section = made.section(name)
        assert not section.left_out or estimate(section.left_out[0]) + 1 > left
    assert made.recent == recent or left == 0


def test_parts_that_fit_alone_and_not_together_fit_in_the_end() -> None:
    memories = [words(60, f"{n}") if n < 10 else words(60, "y") for n in range(20)]
    made = assemble(
        1000,
        system=150,
        query=80,
        recent=600,
        sections={"procedural": [words(60)] * 5, "facts": memories},
    )
    assert made.tokens <= 1000 - made.reserve and made.reserve == 87
    assert (made.fixed, made.query) == (150, 80)
    facts = made.section("facts")
    assert 0 < len(facts.lines) < 20 and list(facts.lines) == memories[: len(facts.lines)]
    assert list(facts.left_out) == memories[len(facts.lines) :]


def test_the_usual_window_is_laid_out_as_it_usually_is() -> None:
    lines = {name: [words(49)] * 200 for name in FLEXIBLE if name != "recent"}
    made = assemble(8000, system=500, query=200, recent=90_000, tools=800, sections=lines)
    got = {section.name: section.tokens for section in made.sections}
    assert sum(LAYOUT.values()) == 8000 and made.reserve == 700
    assert {name: got[name] for name in lines} == {name: LAYOUT[name] for name in lines}
    assert made.recent == LAYOUT["recent"]


def test_an_unused_share_flows_on() -> None:
    def facts(made: Assembled) -> int:
        return made.section("facts").tokens

    lines = {"facts": [words(49)] * 200}
    full = assemble(8000, system=500, query=200, recent=90_000, sections={**lines, "profile": [words(49)] * 20})
    free = assemble(8000, system=500, query=200, recent=90_000, sections=lines)
    alone = assemble(8000, system=500, query=200, sections=lines)
    assert facts(full) < facts(free) < facts(alone) and alone.tokens > 7200


def test_a_window_too_small_for_the_instructions_says_how_large_it_must_be() -> None:
    with pytest.raises(InputError, match="about 5"):
        assemble(300, system=500, query=10)
    with pytest.raises(InputError):
        assemble(0, system=0, query=10)
