"""`sharpwave replay run`, `status`, `plot` and `schedule`: rehearse, consolidate and forget; now, or whenever there is a reason."""

import json
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from sharpwave.arguments import hours, pause
from sharpwave.console import JsonOption, UserOption, err, opened, out, print_json, settings_of, user_of
from sharpwave.memory.errors import InputError
from sharpwave.showing import plain, row, table, when

StrategyOption = Annotated[
    str,
    typer.Option("--strategy", "-s", help="What is replayed: a name, or names with shares as in recent=2,random=1."),
]
DRAWN = 1000
"""Runs that are drawn, the latest."""
NumberOption = Annotated[int, typer.Option("-n", "--number", help="Records to replay.")]
RateOption = Annotated[float, typer.Option("--rate", help="Strength that a replay adds, above 0 and at most 1.")]
CueOption = Annotated[
    str | None, typer.Option("--cue", help="Text that contextual replay is about.", show_default=False)
]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    group = typer.Typer(help="Rehearse, consolidate and forget.", no_args_is_help=True)
    for command in (run, status, plot, schedule):
        group.command(command.__name__)(command)
    app.add_typer(group, name="replay")


def run(
    context: typer.Context,
    user: UserOption = None,
    strategy: StrategyOption = "prioritized",
    number: NumberOption = 10,
    rate: RateOption = 0.1,
    cue: CueOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    run_id: Annotated[
        str | None, typer.Option("--run", help="Id of a run: to take it up, or see its report.", show_default=False)
    ] = None,
    probes: Annotated[
        int | None,
        typer.Option(help="Questions asked of memory itself; 0 leaves them out. Default: 20.", show_default=False),
    ] = None,
    max_llm_calls: Annotated[int | None, typer.Option(help="Most model calls.", show_default=False)] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Most tokens.", show_default=False)] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Most seconds.", show_default=False)] = None,
    as_json: JsonOption = False,
) -> None:
    """Replay now. A run that was interrupted, and was asked for in the same way, is finished."""
    from sharpwave.assembly import replay_graph
    from sharpwave.graphs import Context

    settings = settings_of(context)
    owner = user_of(settings, user)
    more = {
        "run": run_id,
        "probes": probes,
        "max_llm_calls": max_llm_calls,
        "max_tokens": max_tokens,
        "max_seconds": max_seconds,
    }
    asked: Any = {**_asked(strategy, number, rate, cue), "dry_run": dry_run}
    asked |= {name: value for name, value in more.items() if value is not None}
    with opened(settings) as store, err.status("Replaying …") as shown:
        graph = replay_graph(settings, store).compile()
        report: dict[str, Any] = {}
        parts: Any = graph.stream(asked, context=Context(user_id=owner), stream_mode=["custom", "values"])
        for mode, part in parts:
            if mode == "custom":
                shown.update(f"Replaying … {part['step']}")
            else:
                report = part.get("report") or report
    if as_json:
        print_json(report)
    else:
        _show(report)


def _asked(strategy: str, number: int, rate: float, cue: str | None) -> dict[str, Any]:
    asked: dict[str, Any] = {"n": number, "strategy": _shares(strategy), "rate": rate}
    if cue is not None:
        asked["cue"] = cue
        if strategy == "prioritized":  # the default: who gives a cue wants what it is about
            asked["strategy"] = "contextual"
    return asked


def _shares(strategy: str) -> str | dict[str, float]:
    if "=" not in strategy and "," not in strategy:
        return strategy
    shares = {}
    for part in strategy.split(","):
        name, _, share = part.partition("=")
        try:
            shares[name.strip()] = float(share or 1)
        except ValueError as error:
            raise InputError(f"The share {share!r} of {name!r} is no number. Write recent=2,random=1.") from error
    return shares


def _show(report: dict[str, Any]) -> None:
    done = "would be" if report["dry_run"] else "were"
    shown = table("", "")
    for name in ("run", "strategy", *COUNTED):
        row(shown, name.replace("_", " "), str(report[name]))
    row(shown, "mean increase", f"{report['mean_increase']:.3f}")
    if report["probes"]["asked"]:
        row(shown, "probes", f"{report['probes']['asked']} asked, {_found(report['probes'])} found")
        row(shown, "repaired", str(report["probes"]["repaired"]))
    out.print(shown)
    for one in report.get("would", {}).get("forget", {}).get("forgotten", []):
        out.print(plain(f"{one['text']}: {done} forgotten ({one['reason']})"))
    if report["too_much_to_forget"]:
        out.print(plain("Nothing was forgotten: too much would have gone at once."), style="yellow")
    if report["partial"]:
        out.print(plain(f"Not all was done: {report['partial']}"), style="yellow")


