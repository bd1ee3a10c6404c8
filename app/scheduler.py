"""Replay on a schedule: by the clock, when enough is new or about a cue, when something happened, or after a quiet time.

When the clock ticked last is kept in the ledger. So what was missed while nobody was there is caught up, once, and a run
that was killed is finished first.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sharpwave.graphs import Context
from sharpwave.graphs.replay import ReplayGraph
from sharpwave.graphs.replay_run import asked_of
from sharpwave.memory import ledger, runs, times, waking
from sharpwave.memory.errors import InputError
from sharpwave.memory.sessions import IDLE, Sessions
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.waking import News

if TYPE_CHECKING:
    from apscheduler.triggers.base import BaseTrigger

log = logging.getLogger(__name__)

LOOK = 1.0
"""Seconds between two looks at what is new."""
LATER = 60.0
"""Seconds after which an owner whose run failed is tried again."""

Heard = Callable[[str, str, dict[str, Any]], object]
"""Is told of a run: whose, what called for it, and the report."""


class ReplayScheduler:
    """Replays the memories of everybody, or of some, whenever there is a reason.

    At each tick of the clock, those who have said something new or have memories that are due are replayed. Several
    schedulers may work on one folder; an owner is replayed by one at a time.

    Args:
        store: the memory.
        graph: see `build_replay`.
        every: time between two ticks.
        cron: when it ticks, as five fields (`0 3 * * *`); 0 and 7 are Sunday.
        off_peak: hours of the day in which runs begin, the second one excluded; `(22, 6)` goes over midnight.
        threshold: new records of an owner that call for a run.
        idle: time without anything new after which what was new before is replayed.
        events: whether an episode that failed, a contradiction, and the end of a session call for a run. A session ends here
            too, when nothing was said for half an hour.
        cues: what is nearest to one of these is replayed as soon as something new is about it.
        owners: whose memories; None is everybody's.
        timezone: IANA zone of `cron` and `off_peak`.
        asked: what each run is asked for; see `build_replay`.
        heard: is told of each run.
        look: seconds between two looks at what is new.

    Raises:
        InputError: a cron that cannot be read or never comes, both a cron and a time between ticks, or a number, time, zone
            or request that cannot be.
    """

    def __init__(
        self,
        store: MemoryStore,
        graph: ReplayGraph,
        *,
        every: timedelta | None = None,
        cron: str | None = None,
        off_peak: tuple[int, int] | None = None,
        threshold: int | None = None,
        idle: timedelta | None = None,
        events: bool = True,
        cues: Sequence[str] = (),
        owners: Sequence[str] | None = None,
        timezone: str = "UTC",
        asked: Mapping[str, Any] | None = None,
        heard: Heard = lambda owner, why, report: None,
        look: float = LOOK,
    ) -> None:
        if threshold is not None and threshold < 1:
            raise InputError(f"The number of new records that calls for a replay must be at least 1; got {threshold}.")
        if idle is not None and idle < timedelta(0):
            raise InputError(f"The time without anything new must be 0 or more; got {idle}.")
        self.store, self._graph = store, graph.compile()
        self.threshold, self.idle, self.events, self.cues, self.owners = threshold, idle, events, cues, owners
        self.off_peak, self.zone = off_peak, times.time_zone(timezone)
        asked_of(asked or {})
        self.asked, self.heard, self._pause = dict(asked or {}), heard, look
        self._trigger = _trigger(every, cron, timezone)
        self._key = f"replay_tick {f'cron {cron}' if cron else f'every {every}'}"
        self._news: dict[str, News] = {}
        self._marks: waking.Marks = (0, 0, 0)
        self._not_before: dict[str, float] = {}
        self._active: dict[str, datetime] = {}
        self._cued: dict[str, str] = {}
        self._stopping = threading.Event()
        self._clock: Any = None

    def start(self) -> None:
        """Begin, in a thread of its own; with what was missed, if something was."""
        from apscheduler.schedulers.background import BackgroundScheduler

        clock_log = logging.getLogger(f"{__name__}.clock")
        clock_log.setLevel(logging.ERROR)  # a look that is not over when the next one is due is no news
        self._stopping.clear()
        self._last_tick(times.now())
        self._clock = BackgroundScheduler(logger=clock_log, timezone=UTC)
        self._clock.add_job(
            self.look,
            "interval",
            seconds=self._pause,
            next_run_time=datetime.now(UTC),
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,
        )
        self._clock.start()
        self.store.before_closing.append(self.stop)

    def stop(self) -> None:
        """End; a run that is under way stops after its step, and is finished at the next start."""
        self._stopping.set()
        if self._clock is not None:
            self._clock.shutdown(wait=True)
            self._clock = None
            self.store.before_closing.remove(self.stop)

    def trigger(self, owner: str, **asked: Any) -> dict[str, Any]:
        """Run a replay at once, whatever the hour, and return its report; `asked` goes over what all runs are asked for.

        Raises:
            UnderWay: one is under way for this owner.
        """
        given: Any = {**self.asked, **asked}
        report: dict[str, Any] = self._graph.invoke(given, context=Context(user_id=owner))["report"]
        return report

    def look(self) -> None:
        """Look once whether there is a reason for a run, and run what there is a reason for."""
        now = times.now()
        if not self._in_hours(now):
            return
        last = self._last_tick(now)
        due = self._trigger.get_next_fire_time(last, last) if self._trigger and last else None
        ticks = due is not None and due <= now
        for owner in self._refresh(now, everybody=ticks):
            self._match_cues(owner)
        self._end_sessions(now)
        with self.store.ledger.read() as connection:
            begun = [(owner, run.run) for owner, run in runs.unfinished(connection) if self._ours(owner)]
        for owner, run in begun:
            self._run(owner, "unfinished", run)
        for owner, came in list(self._news.items()):
            why = "periodic" if ticks and (came.new or came.due) else self._reason(came, now)
            if why:
                self._run(owner, why)
            elif owner in self._cued:
                self._run(owner, "cue", strategy="contextual", cue=self._cued[owner])
        if ticks and not self._stopping.is_set():
            self._note_tick(now)

    def _reason(self, came: News, now: datetime) -> str | None:
        if self.events and (came.troubles or came.ended):
            return "trouble" if came.troubles else "session"
        if self.threshold is not None and came.new >= self.threshold:
            return "threshold"
        if self.idle is not None and came.new and came.last is not None and abs(now - came.last) >= self.idle:
            return "idle"
        return None

    def _match_cues(self, owner: str) -> None:
        """Note the first cue that something new is about."""
        for cue in self.cues if self._news[owner].new else ():
            vector = self.store.embed_query(cue)
            with self.store.transaction(owner) as (connection, number):
                if waking.about(connection, number, vector):
                    self._cued[owner] = cue
                    return

    def _end_sessions(self, now: datetime) -> None:
        """End the sessions of those who have said nothing for too long."""
        quiet = [owner for owner, last in self._active.items() if now - last > IDLE]
        for owner in quiet:
            del self._active[owner]
            if Sessions(self.store).end_idle(owner, now=now):
                self._refresh(now, everybody=False)

    def _in_hours(self, now: datetime) -> bool:
        if self.off_peak is None:
            return True
        first, end = self.off_peak
        hour = now.astimezone(self.zone).hour
        return first <= hour < end if first < end else hour >= first or hour < end

    def _ours(self, owner: str) -> bool:
        return self.owners is None or owner in self.owners

    def _refresh(self, now: datetime, *, everybody: bool) -> list[str]:
        """Look up what is new of those for whom something was written, and return who they are."""
        looked_up = []
        with self.store.ledger.read() as connection:
            found, self._marks = waking.changed(connection, self._marks)
            for owner in ledger.all_owners(connection) if everybody else found:
                number = ledger.owner_number(connection, owner)
                if number is not None and self._ours(owner):
                    self._news[owner] = came = waking.news(connection, number, now)
                    if self.events and came.last is not None:
                        self._active[owner] = came.last
                    looked_up.append(owner)
        return looked_up

    def _last_tick(self, now: datetime) -> datetime | None:
        """Return when the clock ticked last; it begins now where it never did, or where it was set back since."""
        if self._trigger is None:
            return None
        with self.store.ledger.read() as connection:
            kept = ledger.get_meta(connection, self._key)
        last = times.parse_time(kept) if kept else None
        if last is None or last > now:
            self._note_tick(now)
            return now
        return last

    def _note_tick(self, now: datetime) -> None:
        with self.store.ledger.write() as connection:
            ledger.set_meta(connection, self._key, now.isoformat())

    def _run(self, owner: str, why: str, run: str | None = None, **more: Any) -> None:
        if self._stopping.is_set() or time.monotonic() < self._not_before.get(owner, 0.0):
            return
        try:
            report = self._replay(owner, run, more)
        except runs.UnderWay:
            self._not_before[owner] = time.monotonic() + self._pause
        except Exception:  # whatever a caller's own steps raise, the others' memories are replayed all the same
            log.exception("A replay has failed; it is tried again in %d s.", LATER)
            self._not_before[owner] = time.monotonic() + LATER
        else:
            self._news.pop(owner, None)
            self._cued.pop(owner, None)
            if report:
                self.heard(owner, why, report)

    def _replay(self, owner: str, run: str | None, more: Mapping[str, Any]) -> dict[str, Any]:
        """Run a replay and return its report, empty where it was stopped."""
        asked: Any = {**self.asked, **more, **({"run": run} if run else {})}
        report: dict[str, Any] = {}
        held: dict[str, Any] = {}
        for state in self._graph.stream(asked, context=Context(user_id=owner), stream_mode="values"):
            report, held = state.get("report") or {}, state.get("replaying") or held
            if self._stopping.is_set() and held and not report:
                with self.store.transaction(owner, writes=True) as (connection, number):
                    runs.release(connection, number, held["run"], held["by"])
                break
        return report


def _trigger(every: timedelta | None, cron: str | None, timezone: str) -> "BaseTrigger | None":
    from apscheduler.triggers.cron import CronTrigger
    from apscheduler.triggers.interval import IntervalTrigger

    if every is not None and cron is not None:
        raise InputError("A schedule has a time between two runs or a cron, not both.")
    if every is not None:
        if every < timedelta(seconds=1):
            raise InputError(f"The time between two runs must be at least 1 s; got {every}.")
        return IntervalTrigger(seconds=every.total_seconds(), timezone=UTC)
    if cron is None:
        return None
    try:
        trigger = CronTrigger.from_crontab(_weekdays_named(cron), timezone=timezone)
    except ValueError as error:
        raise InputError(f"The cron {cron!r} cannot be read: {error}. Write five fields, as in '0 3 * * *'.") from error
    if trigger.get_next_fire_time(None, times.now()) is None:
        raise InputError(f"The cron {cron!r} never comes: there is no such date.")
    return trigger


_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_RANGE = re.compile(r"([0-7])(?:-([0-7]))?(?:/([1-9]\d*))?")


def _weekdays_named(cron: str) -> str:
    """Return a cron with the names of weekdays for their numbers: APScheduler counts from Monday, cron from Sunday."""
    fields = cron.split()
    if len(fields) != 5:
        return cron
    parts = []
    for part in fields[4].split(","):
        read = _RANGE.fullmatch(part)
        if read is None:
            parts.append(part)
            continue
        first, last = int(read[1]), int(read[2] or (6 if read[3] else read[1]))
        parts += [_DAYS[day % 7] for day in range(first, last + 1, int(read[3] or 1))] or [part]
    return " ".join([*fields[:4], ",".join(parts)])
