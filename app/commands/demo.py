"""`sharpwave demo`: three conversations over simulated weeks, without a model, and a look at what became of memory."""

import shutil
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sharpwave.console import JsonOption, err, opened, out, print_json
from sharpwave.scenes import AFTER_UNDO, ASKED, BEFORE_THE_MOVE, SCENES, UNKNOWN, Line, Scene
from sharpwave.settings import Settings

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite import SqliteSaver

    from sharpwave.memory.applying import Applied
    from sharpwave.memory.store import MemoryStore

KeepOption = Annotated[bool, typer.Option("--keep", help="Keep the folder of the demo, and print where it is.")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("demo")(demo)


def demo(as_json: JsonOption = False, keep: KeepOption = False) -> None:
    """Watch the agent remember, change its mind and answer from memory: no key, no network, your own memories untouched.

    It checks itself: exit 1 names what did not happen.
    """
    home = Path(tempfile.mkdtemp(prefix="sharpwave-demo-"))
    try:
        play = _play(home, Console(quiet=True) if as_json else out)
    finally:
        if not keep:
            shutil.rmtree(home)
    if as_json:
        print_json(
            {"steps": play.steps, "checks": play.checks, "summary": play.summary, "home": str(home) if keep else None}
        )
    elif keep:
        out.print(f"Kept in {home}: sharpwave --home {home} chat --user ana", style="dim", markup=False)
    missed = [check["what"] for check in play.checks if not check["ok"]]
    for what in missed:
        err.print(f"sharpwave: the demo went wrong: {what}", style="red", markup=False)
    if missed:
        raise typer.Exit(1)


def _play(home: Path, screen: Console) -> "_Play":
    from sharpwave.checkpoints import open_checkpointer

    settings = Settings.load(
        home=home,
        model="none",
        embeddings="local",
        extractor="rules",
        policy="rules",
        confirm=False,
        recall_budget=300,
        timezone="UTC",
    )
    screen.print("Sharpwave, rule-based: no language model, no key, no network. The dates are simulated.", style="dim")
    with ExitStack() as stack:
        store = stack.enter_context(opened(settings))
        play = _Play(settings, store, stack.enter_context(open_checkpointer(home)), screen)
        for scene in SCENES:
            play.scene(scene)
        play.past()
        play.history()
        play.undo()
        play.scene(AFTER_UNDO)
        play.end()
    return play


@dataclass
class _Play:
    """Runs the scenes, shows them, and keeps what was checked."""

    settings: Settings
    store: "MemoryStore"
    saver: "SqliteSaver"
    screen: Console
    steps: list[dict[str, Any]] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)

    def scene(self, scene: Scene) -> None:
        """Hold a conversation, two minutes a message."""
        from sharpwave.dialogue import Dialogue

        self.title(f"{scene.title}  ·  {scene.at.day} {scene.at:%B %Y}, thread {scene.thread!r}")
        dialogue = Dialogue(self.settings, self.store, self.saver, user=scene.user, thread=scene.thread)
        for number, line in enumerate(scene.lines):
            at = scene.at + timedelta(minutes=2 * number)
            result = dialogue.say(line.said, now=at)
            self.show(scene.user, line.said, "bold")
            self.show("agent", result["reply"], "cyan")
            self.operations(scene.user, result["operations"])
            self.judge(line, result)
            taken = {key: result[key] for key in ("reply", "recalled", "citations", "operations")}
            self.steps.append({"at": at, "user": scene.user, "thread": scene.thread, "said": line.said, **taken})

    def judge(self, line: Line, result: dict[str, Any]) -> None:
        """Check what came of a line."""
        done = [item["op"] for item in result["operations"]]
        wanted = ", ".join(line.operations) or "nothing written"
        self.check(
            f"{line.said!r} gives {wanted}; it gave {', '.join(done) or 'nothing'}", done == list(line.operations)
        )
        if line.answer:
            cites = bool(result["citations"]) == (line.answer != UNKNOWN)
            says = line.answer.casefold() in result["reply"].casefold()
            self.check(
                f"{line.said!r} is answered with {line.answer!r}, from memory; it was {result['reply']!r}",
                says and cites,
            )

    def operations(self, user: str, done: list[dict[str, Any]]) -> None:
        """Show what was done to memory."""
        for item in done:
            match item["op"]:
                case "ADD":
                    note = f"importance {self.store.get(user, item['memory_id']).importance:g}"
                case "UPDATE":
                    note = f"before: {item['before']}"
                case _:
                    note = item["reason"]
            self.show(item["op"], f"{item['text']}  ({note})", COLOURS[item["op"]])

    def past(self) -> None:
        """Ask what was so before the move."""
        self.title(f"The past: {ASKED!r} as of {BEFORE_THE_MOVE.day} {BEFORE_THE_MOVE:%B %Y}")
        found = self.store.recall("ana", ASKED, k=1, as_of=BEFORE_THE_MOVE, stores=("semantic",))
        text = found[0].text if found else "nothing"
        self.show("as of", text, "cyan")
        self.check(f"on that day the answer was Oslo; it was {text!r}", "Oslo" in text)

    def history(self) -> None:
        """Show how the changed fact came about."""
        self.title("The history of that fact")
        fact = next((m for m in self.store.memories("ana") if m.attribute == "home_city"), None)
        versions = self.store.versions("ana", fact.id) if fact else []
        reasons = {event.version: event.reason for event in self.store.history("ana", fact.id)} if fact else {}
        for memory in versions:
            until = _day(memory.valid_to) if memory.valid_to else "now"
            self.show(
                f"v{memory.version}",
                f"{memory.text}  ({_day(memory.valid_from)} – {until}; {reasons[memory.version]})",
                "cyan",
            )
        self.check(f"the city has two versions; it has {len(versions)}", len(versions) == 2)

    def undo(self) -> None:
        """Take back the last change."""
        self.title("Undo: the job was not given up after all")
        done: list[Applied] = self.store.undo("ana")
        for item in done:
            self.show("UNDO", f"{item.text}  ({item.reason})", "magenta")
        self.check("undo brings the job back", [item.text for item in done] == ["I work as a nurse."])

    def end(self) -> None:
        """Sum up."""
        counts = Counter(item["op"] for step in self.steps for item in step["operations"])
        told = [step for scene in SCENES[:3] for step in self.steps if step["thread"] == scene.thread]
        self.summary = {
            **{op: counts[op] for op in ("ADD", "UPDATE", "DELETE", "NOOP")},
            "nothing_written": sum(not step["operations"] for step in told),
            "memories": {user: len(self.store.memories(user)) for user in ("ana", "bob")},
            "checks": len(self.checks),
            "passed": sum(check["ok"] for check in self.checks),
            "cpu_seconds": round(time.process_time(), 1),
        }
        self.screen.print()
        self.screen.print(_table(self.summary))

    def check(self, what: str, ok: bool) -> None:
        """Note whether something was as it should be."""
        self.checks.append({"what": what, "ok": ok})

    def title(self, text: str) -> None:
        """Begin a part."""
        self.screen.print()
        self.screen.print(Text(text, style="bold yellow"))

    def show(self, who: str, text: str, style: str) -> None:
        """Print who, and what, on lines of their own."""
        for number, part in enumerate(text.splitlines()):
            self.screen.print(Text.assemble((f"  {who if not number else '':<7}", "dim"), (part, style)))


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B}"


COLOURS = {"ADD": "green", "UPDATE": "blue", "DELETE": "red", "NOOP": "dim"}


def _table(summary: dict[str, Any]) -> Table:
    table = Table(title="What became of it", title_justify="left", show_header=False)
    table.add_column(style="dim")
    table.add_column(justify="right")
    rows = {
        "ADD: something new": summary["ADD"],
        "UPDATE: changed, the old version kept": summary["UPDATE"],
        "DELETE: taken back, a tombstone kept": summary["DELETE"],
        "NOOP: known already, now surer": summary["NOOP"],
        "small talk: nothing written": summary["nothing_written"],
        "memories of ana now": summary["memories"]["ana"],
        "memories of bob now": summary["memories"]["bob"],
        "checks passed": f"{summary['passed']} of {summary['checks']}",
        "CPU seconds, start included": summary["cpu_seconds"],
    }
    for name, value in rows.items():
        table.add_row(name, str(value))
    return table
