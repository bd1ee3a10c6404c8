import json
import threading
import time
from collections.abc import Callable

import pytest
from fakes import ScriptedModel
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from openai_stub import OpenAIStub, Reply
from pydantic import BaseModel, model_validator

from sharpwave.memory.errors import BudgetExceeded, ModelError
from sharpwave.memory.structured import ask, read
from sharpwave.memory.usage import metering

Make = Callable[..., ScriptedModel]
PROMPT = [SystemMessage("Answer in JSON."), HumanMessage("my diary: I buried the gold under the oak")]


class Notes(BaseModel):
    facts: list[str]


ONE = '{"facts": ["Owns a grey parrot called Pico"]}'


@pytest.mark.parametrize(
    "reply",
    [
        ONE,
        f"```json\n{ONE}\n```\nI found one fact.",
        f"```JSON\n{ONE}\n```",
        f"```\n{ONE}\n```",
        f"```json\r\n{ONE}\r\n```\r\n",
        f"\ufeff{ONE}",
        f"Here is what I found:\n```json\n{ONE}\n```",
        f"Sure [as asked] {{here}}: {ONE} Hope that helps {{:-)}}",
        f"~~~\n{ONE}\n~~~",
        f'<think>Draft: {{"facts": ["no"]}} hm</think>{ONE}',
        f'a draft {{"facts": ["no"]}}\n</think>\n{ONE}',
        f'<think>first</think><think>second ["no"]</think>{ONE}',
        f'<Thinking>{{"facts": [</Thinking>\n{ONE}',
        f'{ONE}\n<think>or rather {{"facts": ["no"]}}',
        '{"facts": ["Owns a grey parrot called Pico",]}',
        "{'facts': ['Owns a grey parrot called Pico']}",
        '{facts: ["Owns a grey parrot called Pico"]}',
        '{"facts": ["Owns a grey parrot called Pico"], // one\n}',
        '{"facts": ["Owns a grey parrot called Pico"]',
        '{"facts": ["Owns a grey parrot called Pico", "Is allergic to',
        f'{{"note": "not this one"}} {ONE}',
    ],
)
def test_the_answer_is_found_whatever_stands_around_it(reply: str, scripted: Make) -> None:
    assert ask(scripted(reply), PROMPT, Notes, purpose="extract").facts == ["Owns a grey parrot called Pico"]


@pytest.mark.parametrize(
    "text",
    [
        "Commit style: ```fix: short```",
        '```json\n{"facts": []}\n```',
        "File template is {name}-{date}",
        'Writes [x] and {y} and "z" \\ and 北京',
        "Closes with </think> and opens with <think>",
    ],
)
@pytest.mark.parametrize("frame", ["%s", "```json\n%s\n```", "Here: %s. Done."])
def test_what_stands_in_a_string_survives_as_it_is(text: str, frame: str) -> None:
    assert read(frame % json.dumps({"facts": [text]}), Notes).facts == [text]


def test_a_statement_that_breaks_off_is_not_kept() -> None:
    assert read('{"facts": ["Likes tea", "Is not allergic to nu', Notes).facts == ["Likes tea"]
    with pytest.raises(ValueError, match="broken"):
        read('{"facts": ["Is not allergic to nu', Notes)


def test_a_list_that_breaks_off_before_its_first_item_is_not_an_empty_answer() -> None:
    with pytest.raises(ValueError, match="broken"):
        read('{"facts": [', Notes)


def test_hostile_nesting_is_given_up_soon() -> None:
    for text in ('["a",' * 50_000, "{'a' " * 50_000, '{"facts": [' * 20_000):
        started = time.process_time()
        with pytest.raises(ValueError):
            read(text, Notes)
        assert time.process_time() - started < 3


def test_a_list_inside_broken_json_does_not_pass_for_the_answer() -> None:
    class Bare(BaseModel):
        items: list[str]

        @model_validator(mode="before")
        @classmethod
        def _wrap(cls, data: object) -> object:
            return {"items": data} if isinstance(data, list) else data

    assert read('["a", "b"]', Bare).items == ["a", "b"]
    with pytest.raises(ValueError):
        read('{"items": [{"text": "a", "tags": ["x"]}, {"te', Bare)


