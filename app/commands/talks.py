"""`sharpwave episodes conversations`: find whole conversations again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sharpwave.console import JsonOption, UserOption, opened, out, print_json, settings_of, user_of
from sharpwave.settings import Settings
from sharpwave.showing import row, table, when

if TYPE_CHECKING:
    from sharpwave.memory.conversations import FoundSession


def conversations(
    context: typer.Context,
    question: Annotated[
        str, typer.Argument(metavar="[QUESTION]", help="What, and when: 'the flat in March'.", show_default=False)
    ] = "",
    user: UserOption = None,
    index: Annotated[
        bool, typer.Option("--index", help="First summarise what is new. Without a model: sentences that were said.")
    ] = False,
    k: Annotated[int, typer.Option("--k", "-k", help="Most results.")] = 5,
    as_json: JsonOption = False,
) -> None:
    """Find whole conversations by what they were about, and when."""
    from sharpwave.memory.conversations import Conversations
    from sharpwave.models import chat_model

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        kept = Conversations(store)
        made = kept.index(owner, chat_model(settings)) if index else []
        found = kept.search(owner, question, k=k, timezone=settings.timezone)
    if as_json:
        results = [{"score": one.score, **one.session.model_dump(mode="json", exclude={"owner"})} for one in found]
        print_json({"question": question, "indexed": len(made), "conversations": results})
    else:
        _print_conversations(found, settings)


def _print_conversations(found: "Sequence[FoundSession]", settings: Settings) -> None:
    if not found:
        out.print("No such conversation. `sharpwave episodes conversations --index` summarises those that are new.")
        return
    shown = table("Thread", "From", "To", "Topics", "Summary")
    for one in found:
        session = one.session
        span = (when(session.started_at, settings.timezone), when(session.last_at, settings.timezone))
        row(shown, session.thread, *span, ", ".join(session.topics), session.summary or "")
    out.print(shown)
