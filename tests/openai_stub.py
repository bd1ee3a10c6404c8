"""An OpenAI-compatible chat server on 127.0.0.1 that follows a script, for tests that need the real HTTP path.

with OpenAIStub(["Hello.", Reply(status=429)]) as stub:
    stub.chat().invoke("Hi")
    assert stub.requests[0]["messages"]
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Reply:
    """One answer of the server."""

    content: str | None = ""
    tool_calls: Sequence[tuple[str, dict[str, Any]]] = ()
    """Name and arguments of each call."""
    finish_reason: str | None = None
    """`stop`, or `tool_calls` when there are some, unless given."""
    status: int = 200
    message: str = "scripted failure"
    """Error text when `status` is not 200."""
    body: bytes | None = None
    """Sent as it is in place of a proper answer."""
    delay: float = 0.0
    """Seconds before the answer; cut short when the server closes."""
    usage: bool = True
    extra: dict[str, Any] = field(default_factory=dict)
    """More fields of the message, such as `reasoning_content` or `refusal`."""


Step = str | Reply | Callable[[dict[str, Any]], str | Reply]


class OpenAIStub:
    """Serves `/v1/chat/completions` and `/v1/models`.

    Args:
        replies: answers in order (a text, a `Reply`, or a callable from the request to one of these); or one callable
            for every request. A request beyond the script gets status 400.
        supports: `response_format` types that the server accepts; another one gets status 400 and uses up no reply.
    """

    def __init__(
        self, replies: Sequence[Step] | Step = (), supports: Sequence[str] = ("json_schema", "json_object")
    ) -> None:
        self.replies = replies
        self.supports = ("text", *supports)
        self.requests: list[dict[str, Any]] = []
        """Bodies of the chat requests, refused ones too."""
        self._at = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._clients: list[Any] = []

    def __enter__(self) -> Self:
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for client in self._clients:
            client.close()

    @property
    def base_url(self) -> str:
        """What `OPENAI_BASE_URL` is set to."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def chat(self, **options: Any) -> Any:
        """Return a `ChatOpenAI` that talks to this server and closes with it; no retries unless asked for."""
        import openai
        from langchain_openai import ChatOpenAI

        client = openai.DefaultHttpxClient(trust_env=False)
        self._clients.append(client)
        defaults = {"model": "stub", "api_key": "test-key", "max_retries": 0, "http_client": client}
        return ChatOpenAI(base_url=self.base_url, **(defaults | options))

    def answer(self, request: dict[str, Any]) -> Reply:
        """Record a chat request and take the next answer."""
        with self._lock:
            self.requests.append(request)
            kind = request.get("response_format", {}).get("type", "text")
            if kind not in self.supports:
                return Reply(status=400, message=f"'response_format' of type '{kind}' is not supported by this server")
            if callable(self.replies) or isinstance(self.replies, str | Reply):
                step: Step = self.replies
            elif self._at < len(self.replies):
                step = self.replies[self._at]
                self._at += 1
            else:
                return Reply(status=400, message="the stub has no answer left")
        made = step(request) if callable(step) else step
        return Reply(made) if isinstance(made, str) else made

    def wait(self, seconds: float) -> None:
        """Wait, or until the server closes."""
        self._closing.wait(seconds)


class _Server(ThreadingHTTPServer):
    def __init__(self, stub: OpenAIStub) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stub = stub

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        found = self.path.rstrip("/") == "/v1/models"
        self._json(200, {"object": "list", "data": [{"id": "stub", "object": "model"}]}) if found else self._error(
            404, "no such path"
        )

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.rstrip("/") != "/v1/chat/completions":
            return self._error(404, "no such path")
        reply = self.server.stub.answer(request)
        self.server.stub.wait(reply.delay)
        if reply.body is not None:
            self._send(reply.status, "application/json", reply.body)
        elif reply.status != 200:
            self._error(reply.status, reply.message)
        elif request.get("stream"):
            events = [*_chunks(request, reply), "[DONE]"]
            self._send(200, "text/event-stream", "".join(f"data: {event}\n\n" for event in events).encode())
        else:
            self._json(200, _completion(request, reply))

    def _error(self, status: int, message: str) -> None:
        self._json(status, {"error": {"message": message, "type": "stub_error", "param": None, "code": None}})

    def _json(self, status: int, value: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if kind != "text/event-stream":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for line in body.splitlines(keepends=True):
            self.wfile.write(line)
            self.wfile.flush()


def _usage(request: dict[str, Any], reply: Reply) -> dict[str, int]:
    prompt = len(json.dumps(request["messages"], ensure_ascii=False)) // 4
    answer = len(reply.content or "") // 4
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


def _tool_calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "index": i,
            "id": f"call_{i}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for i, (name, arguments) in enumerate(reply.tool_calls)
    ]


def _finish(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def _completion(request: dict[str, Any], reply: Reply) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply.content, **reply.extra}
    if reply.tool_calls:
        message["tool_calls"] = [{k: v for k, v in call.items() if k != "index"} for call in _tool_calls(reply)]
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
    whole = {"id": "stub-1", "object": "chat.completion", "created": 0, "model": request["model"], "choices": [choice]}
    return whole | ({"usage": _usage(request, reply)} if reply.usage else {})


def _chunks(request: dict[str, Any], reply: Reply) -> Iterator[str]:
    """The events of a streamed answer: a role, the words, tool calls, the end, and the usage if it was asked for."""
    frame = {"id": "stub-1", "object": "chat.completion.chunk", "created": 0, "model": request["model"]}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", **reply.extra}]
    deltas += [{"content": word} for word in re.findall(r"\s*\S+|\s+$", reply.content or "")]
    deltas += [{"tool_calls": [call]} for call in _tool_calls(reply)]
    for delta in deltas:
        yield json.dumps(frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield json.dumps(frame | {"choices": [{"index": 0, "delta": {}, "finish_reason": _finish(reply)}]})
    if reply.usage and (request.get("stream_options") or {}).get("include_usage"):
        yield json.dumps(frame | {"choices": [], "usage": _usage(request, reply)})