def test_an_empty_list_is_an_answer_and_is_not_asked_for_again(scripted: Make) -> None:
    assert ask(scripted('{"facts": []}'), PROMPT, Notes, purpose="extract").facts == []


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "it was empty"),
        ("Sorry, I cannot help with that.", "it held no JSON"),
        ('<think>{"facts": ["no"]}', "it was empty"),
        ('<think>{"facts": ["no"]}</think>', "it was empty"),
        ('{"facts": "Lives in Porto"}', "facts: Input should be a valid list"),
        ('{"facts": [42]}', "facts.0: Input should be a valid string"),
        ('{"facts": ["\\ud83d"]}', "it held no JSON"),
        ("[" * 100_000, "its JSON was broken"),
        ("null", "it held no JSON"),
    ],
)
def test_an_unusable_answer_is_asked_for_once_more_and_then_refused(reply: str, why: str, scripted: Make) -> None:
    model = scripted(reply, reply)
    with pytest.raises(ModelError) as caught:
        ask(model, PROMPT, Notes, purpose="extract")
    assert why in str(caught.value) and "'extract'" in str(caught.value) and "\n" not in str(caught.value)
    assert "oak" not in str(caught.value)
    first, second = model.calls
    assert second[0] == first[0]
    assert str(second[1].content).startswith(str(first[1].content)) and why in str(second[1].content)


def test_a_good_second_answer_counts(scripted: Make) -> None:
    with metering() as meter:
        assert ask(scripted("oops", ONE), PROMPT, Notes, purpose="extract").facts == ["Owns a grey parrot called Pico"]
    assert meter.usage.by_purpose["extract"]["llm_calls"] == 2


def test_content_blocks_are_read_as_text(scripted: Make) -> None:
    blocks = AIMessage(content=[{"type": "reasoning", "reasoning": '{"facts": ["no"]}'}, {"type": "text", "text": ONE}])
    assert ask(scripted(blocks), PROMPT, Notes, purpose="x").facts == ["Owns a grey parrot called Pico"]


@pytest.mark.parametrize(
    "error", [ConnectionError("refused"), TimeoutError(), ValueError("bad key sk-abcdef123456"), KeyError("choices")]
)
def test_a_provider_that_fails_is_a_model_error_with_its_cause(error: Exception, scripted: Make) -> None:
    with pytest.raises(ModelError, match=type(error).__name__) as caught:
        ask(scripted(error), PROMPT, Notes, purpose="extract")
    assert caught.value.__cause__ is error
    assert "sk-abcdef" not in str(caught.value)


def test_errors_of_our_own_pass_through(scripted: Make) -> None:
    with pytest.raises(BudgetExceeded):
        ask(scripted(BudgetExceeded("used up")), PROMPT, Notes, purpose="extract")


def test_an_error_that_repeats_the_prompt_does_not_leak_it(scripted: Make) -> None:
    echo = RuntimeError(f"invalid request: {PROMPT[1].content} (Bearer abc.def)")
    with pytest.raises(ModelError) as caught:
        ask(scripted(echo), PROMPT, Notes, purpose="extract")
    assert "oak" not in str(caught.value) and "abc.def" not in str(caught.value)


@settings(deadline=None)
@given(
    st.text()
    | st.from_regex(r"[\[\]{}\"':,facts a</think>\\]{0,60}")
    | st.builds(lambda t, n: t[:n], st.just(ONE), st.integers(0, 45))
)
def test_any_text_gives_a_valid_answer_or_a_model_error(text: str) -> None:
    model = ScriptedModel(script=[text, text], calls=[], bound=[])
    try:
        answer = ask(model, PROMPT, Notes, purpose="extract")
    except ModelError:
        return
    assert all(isinstance(fact, str) for fact in answer.facts)
    json.dumps(answer.facts, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("supports", "tried"),
    [
        (("json_schema", "json_object"), ["json_schema", "json_schema"]),
        (("json_object",), ["json_schema", "json_object", "json_object"]),
        ((), ["json_schema", "json_object", "text", "text"]),
    ],
)
def test_what_a_server_takes_is_found_out_once(supports: tuple[str, ...], tried: list[str]) -> None:
    with OpenAIStub(ONE, supports=supports) as stub, metering() as meter:
        for _ in range(2):  # a second model object of the same server knows it too
            assert ask(stub.chat(), PROMPT, Notes, purpose="extract").facts == ["Owns a grey parrot called Pico"]
        kinds = [request.get("response_format", {}).get("type", "text") for request in stub.requests]
    assert kinds == tried
    assert meter.usage.llm_calls == 2
    assert meter.usage.prompt_tokens > 0


def test_openais_own_refusal_of_a_schema_is_no_warning() -> None:
    refusal = "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."

    def answer(request: dict[str, object]) -> Reply:
        return (
            Reply(status=400, message=refusal) if "json_schema" in str(request.get("response_format")) else Reply(ONE)
        )

    with OpenAIStub(answer) as stub:
        assert ask(stub.chat(), PROMPT, Notes, purpose="extract").facts
        assert len(stub.requests) == 2


