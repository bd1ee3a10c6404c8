"""`sharpwave chat`: talk to the agent, and see what it recalled and what it wrote."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from sharpwave.asking import ask, described
from sharpwave.console import JsonOption, UserOption, err, opened, out, print_json, settings_of, user_of
from sharpwave.memory.errors import InputError, ModelError, SharpwaveError
from sharpwave.settings import Settings
from sharpwave.showing import plain

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from sharpwave.dialogue import Dialogue

KEPT = "What you said is kept, and is written to memory with the next message or at the next start."
HELP = """\
/memories   what is remembered about you
/undo       take back the last change to memory
/help       this
/quit       leave (or Ctrl-D); Ctrl-C stops a reply"""

OnceOption = Annotated[
    str | None, typer.Option("--once", help="Say this, print the reply and end.", show_default=False)
]
ThreadOption = Annotated[str, typer.Option("--thread", "-t", help="Name of the conversation, among this user's.")]
IncognitoOption = Annotated[
    bool, typer.Option("--incognito", help="Recall, but keep nothing: no memory, no message, no conversation.")
]
ConfirmOption = Annotated[
    bool,
    typer.Option(
        "--confirm", help="Ask before a memory is deleted, or changed on an unsure decision: SHARPWAVE_CONFIRM."
    ),
]

ToolsOption = Annotated[
    str | None,
    typer.Option(
        "--tools",
        metavar="MODULE:NAME",
        help="LangChain tools for the model, as in my_tools:TOOLS.",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("chat")(chat)


def chat(
    context: typer.Context,
    user: UserOption = None,
    thread: ThreadOption = "main",
    once: OnceOption = None,
    incognito: IncognitoOption = False,
    confirm: ConfirmOption = False,
    tools: ToolsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Talk to the agent. It shows what it recalled and what it wrote to memory.

    Without a terminal each line of standard input is a message. With --json each message gives one JSON object.
    """
    from sharpwave.dialogue import Dialogue
    from sharpwave.tools import load_tools

    settings = settings_of(context, confirm=confirm or None)
    owner = user_of(settings, user)
    if once is not None:
        _checked(once)
    given = load_tools(tools) if tools else []
    with opened(settings) as store, _checkpointer(settings, incognito) as saver:
        dialogue = Dialogue(settings, store, saver, user=owner, thread=thread, remember=not incognito, tools=given)
        desk = _Desk(dialogue, settings, as_json)
        well = desk.talk() if once is None else desk.once(once)
    if not well:
        raise typer.Exit(1)


def _checkpointer(settings: Settings, incognito: bool) -> "AbstractContextManager[BaseCheckpointSaver[str]]":
    from langgraph.checkpoint.memory import InMemorySaver

    from sharpwave.checkpoints import open_checkpointer

    return nullcontext(InMemorySaver()) if incognito else open_checkpointer(settings.home)


def _checked(text: str) -> str:
    if not text.strip():
        raise InputError("The message is empty. Say something, as in --once 'I live in Lisbon.'")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError("The message is not valid UTF-8 text. Save or type it as UTF-8.") from error
    return text