def _found(probes: dict[str, Any]) -> str:
    """Return the share that was found before and after, `80 → 95 %`."""
    shares = (probes["recall_before"], probes["recall_after"])
    return " → ".join(_percent(share) for share in shares if share is not None).replace(" % →", " →")


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def status(
    context: typer.Context,
    user: UserOption = None,
    last: Annotated[int, typer.Option("--last", min=1, help="Runs to show.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Show the runs so far, the replay buffer, and how strong what is in it has become."""
    from sharpwave.memory import waking

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        found = waking.status(store, owner, last=last)
    if as_json:
        print_json({"user": owner, **found._asdict()})
        return
    shown = table("", "")
    row(shown, "runs", f"{found.runs}" + (f", {len(found.unfinished)} not finished" if found.unfinished else ""))
    row(shown, "buffer", f"{found.buffer} of {found.buffer_size}, {found.new} new, {found.due} due")
    if found.mean_strength is not None:
        row(shown, "mean strength", f"{found.mean_strength:.3f}")
        row(shown, "mean replays", f"{found.mean_replayed:.2f}")
    row(shown, "memories", f"{found.memories}" + ("" if found.used is None else f", {_percent(found.used)} ever used"))
    row(shown, "last run", when(found.last_run, settings.timezone) or "never")
    out.print(shown)
    if found.history:
        past = table("At", "Strategy", "What came of it")
        for one in found.history:
            counts = [f"{one[name]} {name.replace('_', ' ')}" for name in COUNTED if one.get(name)]
            row(past, _at(one), str(one.get("strategy", "")), ", ".join(counts) or one.get("partial") or "nothing")
        out.print(past)
        _show_effect([one for one in found.history if "store" in one])


COUNTED = (
    "replayed",
    "strengthened",
    "merged",
    "derived",
    "rolled_up",
    "learned",
    "insights",
    "settled",
    "forgotten",
)


def _at(run: dict[str, Any]) -> str:
    return str(run["at"])[5:16].replace("T", " ")


def _show_effect(history: list[dict[str, Any]]) -> None:
    shown = table("At", "Strength", "Memories", "MB", "Found", "Evidence", "Calls", "Tokens")
    for one in history:
        store, usage = one["store"], one["usage"]
        strength = "" if store["mean_strength"] is None else f"{store['mean_strength']:.2f}"
        row(
            shown,
            *(_at(one), strength, str(store["memories"])),
            *(f"{store['bytes'] / 1e6:.1f}", _found(one["probes"]), _percent(one["probes"]["evidence"])),
            *(str(usage["llm_calls"]), str(usage["prompt_tokens"] + usage["completion_tokens"])),
        )
    if history:
        out.print(shown)


def plot(
    context: typer.Context,
    to: Annotated[Path, typer.Option("--out", help="File to write, .png or .svg.", show_default=False)],
    user: UserOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw strength, size and probe recall over time (extra `plots`)."""
    from sharpwave.memory import waking
    from sharpwave.plots import draw

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        history = waking.status(store, owner, last=DRAWN).history
    draw(history, to)
    if as_json:
        print_json({"user": owner, "file": str(to), "runs": len(history)})
    else:
        out.print(plain(f"{len(history)} runs were drawn into {to}."))


def schedule(
    context: typer.Context,
    every: Annotated[
        str | None, typer.Option("--every", help="Time between two runs: 10s, 30m, 2h, 1d.", show_default=False)
    ] = None,
    cron: Annotated[
        str | None, typer.Option("--cron", help="When to run, as five fields: '0 3 * * *'.", show_default=False)
    ] = None,
    off_peak: Annotated[
        str | None, typer.Option("--off-peak", help="Hours in which runs begin: 1-5.", show_default=False)
    ] = None,
    threshold: Annotated[
        int | None, typer.Option("--threshold", help="New records that call for a run.", show_default=False)
    ] = None,
    idle: Annotated[
        str | None, typer.Option("--idle", help="Quiet time that calls for a run: 10m.", show_default=False)
    ] = None,
    cue: Annotated[
        list[str] | None,
        typer.Option(
            "--cue", help="Replay what is about this when something new is; may be repeated.", show_default=False
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", "-u", help="Of whom. Default: of everybody.", show_default=False)
    ] = None,
    strategy: StrategyOption = "prioritized",
    number: NumberOption = 10,
    rate: RateOption = 0.1,
    as_json: JsonOption = False,
) -> None:
    """Keep replaying, in the foreground, until it is told to end: by the clock, and when something calls for it."""
    from sharpwave.assembly import replay_graph
    from sharpwave.scheduler import ReplayScheduler

    if not any((every, cron, threshold, idle, cue)):
        raise InputError("When is there to be a replay? Pass --every, --cron, --threshold, --idle or --cue.")
    settings = settings_of(context)
    with opened(settings) as store:
        scheduler = ReplayScheduler(
            store,
            replay_graph(settings, store),
            every=pause(every),
            cron=cron,
            off_peak=hours(off_peak),
            threshold=threshold,
            idle=pause(idle),
            cues=cue or (),
            owners=None if user is None else [user],
            timezone=settings.timezone,
            asked=_asked(strategy, number, rate, None),
            heard=lambda owner, why, report: _tell(owner, why, report, as_json),
        )
        _until_ended(scheduler)


def _until_ended(scheduler: Any) -> None:
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: ended.set())
    scheduler.start()
    err.print("Replaying whenever there is a reason. Ctrl-C ends it.", style="dim")
    while not ended.wait(1.0):  # with a timeout, so that signals are heard on every platform
        pass
    scheduler.stop()


def _tell(owner: str, why: str, report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"user": owner, "why": why, **report}, ensure_ascii=False) + "\n")
        sys.stdout.flush()
        return
    counts = ", ".join(f"{report[name]} {name}" for name in ("replayed", "merged", "derived", "settled", "forgotten"))
    out.print(plain(f"{owner} ({why}): {counts}"))
