"""`sharpwave recall` and `reset-recall`: ask the memory, without a model; forget what its order has learned."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sharpwave.arguments import AsOfOption, KnownAtOption, moment, one_of
from sharpwave.console import JsonOption, UserOption, opened, out, print_json, settings_of, user_of
from sharpwave.memory.errors import InputError
from sharpwave.memory.records import Recall, Score
from sharpwave.showing import row, table, when

if TYPE_CHECKING:
    from sharpwave.memory.index import StoreName

STORES: "dict[str, tuple[StoreName, ...]]" = {
    "both": ("semantic", "episodic"),
    "semantic": ("semantic",),
    "episodic": ("episodic",),
}
PARTS = tuple(name for name in Score.model_fields if name != "total")
MOST = 10


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command("recall")(recall)
    app.command("reset-recall")(reset_recall)


def recall(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A question, or any words, in any script.")],
    user: UserOption = None,
    as_of: AsOfOption = None,
    known_at: KnownAtOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Leave out what nobody has confirmed for long.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of each score.")] = False,
    budget: Annotated[
        int | None, typer.Option("--budget", help="Most tokens of text in all.", show_default=False)
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", help="Most results.")] = MOST,
    store: Annotated[str, typer.Option("--store", help="semantic (memories), episodic (messages), or both.")] = "both",
    as_json: JsonOption = False,
) -> None:
    """Find what a user has said, or is remembered for, that has to do with a question."""
    settings = settings_of(context)
    owner = user_of(settings, user)
    times = {"as_of": moment(as_of, settings), "known_at": moment(known_at, settings), "timezone": settings.timezone}
    one_of("store", store, tuple(STORES))
    if not query.strip():
        raise InputError("The question is blank.")
    with opened(settings) as opened_store:
        hits = opened_store.recall(
            owner, query, k=k, budget=budget, stores=STORES[store], explain=explain, strict=strict, **times
        )
        opened_store.count_recalled(owner, hits)
    if as_json:
        print_json({"query": query, "results": [_result(hit) for hit in hits]})
    elif hits:
        _print(hits, settings.timezone)
    else:
        out.print("Nothing is known about that.")


def reset_recall(context: typer.Context, user: UserOption = None, as_json: JsonOption = False) -> None:
    """Forget what recall has learned from a user's citations; no memory changes."""
    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        lessons = store.reset_recall(owner)
    if as_json:
        print_json({"user": owner, "lessons": lessons})
    else:
        out.print(f"Forgot what {lessons} answers had taught." if lessons else "Nothing had been learned.")


def _result(hit: Recall) -> dict[str, Any]:
    result = {
        "id": hit.id,
        "store": hit.store,
        "text": hit.text,
        "score": hit.score,
        "said_at": hit.said_at.isoformat(),
    }
    if hit.parts:
        result["parts"] = hit.parts.model_dump()
    if hit.memory:
        fields = {"kind", "subject", "attribute", "value", "confidence", "status", "version", "valid_from", "valid_to"}
        result["memory"] = hit.memory.model_dump(mode="json", include=fields | {"event_time", "needs_review"})
    if hit.utterance:
        fields = {"thread", "message_id", "position", "role", "speaker"}
        result["utterance"] = hit.utterance.model_dump(mode="json", include=fields)
    return result


def _print(hits: list[Recall], zone: str) -> None:
    shown = table("Score", "When", "From", "Text")
    for hit in hits:
        source = "memory" if hit.memory else ""
        if hit.utterance:
            source = f"{hit.utterance.speaker} in {hit.utterance.thread}"
        parts = " · ".join(f"{name} {getattr(hit.parts, name):.2f}" for name in PARTS) if hit.parts else ""
        row(shown, f"{hit.score:.2f}", when(hit.said_at, zone), source, f"{hit.text}\n{parts}".rstrip())
    out.print(shown)