def test_the_schema_on_the_wire_is_strict() -> None:
    class Inner(BaseModel):
        title: str
        size: int | None = None

    class Outer(BaseModel):
        items: list[Inner] = []

    with OpenAIStub('{"items": []}') as stub:
        ask(stub.chat(extra_body={"top_k": 3}), PROMPT, Outer, purpose="x")
    sent = stub.requests[0]
    schema = sent["response_format"]["json_schema"]
    assert schema["strict"] is True and schema["name"] == "Outer"
    assert schema["schema"]["required"] == ["items"] and schema["schema"]["additionalProperties"] is False
    inner = schema["schema"]["$defs"]["Inner"]
    assert inner["required"] == ["title", "size"] and inner["additionalProperties"] is False
    assert "default" not in json.dumps(schema)
    assert sent["top_k"] == 3


@pytest.mark.parametrize("streaming", [False, True])
def test_an_answer_cut_off_by_the_server_is_read_not_raised(streaming: bool) -> None:
    cut = Reply('{"facts": ["Owns a grey parrot called Pico", "Has', finish_reason="length")
    with OpenAIStub(cut) as stub:
        assert ask(stub.chat(streaming=streaming), PROMPT, Notes, purpose="x").facts == [
            "Owns a grey parrot called Pico"
        ]
    with (
        OpenAIStub(Reply('{"facts": ["Own', finish_reason="length")) as stub,
        pytest.raises(ModelError, match="token limit"),
    ):
        ask(stub.chat(streaming=streaming), PROMPT, Notes, purpose="x")


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=429),
        Reply(status=500),
        Reply(status=400, message="context too long"),
        Reply(status=401, message="Incorrect API key provided: test-key-12345"),
        Reply(body=b"<html>a proxy says hello</html>"),
        Reply(body=b'{"choices": null}'),
        Reply(body=b'{"choices": []}'),
        Reply(body=b""),
        Reply(None, extra={"refusal": "I cannot help with that."}),
        Reply(delay=30),
    ],
)
def test_a_server_that_fails_is_a_model_error(reply: Reply) -> None:
    with OpenAIStub(reply) as stub:
        model = stub.chat(timeout=0.3)
        with pytest.raises(ModelError) as caught:
            ask(model, PROMPT, Notes, purpose="extract")
    assert "oak" not in str(caught.value) and "test-key" not in str(caught.value)
    assert len(stub.requests) <= 2


def test_a_failing_server_is_not_remembered_as_one_that_takes_no_schema() -> None:
    with OpenAIStub([Reply(status=500), ONE]) as stub:
        model = stub.chat()
        with pytest.raises(ModelError):
            ask(model, PROMPT, Notes, purpose="x")
        ask(model, PROMPT, Notes, purpose="x")
    assert [request["response_format"]["type"] for request in stub.requests] == ["json_schema"] * 2


def test_transient_failures_are_retried_by_the_client() -> None:
    with OpenAIStub([Reply(status=429), ONE]) as stub:
        assert ask(stub.chat(max_retries=1), PROMPT, Notes, purpose="x").facts
        assert len(stub.requests) == 2


def test_nobody_listens_is_a_model_error() -> None:
    with OpenAIStub() as stub:
        model = stub.chat()
        stub._server.server_close()
        with pytest.raises(ModelError, match=r"(?i)connection.*base URL"):
            ask(model.model_copy(), PROMPT, Notes, purpose="extract")


def test_threads_share_what_was_found_out() -> None:
    with OpenAIStub(ONE, supports=()) as stub:
        model = stub.chat()
        ask(model, PROMPT, Notes, purpose="x")
        threads = [threading.Thread(target=ask, args=(model, PROMPT, Notes), kwargs={"purpose": "x"}) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(stub.requests) == 3 + 8


def test_the_stub_streams_words_tool_calls_and_usage() -> None:
    with OpenAIStub(["Hello there, you.", Reply(tool_calls=[("lookup", {"q": "tea"})])]) as stub:
        model = stub.chat(stream_usage=True)
        chunks = list(model.stream("hi"))
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole += chunk
        call = model.invoke("look it up")
    assert whole.text == "Hello there, you." and len([c for c in chunks if c.text]) == 3
    assert whole.usage_metadata["total_tokens"] > 0
    assert call.tool_calls[0]["name"] == "lookup" and call.tool_calls[0]["args"] == {"q": "tea"}
