"""`sharpwave context`: what an answer to a question would be shown, and what not."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sharpwave.console import JsonOption, UserOption, opened, out, print_json, settings_of, user_of
from sharpwave.showing import plain, row, table

if TYPE_CHECKING:
    from sharpwave.graphs import Sections


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("context")(context)


def context(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What would be asked.")],
    user: UserOption = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            min=1,
            help="Tokens of the model's window. Default: SHARPWAVE_CONTEXT_TOKENS, else 8000.",
            show_default=False,
        ),
    ] = None,
    agent: Annotated[str, typer.Option("--agent", help="Which of the user's agents would answer.")] = "agent",
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what had no room, what was outweighed, and scores.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what memory would put into a prompt: its sections, their tokens and shares. Nothing is asked of a model."""
    from sharpwave.graphs import sections_for
    from sharpwave.graphs.sections import WINDOW

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        found = sections_for(
            *(store, owner, query),
            window=budget or settings.context_tokens or WINDOW,
            facts=settings.recall_budget,
            agent=agent,
            timezone=settings.timezone,
        )
    data = _data(query, found, explain)
    if as_json:
        print_json(data)
    else:
        _print(data)


def _data(query: str, found: "Sections", explain: bool) -> dict[str, Any]:
    from sharpwave.memory.context import LAYOUT

    made = found.made
    data: dict[str, Any] = {
        "query": query,
        "window": made.window,
        "reserve": made.reserve,
        "instructions": made.fixed,
        "message": made.query,
        "core": found.gathered.core,
        "tokens": made.tokens,
        "sections": [
            {
                "name": section.name,
                "share": made.window * LAYOUT[section.name] // sum(LAYOUT.values()),
                "tokens": section.tokens,
                "lines": list(section.lines),
                **({"left_out": list(section.left_out)} if explain else {"left_out": len(section.left_out)}),
            }
            for section in made.sections
        ],
        "outweighed": [one.model_dump() for one in found.gathered.outweighed],
    }
    if explain:
        data["recalled"] = [
            {"id": hit.id, "text": hit.text, "score": hit.score, "parts": hit.parts and hit.parts.model_dump()}
            for hit in found.recalled
        ]
    return data


def _print(data: dict[str, Any]) -> None:
    if data["core"]:
        out.print(plain(data["core"]))
    shown = table("Section", "Tokens", "Share", "Line")
    for section in data["sections"]:
        _rows(shown, section)
    out.print(shown)
    taken = f"{data['tokens']} of {data['window']} tokens: instructions and core memory {data['instructions']}, question {data['message']}"
    out.print(plain(f"{taken}; {data['reserve']} are left for the answer. What a section leaves goes to the next."))
    for lost in data["outweighed"]:
        out.print(plain(f"Not shown ({lost['kind']}): {lost['text']}\n  for: {lost['by']}  ({lost['reason']})"))
    for hit in data.get("recalled", ()):
        parts = " · ".join(f"{name} {value:.2f}" for name, value in (hit["parts"] or {}).items() if name != "total")
        out.print(plain(f"{hit['score']:.2f}  {hit['text']}\n      {parts}"), style="dim")


def _rows(shown: Any, section: dict[str, Any]) -> None:
    """Add a section: its lines, and with --explain those that had no room."""
    left = section["left_out"]
    lines = [*section["lines"], *(f"no room: {line}" for line in (left if isinstance(left, list) else ()))]
    if isinstance(left, int) and left:
        lines.append(f"… {left} more had no room (--explain shows them)")
    for at, line in enumerate(lines or ["–"]):
        head = (section["name"], str(section["tokens"]), str(section["share"])) if at == 0 else ("", "", "")
        row(shown, *head, line)