class _Desk:
    """Where a person and a dialogue meet: reads what is said, shows what came of it."""

    def __init__(self, dialogue: "Dialogue", settings: Settings, as_json: bool) -> None:
        self.dialogue, self.settings, self.as_json = dialogue, settings, as_json
        self.person = sys.stdin.isatty()

    def talk(self) -> bool:
        """Take messages until the input ends; returns whether all went well, which a person has seen anyway."""
        if not self.as_json:
            out.print(_banner(self.dialogue, self.settings), style="dim", markup=False)
        self.resume()
        well = True
        for line in self._lines():
            text = line.strip()
            if text in ("/quit", "/exit") and not self.as_json:
                break
            if text:
                well = self._answer(text) and well
        if self.person and not self.as_json:
            self._end()
        return well or self.person

    def _end(self) -> None:
        """End the session, and say in a line what became of it."""
        from sharpwave.commands.sessions import line

        try:
            ended = self.dialogue.end(ask)
        except KeyboardInterrupt:
            return  # it is ended when the next one starts
        except SharpwaveError as error:
            _complain(str(error))
            return
        if ended is not None:
            out.print(plain(line(ended)), style="dim")

    def once(self, text: str) -> bool:
        """Take one message; returns whether it was answered and written. Raises what `turn` raises."""
        self.resume()
        try:
            return self.turn(text)
        except ModelError as error:
            raise ModelError(f"{error} {self._kept}") from error
        except KeyboardInterrupt:
            self._interrupted()
            raise typer.Exit(130) from None

    @property
    def _kept(self) -> str:
        return KEPT if self.dialogue.kept else "What you said is not kept."

    def _interrupted(self) -> None:
        err.print(f"Interrupted. {self._kept}", style="yellow", markup=False)

    def _answer(self, text: str) -> bool:
        try:
            if text.startswith("/") and " " not in text and not self.as_json:
                self._command(text)
                return True
            return self.turn(text)
        except ModelError as error:
            _complain(f"{error} {self._kept}")
            return False
        except SharpwaveError as error:
            _complain(str(error))
            return False
        except KeyboardInterrupt:
            self._interrupted()
            return False

    def turn(self, text: str) -> bool:
        """Say something and show the reply; returns whether it was written to memory, if it was to be."""
        from sharpwave.models import provider_errors

        show = _Show(silent=self.as_json)
        try:
            with provider_errors(self.settings):
                result = self.dialogue.say(_checked(text), show.token)
        finally:
            show.end()
        if not self.as_json:
            show.reply(result["reply"])
        while result["approval"] and (answer := ask(result["approval"])) is not None:
            with provider_errors(self.settings):
                result = self.dialogue.answer(answer)
        if self.as_json:
            print_json(result)
        else:
            _details(result, self.settings.mode)
        return self._written(result)

    def _written(self, result: dict[str, Any]) -> bool:
        """Say why what was said is not in memory, or is by rules only; returns whether it is."""
        if result["degraded"]:
            _complain(f"Written by rules: {result['degraded']}")
        for problem in result["errors"]:
            _complain(f"Not written to memory yet ({problem['stage']}): {problem['error']} {KEPT}")
        if result["approval"]:
            self._unapproved(result["approval"])
        return not (result["errors"] or result["approval"])

    def _unapproved(self, asked: dict[str, Any]) -> None:
        if self.person:
            _complain("Not written to memory yet: you are asked again with the next message or at the next start.")
            return
        user = shlex.quote(self.dialogue.user)
        err.print(plain(described(asked)), style="yellow")
        _complain(
            "Not written to memory yet: it waits for your approval. To be asked, run `sharpwave chat --user "
            f"{user} --confirm` at a terminal; to approve all that waits, `sharpwave retry --user {user} --yes`."
        )

    def resume(self) -> None:
        """Write what an earlier run left, and say so."""
        try:
            written, left = self.dialogue.resume(ask)
        except KeyboardInterrupt:
            err.print("Left for the next start.", style="yellow")
            return
        if written:
            err.print(f"Now written to memory: {_count(written, 'waiting message')}.", style="dim", markup=False)
        if left:
            errors = (error for _, _, error in self.dialogue.store.pending(self.dialogue.user))
            why = next((f" ({error})" for error in errors if error), "")
            waiting = _count(left, "waiting message")
            err.print(f"Not yet written to memory: {waiting}{why}.", style="yellow", markup=False)

    def _lines(self) -> Iterator[str]:
        if not self.person:
            try:
                yield from sys.stdin
            except UnicodeDecodeError as error:
                raise InputError(f"Standard input is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from error
            return
        import readline  # noqa: F401  gives input() editing and history

        while True:
            try:
                yield input("" if self.as_json else "\nyou> ")
            except EOFError:
                out.print()
                return
            except KeyboardInterrupt:
                err.print("\n/quit or Ctrl-D ends.", style="dim")

    def _command(self, name: str) -> None:
        store, user = self.dialogue.store, self.dialogue.user
        match name:
            case "/help":
                out.print(HELP, style="dim", markup=False)
            case "/memories":
                lines = [f"{m.valid_from:%Y-%m-%d}  {one_line(m.text)}" for m in store.memories(user)]
                out.print("\n".join(lines) or "Nothing is remembered yet.", style="dim", markup=False)
            case "/undo":
                for done in store.undo(user):
                    again = "" if done.text == done.before else f"; again: {one_line(done.text)}"
                    out.print(f"taken back: {one_line(done.before or '')}{again}", style="dim", markup=False)
            case _:
                out.print(f"There is no command {name}. /help lists them.", style="dim", markup=False)


class _Show:
    """Prints a reply as it comes."""

    def __init__(self, silent: bool) -> None:
        self.silent, self.streamed = silent, False

    def token(self, text: str) -> None:
        """Print the next piece of the reply."""
        if not self.silent:
            self.streamed = True
            out.print(text, end="", style="cyan", markup=False)

    def end(self) -> None:
        """End the line of a reply, whole or cut off."""
        if self.streamed:
            out.print()

    def reply(self, text: str) -> None:
        """Print a reply that did not come in pieces."""
        if not self.streamed:
            out.print(text, style="cyan", markup=False)


def _details(result: dict[str, Any], mode: str) -> None:
    """Print in dim lines what was recalled and written, and what it cost."""
    lines = [
        f"  [{n}] recalled  {one_line(hit['text'])}  ({hit['score']:.2f})"
        for n, hit in enumerate(result["recalled"], 1)
    ]
    lines += [
        f"  {item['op']:<6}  {one_line(item['text'])}  ({one_line(item['reason'])})" for item in result["operations"]
    ]
    if result["masked"]:
        lines.append(f"  masked: {', '.join(kind.replace('_', ' ') for kind in result['masked'])}")
    usage, timings = result["usage"], result["timings_ms"]
    cost = "rule-based, no language model"
    if mode != "keyless":
        tokens = f"{usage['prompt_tokens']} + {usage['completion_tokens']} tokens"
        cost = f"{_count(usage['llm_calls'], 'model call')}, {tokens}"
    lines.append(f"  {cost} · {timings['total']:.0f} ms")
    out.print("\n".join(lines), style="dim", markup=False)


def _banner(dialogue: "Dialogue", settings: Settings) -> str:
    keep = "" if dialogue.remember else " Incognito: nothing is kept."
    where = f"Sharpwave, with {dialogue.user} in the conversation {dialogue.thread!r}.{keep}"
    if settings.mode == "keyless":
        mode = "Rule-based mode: no language model, it finds and quotes what you told it. OPENAI_API_KEY sets a model."
    else:
        mode = f"Model: {settings.model or 'the default one'}, {_place(settings)}."
    return f"{where}\n{mode} /help lists the commands."


def _place(settings: Settings) -> str:
    if settings.mode == "local":
        return "in this process"
    return f"at {urlsplit(settings.openai_base_url).hostname}" if settings.openai_base_url else "at OpenAI"


def one_line(text: str, most: int = 100) -> str:
    """Return a text on one line of at most `most` characters."""
    flat = " ".join(text[: most * 4].split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _complain(message: str) -> None:
    err.print(f"sharpwave: {' '.join(message.split())}", style="red", markup=False)
